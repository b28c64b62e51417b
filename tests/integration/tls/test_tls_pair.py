"""Two nodes over mutual TLS, each service with an access list: they replicate, sync and promote, nobody else can."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest

from tandemmq.client import RequestFailed, StoreClient
from tandemmq.client.channels import open_channel
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.replication.v1 import replication_pb2
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1 import replica_log_pb2, store_pb2
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.faults.pair import FOLLOWING, Node
from tests.faults.pair_process import until
from tests.integration.tls.command import tandem
from tests.integration.tls.conftest import Certificates
from tests.integration.tls.secured import PORTS, secured_node, started, tls_settings, write_access

USERS = {"node": ("of the node", "service"), "olga": ("of olga", "operator"), "alice": ("of alice", "orders")}
ROLES = '[roles.orders]\npublish = ["orders*"]\nsubscribe = ["orders*"]\n'

pytestmark = [pytest.mark.xdist_group("tls-pair"), pytest.mark.timeout(400)]


class Secured(NamedTuple):
    """A pair, and what there is to call it with."""

    master: Node
    slave: Node
    tls: dict[str, Path]
    access: Path
    secret: Path

    def as_user(self, user: str, secret: str = "") -> dict[str, Any]:
        """Keyword arguments of clients."""
        return {**self.tls, "user": user, "secret": secret or USERS[user][0]}

    def status(self, node: Node) -> replication_pb2.StatusResponse:
        """What a replicator tells its operator."""
        with open_channel(node.address("replicator"), **self.as_user("olga")) as channel:
            return ReplicationStub(channel).Status(replication_pb2.StatusRequest(), timeout=30, wait_for_ready=True)

    def topics(self, node: Node) -> set[str]:
        """The names that a metasync knows."""
        with open_channel(node.address("metasync"), **self.as_user("olga")) as channel:
            stub = MetadataStub(channel)
            pages = stub.GetTable(metadata_pb2.GetTableRequest(table=metadata_pb2.TOPICS), timeout=30)
            return {topic.name for page in pages for topic in page.topics}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("pair")
    access, secret = directory / "access.toml", directory / "secret"
    write_access(access, USERS, ROLES)
    secret.write_text("of the node\n")
    settings = tls_settings(certificates.ours, certificates.node, mutual=True)
    settings |= {"accessFile": access, "serviceUser": "node", "serviceSecretFile": secret}
    master = secured_node(directory / "a", settings)
    slave = secured_node(directory / "b", settings, master=master)
    own = certificates.caller
    tls = {"tls_ca": certificates.ours.certificate, "tls_certificate": own.certificate, "tls_key": own.key}
    with started(master, slave):
        secured = Secured(master, slave, tls, access, secret)
        until(lambda: following(secured), 60, "the slave follows")
        yield secured


def following(pair: Secured) -> bool:
    try:
        return pair.status(pair.slave).follower.state == FOLLOWING and pair.status(pair.master).in_sync >= 1
    except grpc.RpcError:
        return False


def ask(port: str, channel: grpc.Channel) -> None:
    """A question that not everybody may ask. Raises grpc.RpcError."""
    if port == "store":
        StoreStub(channel).GetLog(store_pb2.GetLogRequest(), timeout=30)
    elif port == "internal":
        ReplicaLogStub(channel).GetRole(replica_log_pb2.GetRoleRequest(), timeout=30)
    elif port == "metasync":
        MetadataStub(channel).Status(metadata_pb2.StatusRequest(), timeout=30)
    else:
        ReplicationStub(channel).Fence(replication_pb2.FenceRequest(epoch=0), timeout=30)


def answer(pair: Secured, port: str, **security: Any) -> str:
    with open_channel(pair.master.address(port), **security) as channel:
        try:
            ask(port, channel)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "answered"


@pytest.mark.parametrize("port", PORTS)
def test_who_is_refused(pair: Secured, port: str) -> None:
    """A certificate alone is not enough, nor are credentials without one."""
    assert answer(pair, port, **pair.tls) == "UNAUTHENTICATED"
    assert answer(pair, port, **pair.as_user("alice", "guessed")) == "UNAUTHENTICATED"
    assert answer(pair, port, **pair.as_user("alice")) == "PERMISSION_DENIED"
    assert answer(pair, port, user="node", secret="of the node", tls_ca=pair.tls["tls_ca"]) == "UNAVAILABLE"
    assert answer(pair, port, **pair.as_user("node")) not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "UNAVAILABLE")


def test_messages_and_tables_reach_the_slave(pair: Secured) -> None:
    with StoreClient(pair.master.address("store"), **pair.as_user("alice")) as client:
        receipt = client.send("orders", b"one espresso")
        assert receipt.status == store_pb2.PUT_OK, "a slave has it"
        assert client.pull("orders", receipt.queue_id, receipt.queue_offset).records[0].body == b"one espresso"
        with pytest.raises(RequestFailed, match="alice") as refused:
            client.send("bills", b"not hers")
        assert refused.value.code == "PERMISSION_DENIED"
    until(lambda: "orders" in pair.topics(pair.slave), 60, "the topic is copied to the slave's metasync")


def test_a_commit_at_the_slave_reaches_the_master(pair: Secured) -> None:
    commit(pair, pair.master, 1)
    until(lambda: committed(pair, pair.slave) == 1, 60, "the slave's metasync has group and offset")
    commit(pair, pair.slave, 2)
    until(lambda: committed(pair, pair.master) == 2, 60, "handed over to the master")


def commit(pair: Secured, node: Node, offset: int) -> None:
    one = metadata_pb2.OffsetCommit(topic="orders", group="baristas", queue_id=0, offset=offset)
    with open_channel(node.address("metasync"), **pair.as_user("olga")) as channel:
        MetadataStub(channel).CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=[one]), timeout=30)


def committed(pair: Secured, node: Node) -> int:
    query = metadata_pb2.OffsetQuery(topic="orders", group="baristas")
    with open_channel(node.address("metasync"), **pair.as_user("olga")) as channel:
        found = MetadataStub(channel).QueryOffsets(metadata_pb2.QueryOffsetsRequest(queries=[query]), timeout=30)
    return next((one.offsets[0] for one in found.offsets), -1)


@pytest.mark.slow
def test_a_new_secret_without_a_restart(pair: Secured) -> None:
    changed = USERS | {"node": ("another one", "service")}
    write_access(pair.access, changed, ROLES)
    until(lambda: answer(pair, "internal", **pair.as_user("node")) == "UNAUTHENTICATED", 60, "the old one is void")
    pair.secret.write_text("another one")
    until(lambda: answer(pair, "internal", **pair.as_user("node", "another one")) == "answered", 60, "the new one")
    with StoreClient(pair.master.address("store"), **pair.as_user("alice")) as client:
        # The slave is let in again when both nodes know the new secret.
        until(lambda: client.send("orders-of-today", b"two teas").status == store_pb2.PUT_OK, 60, "on both nodes")
    until(lambda: "orders-of-today" in pair.topics(pair.slave), 60, "copied, with the new secret")
    until(lambda: following(pair), 60, "the slave follows")


@pytest.mark.slow
def test_a_promotion_by_the_command_line(pair: Secured) -> None:
    """The slave asks the old master, fences it and becomes master; the old one follows. All by operators only."""
    by_olga = environment(pair, "olga", "of olga")
    slave = ("--address", pair.slave.address("replicator"))
    by_alice = tandem("promote", *slave, environment=environment(pair, "alice", "of alice"))
    assert by_alice.code == 1
    assert by_alice.err.startswith("tandem: ")
    promoted = tandem("promote", *slave, environment=by_olga)
    assert promoted.code == 0, promoted.err
    assert "the old master is fenced" in promoted.out
    with open_channel(pair.master.address("replicator"), **pair.as_user("olga")) as channel:
        where = {"ha_master_address": pair.slave.ha_address, "replicator_address": pair.slave.address("replicator")}
        ReplicationStub(channel).Follow(replication_pb2.FollowRequest(**where), timeout=30)
    until(lambda: pair.status(pair.master).follower.state == FOLLOWING, 60, "the old master follows the new one")
    until(lambda: pair.status(pair.slave).in_sync >= 1, 60, "the new master counts it")
    shown = tandem("replicas", *slave, "--json", environment=by_olga)
    assert json.loads(shown.out)["replicas"][0]["connected"]
    with StoreClient(pair.slave.address("store"), **pair.as_user("alice")) as client:
        until(lambda: client.send("orders", b"to the new master").status == store_pb2.PUT_OK, 60, "on both nodes")


def environment(pair: Secured, user: str, secret: str) -> dict[str, object]:
    """Of a command that this user starts."""
    file = pair.secret.with_name(f"secret-of-{user}")
    file.write_text(secret)
    return {
        "TANDEM_USER": user,
        "TANDEM_SECRET_FILE": file,
        "TANDEM_TLS_CA": pair.tls["tls_ca"],
        "TANDEM_TLS_CERT": pair.tls["tls_certificate"],
        "TANDEM_TLS_KEY": pair.tls["tls_key"],
    }
