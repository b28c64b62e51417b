"""Clusters by name, and one address from which the others are found."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from tandemmq.cli.talk import discovery
from tandemmq.cli.talk.connection import trust
from tandemmq.cli.talk.contexts import (
    ClusterContext,
    Contexts,
    HomeUnknown,
    UnreadableContexts,
    choose,
    contexts_file,
    variables_of,
)
from tandemmq.cli.talk.discovery import candidates, of_cluster, resolve
from tandemmq.cli.talk.failures import CallFailed
from tandemmq.client import Identity
from tests.integration.test_cli import Outcome, tandem
from tests.integration.test_up import Up, in_sync, running, until

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("TANDEM_CONTEXTS_FILE", str(tmp_path / "of the user" / "contexts.json"))
    monkeypatch.delenv("TANDEM_CONTEXT", raising=False)
    return tmp_path / "of the user" / "contexts.json"


def add(name: str, *options: str) -> Outcome:
    return tandem("context", "add", name, *options)


@pytest.mark.slow
def test_the_first_one_is_used_and_another_can_be(file: Path) -> None:
    assert "used from now on" in add("here", "--server", "127.0.0.1:8081").out
    added = add("prod", "--server", "a:8081,b:8081", "--user", "ann", "--secret-file", "ann.secret", "--json").document
    assert added["current"] == "here"
    assert added["secret_file"] == str(Path("ann.secret").absolute())
    listed = tandem("context", "list").out
    assert [line.split()[:3] for line in listed.splitlines()[1:]] == [
        ["*", "here", "127.0.0.1:8081"], ["prod", "a:8081,b:8081", "ann"],
    ]  # fmt: skip
    assert "prod" in tandem("context", "use", "prod").out
    assert tandem("context", "list", "--json").document["current"] == "prod"
    assert tandem("context", "remove", "prod").code == 0
    assert tandem("context", "list", "--json").document == {
        "file": str(file), "current": "", "contexts": [{"context": "here", "server": "127.0.0.1:8081"}],
    }  # fmt: skip


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    add("here", "--server", "127.0.0.1:8081")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["current"] == "here"


def test_a_file_that_is_none_is_said_to_be_none_and_left_alone(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("{")
    for words in (("context", "list"), ("context", "add", "x", "--server", "h:1"), ("offsets",)):
        told = tandem(*words)
        assert told.code == 1
        assert f"{file} is no file of contexts" in told.err
    assert file.read_text() == "{"
    assert tandem("context", "--help").code == 0


@pytest.mark.slow
def test_a_command_goes_where_the_context_says(file: Path) -> None:
    add("gone", "--server", "127.0.0.1:1")
    assert "no store answers at 127.0.0.1:1" in tandem("offsets").err
    assert "no admin answers at 127.0.0.1:1" in tandem("topic", "list").err
    assert "127.0.0.1:2" in tandem("offsets", "--address", "127.0.0.1:2").err
    assert "127.0.0.1:3" in tandem("offsets", environment={"TANDEM_ADDRESS": "127.0.0.1:3"}).err
    assert "127.0.0.1:4" in tandem("--server", "127.0.0.1:4", "offsets").err
    usual = tandem("--context", "", "offsets", environment={"TANDEM_ADDRESS": "127.0.0.1:5"})
    assert not {"127.0.0.1:1;", "127.0.0.1:5;"} & set(usual.err.split())  # at the usual address there may be a store


@pytest.mark.slow
def test_what_is_typed_wins_over_the_environment(file: Path) -> None:
    add("gone", "--server", "127.0.0.1:1")
    of_another = {"TANDEM_ADDRESS": "127.0.0.1:3"}
    assert "127.0.0.1:4" in tandem("--server", "127.0.0.1:4", "offsets", environment=of_another).err
    assert "127.0.0.1:1" in tandem("--context", "gone", "offsets", environment=of_another).err
    of_another = {"TANDEM_SERVER": "127.0.0.1:3"}
    assert "127.0.0.1:1;" in tandem("--context", "gone", "offsets", environment=of_another).err
    assert "127.0.0.1:4;" in tandem("--context", "gone", "--server", "127.0.0.1:4", "offsets").err


def test_credentials_of_one_place_are_not_mixed_with_another_s() -> None:
    context = ClusterContext("h:1", user="ann", secret_file="/s", tls_ca="/ca")
    assert variables_of(context, {}) == {
        "TANDEM_SERVER": "h:1", "TANDEM_USER": "ann", "TANDEM_SECRET_FILE": "/s", "TANDEM_TLS_CA": "/ca",
        "TANDEM_SECRET_HOSTS": "h",
    }  # fmt: skip
    assert variables_of(context, {"TANDEM_USER": "bob"}) == {"TANDEM_SERVER": "h:1", "TANDEM_TLS_CA": "/ca"}
    assert "TANDEM_SERVER" not in variables_of(context, {"TANDEM_ADMIN_ADDRESS": "x:1"})
    assert "TANDEM_TLS_CA" not in variables_of(context, {"TANDEM_TLS_CERT": "/c"})


class Listener(grpc.GenericRpcHandler):
    """Lets nobody in, and keeps what it is told of who calls."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        metadata = {key: str(value) for key, value in details.invocation_metadata or ()}
        self.told.append(metadata.get("authorization", "nothing"))
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        )


