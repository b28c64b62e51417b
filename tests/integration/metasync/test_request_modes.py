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
from tandemmq.metasync.errors import MasterAway, UnreadableDocument
from tandemmq.metasync.java_master import JavaLink
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.request_modes import modes_of_store
from tandemmq.store.v1 import replica_log_pb2 as log_pb
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import port_of
from tests.contract.remoting.test_request_modes import FILE, MAP, mode_of, put, said, shown
from tests.integration.metasync.test_sync import put as put_topic
from tests.integration.metasync.test_with_store import Node
from tests.metasync_process import MetasyncProcess, wait_until

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


def refusal_of(slave: MetasyncProcess) -> str:
    """Why a slave has no modes; fails where it does not say so at once."""
    with slave.stub() as stub, pytest.raises(grpc.RpcError) as refused:
        stub.GetRequestModes(pb.GetRequestModesRequest(), timeout=5)
    return str(refused.value.details())


def test_two_slaves_do_not_ask_each_other_for_ever(tmp_path: Path) -> None:
    """So it is in the middle of a change of masters."""
    with MetasyncProcess(tmp_path / "a") as a, MetasyncProcess(tmp_path / "b", broker_role="SLAVE") as b:
        b.settings["metasync_master_address"] = a.address
        b.restart()
        a.settings |= {"broker_role": "SLAVE", "metasync_master_address": b.address}
        a.restart()
        for each, other in ((a, b), (b, a)):
            assert f"{other.address} is a slave itself" in refusal_of(each)


def test_a_master_that_has_lost_its_tables_is_not_followed(tmp_path: Path) -> None:
    with (
        MetasyncProcess(tmp_path / "a", broker_role="ASYNC_MASTER") as master,
        MetasyncProcess(tmp_path / "b", broker_role="SLAVE", metasync_master_address=master.address) as slave,
    ):
        put_topic(master, "t")
        wait_until(lambda: slave.names() == {"t"}, "copied")
        for file in (master.directory / "config").iterdir():
            file.unlink()
        master.restart()
        assert "is older" in refusal_of(slave)


def test_modes_are_read_as_the_store_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "config" / FILE
    backup = file.with_name(f"{FILE}.bak")
    assert modes_of_store(tmp_path) == ""
    file.parent.mkdir()
    backup.write_text('{"messageRequestModeMap":{}}')
    assert modes_of_store(tmp_path) == backup.read_text(), "the file is missing"
    file.write_text('{"messageRequestModeMap":{"t"')
    assert modes_of_store(tmp_path) == backup.read_text(), "the file is broken"
    backup.unlink()
    with pytest.raises(UnreadableDocument, match=FILE):
        modes_of_store(tmp_path)
    file.write_text('{"messageRequestModeMap":{"t":{}}}')
    assert modes_of_store(tmp_path) == file.read_text()


def test_a_master_that_was_replaced_takes_none(nodes: tuple[Node, Node]) -> None:
    a, _ = nodes
    internal = next(e["internal"] for e in a.store.events() if e["event"] == "listening internally")
    with grpc.insecure_channel(internal) as channel:
        ReplicaLogStub(channel).Fence(log_pb.FenceRequest(epoch=7))
    with ClassicClient(port_of(a.store)) as client:
        body = json.dumps(said("poppers", "t")).encode()
        refused = client.call(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
    assert (refused.code, shown(a.store)) == (ResponseCode.SYSTEM_ERROR, {})
    assert "a newer master has replaced it" in (refused.remark or "")


def test_a_master_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    away = {"metasync_master_address": "127.0.0.1:1", "metasync_initial_delay": 3_600_000}
    with MetasyncProcess(tmp_path / "b", broker_role="SLAVE", **away) as slave:
        assert refusal_of(slave).startswith("127.0.0.1:1 answers UNAVAILABLE")
        assert "GetRequestModes" not in slave.log.read_text(), "it is no failure of ours"
