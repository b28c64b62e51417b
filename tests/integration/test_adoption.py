"""Rebuilt files are handed to a store process over gRPC while clients send, pull, wait and query."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.client import Outgoing, StoreClient
from tandemmq.client.aio import StoreClient as AsyncStoreClient
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.v1.derived_files_pb2 import AdoptRequest
from tandemmq.store.v1.derived_files_pb2_grpc import DerivedFilesStub
from tests.contract.store_process import SMALL, StoreProcess
from tests.unit.log.staging_kit import NAME, contents, sequential, stage

QUEUES = 4


@contextmanager
def derived_files(store: StoreProcess) -> Iterator[DerivedFilesStub]:
    """The stub of the internal port."""
    address = next(event["internal"] for event in store.events() if event["event"] == "listening internally")
    with grpc.insecure_channel(address) as channel:
        yield DerivedFilesStub(channel)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path / "store") as store:
        yield store


def config(root: Path) -> StoreConfig:
    return StoreConfig(
        root,
        mapped_file_size_commit_log=SMALL["mapped_file_size_commit_log"],
        mapped_file_size_consume_queue=SMALL["mapped_file_size_consume_queue"],
        max_hash_slot_num=SMALL["max_hash_slot_num"],
        max_index_num=SMALL["max_index_num"],
    )


def fill(client: StoreClient, begin: int, end: int) -> None:
    for at in range(begin, end, 100):
        numbers = range(at, min(at + 100, end))
        client.send_batch([Outgoing("orders", b"%d" % n, "", [f"key{n}"], {}, n % QUEUES) for n in numbers])


def everything(client: StoreClient) -> list[int]:
    """Every message of the topic, in the order of the queues."""
    found = []
    for queue_id in range(QUEUES):
        offset = 0
        while (pulled := client.pull("orders", queue_id, offset, max_messages=500)).records:
            assert [record.queue_offset for record in pulled.records] == list(range(offset, pulled.next_offset))
            found += [int(record.body) for record in pulled.records]
            offset = pulled.next_offset
    return found


def test_what_a_program_needs_to_read_the_log_by_itself(store: StoreProcess) -> None:
    with store.client() as client:
        fill(client, 0, 300)
        log = client.log()
        state = client.queues().log
    assert log.root == str(store.directory)
    assert (log.min_offset, log.max_offset) == (state.min_offset, state.max_offset)
    assert log.dispatched_offset == log.max_offset
    assert (log.file_size, log.consume_queue_file_size) == (128 * 1024, 4_000)
    assert (log.index_slots, log.index_entries, log.index_enabled) == (500, 2_000, True)
    assert list(log.delay_levels_ms[:3]) == [1_000, 5_000, 10_000]
    assert len(log.delay_levels_ms) == 18


async def test_the_asyncio_client_asks_the_same(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        async with AsyncStoreClient(store.address) as client:
            assert (await client.log()).root == str(store.directory)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_clients_notice_nothing(store: StoreProcess) -> None:
    with store.client() as client:
        fill(client, 0, 2_000)
        stage(config(store.directory), client.log().dispatched_offset)
        stop, sent, streamed = threading.Event(), [2_000], list[int]()

        def send() -> None:
            with store.client() as other:
                while not stop.is_set():
                    fill(other, sent[0], sent[0] + 20)
                    sent[0] += 20

        def stream() -> None:
            with store.client() as other:
                for pulled in other.pull_stream("orders", 1, 0):
                    streamed.extend(record.queue_offset for record in pulled.records)
                    if streamed and stop.is_set() and streamed[-1] >= (sent[0] - 1) // QUEUES:
                        return

        def wait() -> None:
            with store.client() as other:
                waited.append(other.pull("quiet", 0, 0, wait_seconds=300).status)

        waited: list[str] = []
        client.send("quiet", b"so that there is the topic", queue_id=1)
        threads = [threading.Thread(target=target) for target in (send, stream, wait)]
        for thread in threads:
            thread.start()
        with derived_files(store) as stub:
            answer = stub.Adopt(AdoptRequest(staging=NAME), timeout=100)
        begun = sent[0]
        while sent[0] < begun + 200:  # and some more after it
            stop.wait(0.01)
        stop.set()
        threads[0].join(60)
        fill(client, sent[0], sent[0] + QUEUES)  # the stream ends with these
        sent[0] += QUEUES
        client.send("quiet", b"at last", queue_id=0)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert answer.messages == 2_000
        assert answer.queues >= QUEUES
        assert answer.index_entries >= 2 * 2_000
        assert answer.position >= client.log().min_offset
        assert waited == ["FOUND"]
        assert streamed == list(range(len(streamed)))
        assert sorted(everything(client)) == list(range(sent[0]))
        for number in (0, 1_999, 2_000, sent[0] - 1):
            assert [int(record.body) for record in client.query("orders", key=f"key{number}")] == [number]
        end = client.log().dispatched_offset
    assert not (store.directory / NAME).exists()
    assert store.stop() == 0
    assert contents(store.directory) == sequential(config(store.directory), end)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../tandem.rebuild", grpc.StatusCode.INVALID_ARGUMENT),
        ("tandem.rebuild-not-there", grpc.StatusCode.NOT_FOUND),
        ("tandem.rebuild-unfinished", grpc.StatusCode.FAILED_PRECONDITION),
    ],
)
def test_a_refusal_says_why(store: StoreProcess, name: str, code: grpc.StatusCode) -> None:
    (store.directory / "tandem.rebuild-unfinished").mkdir()
    with derived_files(store) as stub, pytest.raises(grpc.RpcError) as refused:
        stub.Adopt(AdoptRequest(staging=name), timeout=60)
    error: Any = refused.value
    assert error.code() is code
    assert name in (error.details() or "")


@pytest.mark.slow
def test_killed_behind_an_adoption_and_started_again(store: StoreProcess) -> None:
    with store.client() as client:
        fill(client, 0, 1_000)
        stage(config(store.directory), client.log().dispatched_offset)
        fill(client, 1_000, 1_200)
        with derived_files(store) as stub:
            assert stub.Adopt(AdoptRequest(staging=NAME), timeout=100).tail_messages == 200
        fill(client, 1_200, 1_300)
    store.restart(signal.SIGKILL)
    opened = next(event for event in store.events() if event["event"] == "store open")
    assert not opened["rebuilding"]
    with store.client() as client:
        assert sorted(everything(client)) == list(range(1_300))
        assert len(client.query("orders", key="key1250")) == 1