@pytest.fixture
def listening() -> Iterator[tuple[str, Listener]]:
    """Somebody who answers, at an address."""
    listener = Listener()
    server = grpc.server(ThreadPoolExecutor(1), handlers=[listener])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}", listener
    server.stop(None).wait()


WAYS = (
    pytest.param(("offsets", "--address", "{}"), id="offsets"),
    *(
        pytest.param((*words, "--address", "{}"), id=words[0], marks=pytest.mark.slow)
        for words in (("topic", "list"), ("consume", "g", "t"), ("bench", "--seconds", "1"), ("replicas",))
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_of_a_context_goes_to_its_hosts_only(
    file: Path, tmp_path: Path, listening: tuple[str, Listener], way: tuple[str, ...]
) -> None:
    address, listener = listening
    (tmp_path / "secret").write_text("of ann")
    who = ("--user", "ann", "--secret-file", str(tmp_path / "secret"))
    add("prod", "--server", "broker.example:8081", *who)
    add("here", "--server", "localhost:1", *who)
    words = [word.format(address) for word in way]
    told = tandem(*words).err
    assert set(listener.told) == {"nothing"}
    assert "the secret of the context goes to broker.example only" in told
    tandem(*words, environment={"TANDEM_ADDRESS": address, "TANDEM_ADMIN_ADDRESS": address})
    tandem("--server", address, *words)
    assert set(listener.told) == {"nothing"}, "whichever way an address is told"
    listener.told.clear()
    for named in (("--context", "here"), who):
        told = tandem(*named, *words).err
        assert {one.partition(" ")[0] for one in listener.told} == {"Basic"}
        assert "the secret of the context" not in told
    listener.told.clear()
    tandem(*who, *words, environment={"TANDEM_SECRET_HOSTS": "broker.example"})
    assert "nothing" not in listener.told, "who is typed is meant for the address that is typed"


def test_what_a_cluster_tells_of_itself_gets_the_secret_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_USER", "ann")
    monkeypatch.setenv("TANDEM_SECRET_FILE", "/s")
    monkeypatch.setenv("TANDEM_SECRET_HOSTS", "a.example")
    trust("c.example:8084", "b.example:8083")
    assert Identity.from_environment().at("c.example:8084").user is None, "told by somebody else"
    trust("b.example:8084", "a.example:8083")
    assert Identity.from_environment().at("a.example:1,b.example:1").user == "ann"
    assert Identity.from_environment().at("a.example:1,c.example:1").user is None


def test_where_the_file_is() -> None:
    assert contexts_file({"TANDEM_CONTEXTS_FILE": "/x"}) == Path("/x")
    assert contexts_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/tandem/contexts.json")
    assert contexts_file({}) == Path.home() / ".config" / "tandem" / "contexts.json"


def test_no_context_is_no_error_and_an_empty_name_means_none(tmp_path: Path) -> None:
    nowhere = {"TANDEM_CONTEXTS_FILE": str(tmp_path / "none")}
    assert choose(None, nowhere) is None
    (tmp_path / "f").write_text(Contexts("a", {"a": ClusterContext("h:1")}).text())
    there = {"TANDEM_CONTEXTS_FILE": str(tmp_path / "f")}
    assert choose(None, there) == ClusterContext("h:1")
    assert choose(None, {**there, "TANDEM_CONTEXT": ""}) is None
    (tmp_path / "f").write_text('{"contexts": {"a": {}}}')
    with pytest.raises(UnreadableContexts):
        choose(None, there)


def test_who_has_no_home_has_no_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEM_CONTEXT", raising=False)
    at_home = {"TANDEM_CONTEXTS_FILE": "", "XDG_CONFIG_HOME": "", "HOME": "/dev/null"}
    told = tandem("offsets", "--address", "127.0.0.1:1", environment=at_home).err
    assert "no store answers at 127.0.0.1:1" in told
    assert "cannot be made" in tandem("context", "add", "x", "--server", "h:1", environment=at_home).err


def test_who_is_not_known_to_the_machine_has_no_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody_knows() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody_knows)
    assert choose(None, {}) is None
    with pytest.raises(HomeUnknown) as raised:
        choose("prod", {})
    assert "TANDEM_CONTEXTS_FILE names one" in raised.value.explain()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running(tmp_path_factory.mktemp("found"), "--admin") as one:
        yield one


def at(server: str, *words: str) -> Outcome:
    return tandem("--context", "", "--server", server, *words)


@pytest.mark.parametrize("server", ["admin", "replicator"])
def test_from_one_address_the_rest_is_found(up: Up, server: str) -> None:
    """Ports are any that are free here: a store knows no admin then, and an admin knows all."""
    if server == "replicator":
        assert "from the replicator at" in at(up.address(server), "topic", "list").err
        assert at(up.address(server), "replicas").code == 0
        return
    assert at(up.address(server), "send", "orders", "one").out.startswith("PUT_OK")
    assert at(up.address(server), "consume", "g", "orders", "--count", "1", "--json").lines[0]["body"] == "one"
    assert "orders" in at(up.address(server), "topic", "list").out
    assert at(up.address(server), "replicas", "--json").document["role"] == "ASYNC_MASTER"


@pytest.mark.slow
def test_a_slave_stands_for_its_cluster_and_elsewhere_names_its_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, "--slave", "--admin") as up:
        until(lambda: in_sync(up), "the slave follows")
        master, slave = up.address("store"), up.address("store", "b")
        lines = tmp_path / "lines.txt"
        lines.write_text("one\ntwo\n")
        led = f"(its master: --address {master})"
        for words in (("one",), ("--file", str(lines))):
            command = ("send", "orders", *words, "--address", slave)
            until(lambda command=command: led in tandem(*command).err, "the slave says where its master is")  # type: ignore[misc]
            refused = tandem(*command)
            assert (refused.code, refused.out) == (1, "")

        monkeypatch.setattr(discovery, "candidates", lambda *_: iter([up.address("admin")]))  # ports are any here
        for server in (slave, master):
            monkeypatch.setenv("TANDEM_SERVER", server)
            until(lambda at=server: resolve("store", at) == master, "admin knows who is master")  # type: ignore[misc]
        assert resolve("store", "127.0.0.1:1") == "127.0.0.1:1", "what is named itself stays"


