"""What mqadmin setConsumeMode says to a master is known to its slaves, and still after a promotion."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.server import RemotingServer
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.errors import MasterAway
from tandemmq.metasync.java_master import JavaLink
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.puller import TablePuller
from tandemmq.store.v1 import replica_log_pb2 as log_pb
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import port_of
from tests.contract.remoting.test_request_modes import FILE, MAP, mode_of, put, said, shown
from tests.integration.metasync.test_with_store import Node
from tests.metasync_process import wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    a, b = Node(tmp_path / "a", "ASYNC_MASTER"), Node(tmp_path / "b", "SLAVE")
    for node in (a, b):
        node.store.settings |= {"remoting_mode": "on", "listen_port": 0, "broker_name": "pair"}
    try:
        a.start()
        b.metasync.settings["metasync_master_address"] = a.metasync.address
        b.start()
        yield a, b
    finally:
        a.kill()
        b.kill()


@pytest.mark.slow
def test_a_slave_has_its_masters_and_keeps_them_when_it_is_promoted(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    assert put(a.store, said("poppers", "t")) == ResponseCode.SUCCESS
    wait_until(lambda: shown(b.store) == {"t": {"poppers": said("poppers", "t")}}, "the slave has it")
    assert json.loads((b.store.directory / "config" / FILE).read_text())[MAP] == shown(a.store)

    with ClassicClient(port_of(b.store)) as client:
        body = json.dumps(said("poppers", "other")).encode()
        refused = client.call(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "takes its master's modes" in (refused.remark or "")

    b.store.restart()  # on ports of its own choice
    assert put(a.store, said("poppers", "t", "PULL")) == ResponseCode.SUCCESS
    assert put(a.store, said("poppers", "u")) == ResponseCode.SUCCESS
    wait_until(lambda: shown(b.store) == shown(a.store), "what is new, after a restart")

    internal = next(e["internal"] for e in b.store.events() if e["event"] == "listening internally")
    a.kill()
    with grpc.insecure_channel(internal) as channel:
        ReplicaLogStub(channel).Promote(log_pb.PromoteRequest(role=log_pb.ASYNC_MASTER))
    assert mode_of(b.store, "poppers", "u") == {"POP"}
    assert put(b.store, said("poppers", "v")) == ResponseCode.SUCCESS
    assert set(shown(b.store)) == {"t", "u", "v"}  # type: ignore[call-overload]


@pytest.mark.slow
def test_a_document_that_makes_no_sense_changes_nothing(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    assert put(a.store, said("poppers", "t")) == ResponseCode.SUCCESS
    wait_until(lambda: "t" in shown(b.store), "the slave has it")  # type: ignore[operator]
    file = a.store.directory / "config" / FILE
    sound = file.read_text()
    file.write_text('{"messageRequestModeMap":{"t":{"poppers":{"mode":"PUSH"}}}}')
    wait_until(lambda: "the master's request modes make no sense" in b.store.log.read_text(), "told")
    assert shown(b.store) == {"t": {"poppers": said("poppers", "t")}}
    file.write_text(sound.replace("POP", "PULL"))
    wait_until(lambda: shown(b.store) == {"t": {"poppers": said("poppers", "t", "PULL")}}, "followed again")


def answering(code: int, body: bytes) -> RemotingServer:
    """A RocketMQ master that answers so for its modes."""

    def answer(_: RemotingConnection, request: Command) -> Command:
        return request.answer(code, remark="said by a test", body=body)

    return RemotingServer(Handlers({RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: answer}))


async def asked_of(server: RemotingServer, root: Path) -> Any:
    address = f"127.0.0.1:{server.add_port('127.0.0.1:0')}"
    keeper = Keeper(root)
    await server.start()
    try:
        return await TablePuller(keeper, JavaLink(address, 30.0, keeper), frozenset()).request_modes()
    finally:
        await server.stop()
        await keeper.close()


async def test_a_rocketmq_master_is_asked_as_its_slaves_do(tmp_path: Path) -> None:
    document = '{"messageRequestModeMap":{"t":{"g":{"mode":"POP"}}}}'
    assert await asked_of(answering(ResponseCode.SUCCESS, document.encode()), tmp_path) == document
    assert await asked_of(answering(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, b""), tmp_path) is None
    with pytest.raises(MasterAway, match="said by a test"):
        await asked_of(answering(ResponseCode.SYSTEM_ERROR, b""), tmp_path)


def test_a_master_answers_its_own_stores_file(nodes: tuple[Node, Node]) -> None:
    a, _ = nodes
    with a.metasync.stub() as stub:
        assert stub.GetRequestModes(pb.GetRequestModesRequest()).document_json == ""
        assert put(a.store, said("poppers", "t")) == ResponseCode.SUCCESS
        document = stub.GetRequestModes(pb.GetRequestModesRequest()).document_json
    assert json.loads(document)[MAP] == {"t": {"poppers": said("poppers", "t")}}
