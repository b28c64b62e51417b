"""Clients of gateways as a store sees them: leased, united over gateways, and the newest stream is asked."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.broker.v1 import broker_pb2
from tandemmq.gateway.clients import GatewaySessions
from tandemmq.gateway.questions import Question
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.store.delivery.members.sessions import Command, GroupChanged, Member, Sessions
from tandemmq.store.fronts.internal.gateway_members import GRACE_SECONDS, GatewayLease, GatewayMembers
from tests.manual_timers import ManualTimers

COMMAND = GroupChanged("g")


@dataclass
class Line:
    """A stream to a client."""

    asked: list[Command] = field(default_factory=list)

    def ask(self, command: Command) -> bool:
        self.asked.append(command)
        return True


class Told(RemoteBroker):
    """A broker whose store's part is in the same process: what it is told gets there, while it is linked."""

    def __init__(self, name: str, members: GatewayMembers) -> None:
        super().__init__("broker", [], lambda address: None, name, 0)  # type: ignore[arg-type,return-value]
        self.gateway = name
        self.members = members
        self.numbers_asked: list[int] = []
        self.ask_client = self._ask_client
        self.lease: GatewayLease | None = None

    def _ask_client(self, session: int, command: Command) -> bool:
        self.numbers_asked.append(session)
        return True

    def link_up(self) -> None:
        self.lease = self.members.linked(self.gateway, self.ask_client)
        self.linked(self)

    def link_down(self) -> None:
        assert self.lease is not None
        self.members.unlinked(self.lease, self.ask_client)
        self.lease = None

    def tell(self, question: Question) -> None:
        if self.lease is not None and question.HasField("members"):
            members = broker_pb2.Members.FromString(question.members.SerializeToString())
            self.members.told(self.lease, members)


class Kit:
    """A store and gateways before it."""

    def __init__(self, gateways: int) -> None:
        self.timers = ManualTimers()
        self.sessions = Sessions(self.timers)
        self.changed: list[str] = []
        self.sessions.listen(lambda member: self.changed.append(member.client_id))
        members = GatewayMembers(self.sessions, self.timers)
        self.brokers = [Told(f"gateway-{number}", members) for number in range(gateways)]
        self.gateways = [GatewaySessions(self.timers, [broker]) for broker in self.brokers]
        for broker, gateway in zip(self.brokers, self.gateways, strict=True):
            broker.linked = gateway.tell_all
            broker.link_up()


def consumer(name: str, line: Line | None = None, **more: str) -> Member:
    return Member(name, "g", line, subscriptions=more)


async def test_members_come_change_and_go() -> None:
    kit = Kit(1)
    gateway = kit.gateways[0]
    first = consumer("a", Line(), topic="*")
    gateway.register(first)
    await asyncio.sleep(0)
    there = kit.sessions.get("g", "a")
    assert there is not None
    assert there.subscriptions == {"topic": "*"}
    assert there.peer is not None
    gateway.disconnected(first)
    await asyncio.sleep(0)
    there = kit.sessions.get("g", "a")
    assert there is not None
    assert there.peer is None, "it lives, and cannot be asked"
    gateway.unregister(first)
    await asyncio.sleep(0)
    assert kit.sessions.members("g") == []


async def test_the_newest_stream_is_asked_and_the_older_one_when_that_ends() -> None:
    kit = Kit(2)
    old, new = consumer("a", Line()), consumer("a", Line())
    for gateway, member in zip(kit.gateways, (old, new), strict=True):
        gateway.register(member)
        gateway.flush()
    assert kit.sessions.ask_consumers("g", COMMAND) == 1
    assert [len(broker.numbers_asked) for broker in kit.brokers] == [0, 1]
    kit.gateways[0].flush()
    kit.gateways[1].unregister(new)
    kit.gateways[1].flush()
    assert kit.sessions.ask_consumers("g", COMMAND) == 1
    assert [len(broker.numbers_asked) for broker in kit.brokers] == [1, 1]
    assert kit.changed == ["a"], "to the group it was one member all the time"


async def test_a_killed_gateways_clients_have_time_to_come_back_through_another_one() -> None:
    kit = Kit(2)
    stays, moves = consumer("stays"), consumer("moves")
    kit.gateways[0].register(stays)
    kit.gateways[0].register(moves)
    kit.gateways[0].flush()
    kit.brokers[0].link_down()
    assert kit.sessions.ask_consumers("g", COMMAND) == 0
    await kit.timers.advance(GRACE_SECONDS - 1)
    assert {one.client_id for one in kit.sessions.members("g")} == {"stays", "moves"}
    kit.gateways[1].register(consumer("moves", Line()))
    kit.gateways[1].flush()
    await kit.timers.advance(2)
    assert [one.client_id for one in kit.sessions.members("g")] == ["moves"]
    assert kit.changed == ["stays", "moves", "stays"], "both came, one went"


async def test_a_gateway_that_links_again_in_time_has_lost_nobody() -> None:
    kit = Kit(1)
    kit.gateways[0].register(consumer("a", Line()))
    kit.gateways[0].flush()
    kit.brokers[0].link_down()
    gone = kit.gateways[0].get("g", "a")
    assert gone is not None
    kit.gateways[0].unregister(gone)
    kit.gateways[0].register(consumer("b", Line()))
    kit.gateways[0].flush()
    await kit.timers.advance(GRACE_SECONDS / 2)
    kit.brokers[0].link_up()
    assert [one.client_id for one in kit.sessions.members("g")] == ["b"]
    there = kit.gateways[0].get("g", "b")
    assert there is not None
    for _ in range(6):
        await kit.timers.advance(60)
        assert kit.gateways[0].heard_of(there)  # the gateway alone hears it
    assert [one.client_id for one in kit.sessions.members("g")] == ["b"], "linked gateways' members live"
    await kit.timers.advance(150)
    assert kit.sessions.members("g") == [], "a silent one is gone"


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["come", "come silent", "go", "hang up", "lose", "link"]),
        st.sampled_from("abc"),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_store_has_the_union_of_all_gateways(steps: list[tuple[int, str, str]]) -> None:
    asyncio.run(_walk(steps))


async def _walk(steps: list[tuple[int, str, str]]) -> None:
    kit = Kit(2)
    for at, what, name in steps:
        gateway, broker = kit.gateways[at], kit.brokers[at]
        member = gateway.get("g", name)
        if what.startswith("come"):
            gateway.register(consumer(name, Line() if what == "come" else None))
        elif what == "go" and member is not None:
            gateway.unregister(member)
        elif what == "hang up" and member is not None:
            gateway.disconnected(member)
        elif what == "lose" and broker.lease is not None:
            broker.link_down()
        elif what == "link" and broker.lease is None:
            broker.link_up()
        gateway.flush()
    for broker in kit.brokers:
        if broker.lease is None:
            broker.link_up()
    there = {one.client_id: one.peer is not None for one in kit.sessions.members("g")}
    wanted: dict[str, bool] = {}
    for gateway in kit.gateways:
        for one in gateway.members("g"):
            wanted[one.client_id] = wanted.get(one.client_id, False) or one.peer is not None
    assert there == wanted