def test_a_topic_is_made_by_the_store_where_no_admin_is_found(up: Up) -> None:
    made = at(up.address("store"), "topic", "create", "made", "--json")
    assert made.code == 0, made.err
    assert "made" in at(up.address("store"), "offsets").out


def test_what_an_admin_knows_as_loopback_is_dialled_as_the_admin_is() -> None:
    from tandemmq.admin.v1 import admin_pb2

    def node(role: "admin_pb2.NodeRole.ValueType", store: str) -> admin_pb2.Node:
        return admin_pb2.Node(role=role, services=[admin_pb2.ServiceState(service="store", address=store)])

    cluster = admin_pb2.Cluster(nodes=[node(admin_pb2.SLAVE, "b:8081"), node(admin_pb2.MASTER, "127.0.0.1:8081")])
    assert of_cluster(cluster, "store", "broker.example") == "broker.example:8081"
    del cluster.nodes[1]
    assert of_cluster(cluster, "store", "broker.example") == "b:8081"
    assert of_cluster(cluster, "replicator", "broker.example") == ""


def test_a_context_is_nothing_to_a_service(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("{")
    assert tandem("settings", "--changed").code == 0
    assert os.environ.get("TANDEM_SERVER") is None


def test_an_admin_is_looked_for_beside_the_store_and_at_the_usual_port() -> None:
    assert list(candidates("h:9081", "store", "admin")) == ["h:9083", "h:8083"]
    assert list(candidates("h:8081", "store", "admin")) == ["h:8083"]
    assert list(candidates("h:9081", "store", "replicator")) == ["h:9084"]


@pytest.mark.slow
def test_what_another_cluster_has_at_the_usual_port_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from tandemmq.admin.v1 import admin_pb2

    there = {"h:9081": "store", "h:8081": "store", "h:8083": "admin", "h:8084": "replicator"}
    known = [admin_pb2.ServiceState(service=there[f"h:{port}"], address=f"h:{port}") for port in (8081, 8084)]
    monkeypatch.setattr(discovery, "service_at", lambda address: there.get(address, ""))
    monkeypatch.setattr(discovery, "_cluster_at", lambda _: admin_pb2.Cluster(nodes=[admin_pb2.Node(services=known)]))
    monkeypatch.setenv("TANDEM_SERVER", "h:9081")
    for service in ("admin", "replicator"):
        with pytest.raises(CallFailed, match=f"from the store at h:9081 no {service} is found"):
            discovery.resolve(service, "h:9081")
    known.append(admin_pb2.ServiceState(service="store", address="10.0.0.5:9081"))
    assert discovery.resolve("admin", "h:9081") == "h:8083"
    assert discovery.resolve("replicator", "h:9081") == "h:8084"


def test_a_slave_leads_to_no_other_broker_s_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to another cluster's either, which has the port of admin beside it."""
    from tandemmq.admin.v1 import admin_pb2
    from tandemmq.node.v1.node_pb2 import DescribeResponse

    slave = DescribeResponse(service="store", host_name="b", pid=7, started_ms=1_000)

    def node(broker: str, role: "admin_pb2.NodeRole.ValueType", store: str, pid: int) -> admin_pb2.Node:
        described = DescribeResponse(service="store", host_name="b", pid=pid, started_ms=1_000)
        state = admin_pb2.ServiceState(service="store", address=store, answers=True, description=described)
        return admin_pb2.Node(role=role, broker_name=broker, services=[state])

    def found(*nodes: admin_pb2.Node) -> str:
        monkeypatch.setattr(discovery, "_cluster_at", lambda _: admin_pb2.Cluster(nodes=nodes))
        return resolve("store", "b:8081")

    others = {"b:8081": slave, "b:8083": DescribeResponse(service="admin")}
    monkeypatch.setattr(discovery, "_described", others.get)
    monkeypatch.setattr(discovery, "_is_slave", lambda _: True)
    monkeypatch.setenv("TANDEM_SERVER", "b:8081")
    first = node("first", admin_pb2.MASTER, "a:8081", 1)
    second = (node("second", admin_pb2.MASTER, "c:8081", 3), node("second", admin_pb2.SLAVE, "b:8081", 7))
    assert found(first, *second) == "c:8081"
    assert found(first) == "b:8081", "an admin that does not know the slave is another cluster's"
    second[0].services[0].answers = False
    assert found(first, *second) == "b:8081"

    def refused(_: str) -> admin_pb2.Cluster:
        raise grpc.RpcError

    monkeypatch.setattr(discovery, "_cluster_at", refused)
    assert resolve("store", "b:8081") == "b:8081", "who may not ask admin still reaches the store"
