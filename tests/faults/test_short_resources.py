"""Memory and descriptors run short while a store runs: errors are clear, nothing acknowledged is lost, and the store
goes on by itself when there is room again."""

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandemmq.client import StoreClient
from tandemmq.client.errors import ClientError
from tandemmq.store.v1 import store_pb2
from tests.contract.store_process import START_SECONDS, StoreProcess

pytestmark = [pytest.mark.slow, pytest.mark.serial, pytest.mark.timeout(300)]

LESS_THAN_A_STACK = 6 << 20
"""Room for what Python needs meanwhile; a new thread asks for 8 MiB."""
QUEUES = 4


@contextmanager
def limited(store: StoreProcess, kind: int, soft: int) -> Iterator[None]:
    """A limit of the running process, lower for the length of the block."""
    assert store.process is not None
    before = resource.prlimit(store.process.pid, kind)
    resource.prlimit(store.process.pid, kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(store.process.pid, kind, before)


def address_space(store: StoreProcess) -> int:
    assert store.process is not None
    pages = int(Path(f"/proc/{store.process.pid}/statm").read_text().split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_files(store: StoreProcess) -> int:
    assert store.process is not None
    return len(os.listdir(f"/proc/{store.process.pid}/fd"))


class Ledger:
    """Sends, and what became of them."""

    def __init__(self, store: StoreProcess, client: StoreClient) -> None:
        self._store, self._client = store, client
        self._number = 0
        self.acked: dict[tuple[int, int], bytes] = {}
        self.told: list[str] = []

    def send(self, times: int, size: int = 0) -> None:
        for _ in range(times):
            body = b"%d " % self._number + bytes(size)
            queue_id = self._number % QUEUES
            self._number += 1
            try:
                receipt = self._client.send("orders", body, queue_id=queue_id)
            except ClientError as error:
                self.told.append(error.code)
                continue
            self.told.append(store_pb2.SendStatus.Name(receipt.status))
            if receipt.status == store_pb2.PUT_OK:
                assert (queue_id, receipt.queue_offset) not in self.acked
                self.acked[queue_id, receipt.queue_offset] = body

    def send_until_taken(self) -> None:
        deadline, before = time.monotonic() + START_SECONDS, len(self.acked)
        while len(self.acked) < before + 10:
            assert time.monotonic() < deadline, self._store.log.read_text()
            self.send(1)

    def check(self, client: StoreClient) -> None:
        found: dict[tuple[int, int], bytes] = {}
        for queue_id in range(QUEUES):
            offset = 0
            while records := (pulled := client.pull("orders", queue_id, offset)).records:
                found |= {(queue_id, record.queue_offset): record.body for record in records}
                offset = pulled.next_offset
        assert {place: found.get(place) for place in self.acked} == self.acked


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path / "data", flush_disk_type="SYNC_FLUSH", sync_flush_timeout=2_000) as running:
        yield running


def ends_well(store: StoreProcess, ledger: Ledger) -> None:
    """The store can be stopped, it was a clean stop, and all that was acknowledged is there."""
    assert store.stop(signal.SIGTERM) == 0
    assert not (store.directory / "abort").exists()
    store.start()
    with store.client() as client:
        ledger.check(client)


def test_memory_short_before_the_first_send_leaves_nothing_behind(store: StoreProcess) -> None:
    """The flush thread was started by the first send. Failing, it left a store that looked well and flushed nothing."""
    with store.client() as client:
        ledger = Ledger(store, client)
        with limited(store, resource.RLIMIT_AS, address_space(store) + LESS_THAN_A_STACK):
            ledger.send(20)
        assert set(ledger.told) == {"PUT_OK"}
        ledger.send_until_taken()
    ends_well(store, ledger)


def test_no_memory_at_all_for_a_while(store: StoreProcess) -> None:
    """Not even for the next log file: what is refused is refused in words."""
    with store.client() as client:
        ledger = Ledger(store, client)
        ledger.send(8)
        with limited(store, resource.RLIMIT_AS, address_space(store)):
            ledger.send(40, size=20_000)
        assert set(ledger.told) <= {"PUT_OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL"}
        ledger.send_until_taken()
    ends_well(store, ledger)


def test_no_descriptors_for_a_while(store: StoreProcess) -> None:
    """No file can be opened and no connection accepted; those that are open go on."""
    with store.client() as client:
        ledger = Ledger(store, client)
        ledger.send(8)
        with limited(store, resource.RLIMIT_NOFILE, open_files(store)):
            host, port = store.address.rsplit(":", 1)
            waiting = [socket.create_connection((host, int(port))) for _ in range(3)]
            waiting.append(socket.create_connection((host, store.metrics_port)))
            ledger.send(40, size=20_000)
        for one in waiting:
            one.close()
        assert set(ledger.told) <= {"PUT_OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}
        assert "UNAVAILABLE" in ledger.told
        ledger.send_until_taken()
    assert not [event for event in store.events() if event["level"] == "critical"]
    ends_well(store, ledger)
