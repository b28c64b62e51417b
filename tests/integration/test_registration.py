"""A store is registered at name servers: from its start to its end, with every topic, under the id of its role."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.net.remoting.server import RemotingServer
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.timers import LoopTimers
from tandemmq.common.topic_names import TRACES
from tandemmq.common.wire.remoting.registration import BrokerIdentity, Registration, RegistrationVersion
from tandemmq.naming.asked import Asked, NamingRules, code_of
from tandemmq.naming.kv import KvStore
from tandemmq.naming.routes import RouteTable
from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.names_link import NamesLink
from tandemmq.store.registered import CreatedTopics, RegisteredTopics
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import port_of
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.interop.remoting import Refused, Remoting
from tests.names_process import NamesProcess

PATIENCE = 30.0


@contextmanager
def store_under(directory: Path, *names: NamesProcess, **settings: object) -> Iterator[StoreProcess]:
    """A store that registers there."""
    own = {"remoting_mode": "on", "listen_port": free_port(), "broker_name": "ours", "broker_ip1": "127.0.0.1"}
    own |= settings
    with StoreProcess(directory, namesrv_addr=";".join(one.address for one in names), **own) as store:
        yield store


def address_of(store: StoreProcess) -> str:
    return f"127.0.0.1:{store.settings['listen_port']}"


@pytest.mark.slow
def test_the_topic_of_traces_is_there_although_topics_are_not_made_by_sending(tmp_path: Path) -> None:
    off = {"auto_create_topic_enable": False, "trace_topic_enable": True}
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names, **off) as store:
        names.until_route(TRACES, {"ours": {"0": address_of(store)}})
        names.until_route("TBW102", None)
        with Remoting(store.settings["listen_port"]) as client:  # type: ignore[arg-type]
            assert client.send(TRACES, 0, b"trace", b"").code == 0
            with pytest.raises(Refused, match="autoCreateTopicEnable"):
                client.send("others", 0, b"", b"")


@pytest.mark.slow
def test_a_groups_retry_topic_has_a_route_when_its_first_heartbeat_is_answered(tmp_path: Path) -> None:
    """Clients ask for it at once, and then not again for half a minute."""
    with NamesProcess(tmp_path / "names") as names, store_under(tmp_path / "store", names) as store:
        names.until_route("TBW102", {"ours": {"0": address_of(store)}})
        client = ClassicClient(port_of(store))
        for number in range(5):
            assert client.heartbeat(consumes={f"g{number}": {"t": "*"}}).code == 0
            assert names.route(f"%RETRY%g{number}") == {"ours": {"0": address_of(store)}}
        client.close()


@pytest.mark.slow
def test_from_its_start_to_its_end_at_several_name_servers(tmp_path: Path) -> None:
    """One of them is away at first, and comes back later as another process that knows nothing."""
    one, two = NamesProcess(tmp_path / "one"), NamesProcess(tmp_path / "two")
    with one, store_under(tmp_path / "store", one, two) as store:
        route = {"ours": {"0": address_of(store)}}
        one.until_route("TBW102", route)
        with store.client() as client:
            client.send("fresh", b"1")
        one.until_route("fresh", route)
        with two:
            two.until_route("fresh", route)
            one.stop(signal.SIGKILL)
            one.start()
            one.until_route("fresh", route)
            store.restart(signal.SIGKILL)
            two.until_route("fresh", route)
            assert store.stop() == 0
            assert one.route("fresh") is None
            assert two.route("fresh") is None


def test_tools_find_the_brokers_of_a_cluster_where_sends_make_no_topics(tmp_path: Path) -> None:
    """mqadmin makes a topic at the brokers that the topic called as the cluster has a route to."""
    with (
        NamesProcess(tmp_path / "one") as one,
        store_under(tmp_path / "store", one, auto_create_topic_enable=False) as store,
    ):
        for topic in ("DefaultCluster", "ours"):
            one.until_route(topic, {"ours": {"0": address_of(store)}})
        assert one.route("TBW102") is None


@pytest.mark.slow
def test_a_killed_store_is_gone_at_once(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "one") as one, store_under(tmp_path / "store", one) as store:
        one.until_route("TBW102", {"ours": {"0": address_of(store)}})
        store.stop(signal.SIGKILL)
        one.until_route("TBW102", None)


class HurriedTimers(LoopTimers):
    """Their clock runs forty times as fast; sleeps take as long as ever."""

    def time(self) -> float:
        return 40 * asyncio.get_running_loop().time()


class Link:
    """A link of this process to a name server of this process."""

    def __init__(self, root: Path, address: str, role: BrokerRole) -> None:
        self.topics = LocalTopicTable(root, LocalDisk(), SystemClock())
        self.mastership = Mastership(root, LocalDisk(), role)
        clock = SystemClock()
        self.registered = RegisteredTopics(
            lambda number: BrokerIdentity("C", "b", number, "h:1"), "h:2", self.topics, self.mastership, 3,
            CreatedTopics(4, are_all=True), clock.now_ms,
        )  # fmt: skip
        self.link = NamesLink([address], self.registered, PATIENCE, PATIENCE, HurriedTimers())
        self.topics.changed.listen(self.link.changed)
        self.mastership.changed.listen(self.link.changed)


@asynccontextmanager
async def linked(
    tmp_path: Path, role: BrokerRole, before: Registration | None = None
) -> AsyncIterator[tuple[Link, RouteTable]]:
    """A link that has registered, and the table in which. `before`: who was there already."""
    routes, values = RouteTable(), KvStore(tmp_path / "kv.json")
    if before is not None:
        routes.register(before, object(), asyncio.get_running_loop().time())
    asked = Asked(routes, values, asyncio.get_running_loop().time, NamingRules(), str)
    server = RemotingServer(Handlers(asked.handlers(), code_of), RemotingLimits())
    port = server.add_port("127.0.0.1:0")
    await server.start()
    (tmp_path / "store").mkdir(exist_ok=True)
    found = Link(tmp_path / "store", f"127.0.0.1:{port}", role)
    found.link.start()
    await found.link.settled(PATIENCE)
    try:
        yield found, routes
    finally:
        await found.link.stop()
        await server.stop()


async def test_a_promoted_slave_becomes_broker_0_and_a_fenced_master_leaves(tmp_path: Path) -> None:
    async with linked(tmp_path, BrokerRole.SLAVE) as (store, routes):
        assert routes.brokers["b"].addresses == {3: "h:1"}
        assert routes.topics == {}
        store.mastership.promote(BrokerRole.ASYNC_MASTER, 2, 0)
        await store.link.settled(PATIENCE)
        assert routes.brokers["b"].addresses == {0: "h:1"}
        assert routes.brokers["b"].members[0].version.state == store.mastership.epoch
        assert routes.topics["TBW102"]["b"].perm == 7
        store.mastership.fence(store.mastership.epoch + 1)
        await store.link.settled(PATIENCE)
        assert routes.brokers == {}


OTHER = BrokerIdentity("C", "b", 0, "h:9")
OTHER_MASTER = Registration(OTHER, "h:10", RegistrationVersion(1, 1, 1), {})


async def test_a_master_that_starts_waits_while_another_one_has_its_place(tmp_path: Path) -> None:
    async with linked(tmp_path, BrokerRole.ASYNC_MASTER, OTHER_MASTER) as (store, routes):
        assert routes.brokers["b"].addresses == {0: "h:9"}
        (peer,) = store.link.peers
        assert "h:9 is registered as master of b" in peer.problem
        assert routes.unregister(OTHER)
        await until(lambda: bool(routes.brokers))
        assert routes.brokers["b"].addresses == {0: "h:1"}


async def test_a_master_that_is_fenced_leaves_the_other_one_in_its_place(tmp_path: Path) -> None:
    async with linked(tmp_path, BrokerRole.ASYNC_MASTER, OTHER_MASTER) as (store, routes):
        store.mastership.fence(store.mastership.epoch + 1)
        await store.link.settled(PATIENCE)
        assert routes.brokers["b"].addresses == {0: "h:9"}


async def test_a_master_that_slept_does_not_take_its_place_back(tmp_path: Path) -> None:
    """Nobody could tell it that it was replaced; it has not started anew."""
    async with linked(tmp_path, BrokerRole.ASYNC_MASTER) as (store, routes):
        assert routes.brokers["b"].addresses == {0: "h:1"}
        routes.register(OTHER_MASTER, object(), asyncio.get_running_loop().time())
        store.link.changed()
        (peer,) = store.link.peers
        await until(lambda: "h:9 is registered as master of b" in peer.problem)
        store.mastership.fence(store.mastership.epoch + 1)
        await until(lambda: not peer.problem)
        assert routes.brokers["b"].addresses == {0: "h:9"}


async def taken_back(store: Link, routes: RouteTable) -> None:
    """It waits for another master to go, takes its place, and the other one takes it back."""
    await until(lambda: routes.brokers["b"].addresses == {0: "h:1"})
    as_new = replace(OTHER_MASTER, version=RegistrationVersion(store.mastership.epoch, 1, 1))  # RocketMQ asks not
    routes.register(as_new, object(), asyncio.get_running_loop().time())
    store.link.changed()


async def test_a_place_that_is_taken_back_is_left_to_the_other_master(tmp_path: Path) -> None:
    """Both live, and would send clients from one log to another: until that one goes, and somebody is told."""
    async with linked(tmp_path, BrokerRole.ASYNC_MASTER, OTHER_MASTER) as (store, routes):
        await taken_back(store, routes)
        (peer,) = store.link.peers
        await until(lambda: "two live masters have one name" in peer.problem)
        assert "a brokerName of its own" in peer.problem
        problem, failures = peer.problem, peer.failures
        await until(lambda: peer.failures > failures + 2)
        assert (peer.problem, routes.brokers["b"].addresses) == (problem, {0: "h:9"})
        assert routes.unregister(OTHER)
        await until(lambda: bool(routes.brokers))
        assert routes.brokers["b"].addresses == {0: "h:1"}


async def test_a_promoted_master_takes_its_place_again_and_again(tmp_path: Path) -> None:
    """The old one lives, and was not reached: it is the one that must go."""
    async with linked(tmp_path, BrokerRole.SLAVE, OTHER_MASTER) as (store, routes):
        store.mastership.promote(BrokerRole.ASYNC_MASTER, 2, 0)
        for _ in range(3):
            await taken_back(store, routes)
        await until(lambda: routes.brokers["b"].addresses == {0: "h:1"})
        assert store.registered.promoted


async def test_a_promoted_master_that_was_started_again_does_so_too(tmp_path: Path) -> None:
    """The old one came into its place meanwhile, and knows still nothing of the promotion."""
    (tmp_path / "store").mkdir()
    Mastership(tmp_path / "store", LocalDisk(), BrokerRole.SLAVE).promote(BrokerRole.ASYNC_MASTER, 2, 0)
    before = replace(OTHER_MASTER, version=RegistrationVersion(2, 1, 1))
    async with linked(tmp_path, BrokerRole.SLAVE, before) as (store, routes):
        assert not store.registered.promoted
        for _ in range(3):
            await taken_back(store, routes)
        await until(lambda: routes.brokers["b"].addresses == {0: "h:1"})


async def test_a_promoted_slave_takes_the_place_of_another_one_at_once(tmp_path: Path) -> None:
    async with linked(tmp_path, BrokerRole.SLAVE, OTHER_MASTER) as (store, routes):
        assert routes.brokers["b"].addresses == {0: "h:9", 3: "h:1"}
        store.mastership.promote(BrokerRole.ASYNC_MASTER, 2, 0)
        await store.link.settled(PATIENCE)
        assert routes.brokers["b"].addresses == {0: "h:1"}


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not done():
            await asyncio.sleep(0.02)


async def test_a_new_topic_is_registered_before_anybody_is_told_of_it(tmp_path: Path) -> None:
    """What `settled` is for: a consumer whose retry topic has no route would wait for it for half a minute."""
    async with linked(tmp_path, BrokerRole.ASYNC_MASTER) as (store, routes):
        await store.topics.add([TopicConfig("%RETRY%g", 1, 1), TopicConfig("TANDEM_SYS_X", 1, 1)])
        await store.link.settled(PATIENCE)
        assert "%RETRY%g" in routes.topics
        assert "TANDEM_SYS_X" not in routes.topics
        versions = routes.brokers["b"].members[0].version
        await store.topics.add([TopicConfig("t", 3, 2, 4)])
        await store.link.settled(PATIENCE)
        assert (routes.topics["t"]["b"].read_queues, routes.topics["t"]["b"].perm) == (3, 4)
        assert routes.brokers["b"].members[0].version > versions


async def test_a_name_server_that_is_away_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    store = Link(tmp_path / "store", f"127.0.0.1:{free_port()}", BrokerRole.ASYNC_MASTER)
    store.link.start()
    waiting = asyncio.create_task(store.link.settled(PATIENCE))
    done, _ = await asyncio.wait([waiting], timeout=PATIENCE / 2)
    assert done, "whoever makes a topic waits for a name server that is away"
    await store.link.stop()


@pytest.mark.slow
@pytest.mark.parametrize("bad", ["nowhere", "h:1,g:2", "h:70000", "h:1;;x"])
def test_addresses_that_are_none_are_told(tmp_path: Path, bad: str) -> None:
    store = StoreProcess(tmp_path / "store", namesrv_addr=bad)
    with pytest.raises(AssertionError, match="namesrvAddr"):
        store.start()
    store.stop()
