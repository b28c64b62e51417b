"""Rebuilds of a running store under sends, job and store killed at any moment: in the end exactly the right entries.

``TANDEM_SEED=<n>`` replays the choices, ``TANDEM_TEST_REBUILD_ROUNDS=<n>`` makes it longer.
"""

import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.client import Outgoing, StoreClient
from tandemmq.client.errors import ClientError
from tandemmq.spark.rebuilding.staging import StagingDirectory
from tandemmq.store.format.index_layout import IndexHeader, read_entry
from tandemmq.store.format.unit import UNIT_SIZE, unpack_units
from tests.contract.store_process import SMALL, StoreProcess
from tests.faults.harness import SEED
from tests.spark.kit import Files, Sizes, by_log_code, files_of
from tests.spark.kit_job import PATIENCE, Job

ROUNDS = int(os.environ.get("TANDEM_TEST_REBUILD_ROUNDS", "12"))
SIZES = Sizes(
    SMALL["mapped_file_size_commit_log"], SMALL["mapped_file_size_consume_queue"], SMALL["max_hash_slot_num"],
    SMALL["max_index_num"], (1_000,),
)  # fmt: skip
TOPICS = ["Orders", "Rare", "Log"]


class Load:
    """Sends all the time, to whichever store there is, and remembers what was acknowledged."""

    def __init__(self, seed: int) -> None:
        self.address = ""
        self.acked: dict[tuple[str, int, int], str] = {}
        self.problems: list[str] = []
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def stop(self) -> None:
        """Send no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._over.is_set():
            address = self.address
            with suppress(ClientError), StoreClient(address or "127.0.0.1:1") as client:
                while not self._over.wait(0.005) and address == self.address:
                    messages = [
                        Outgoing(topic, bytes(self._random.randrange(200)), "tag", [f"key{number}", "all"], {}, queue)
                        for topic, queue in self._queues()
                    ]
                    number += 1
                    for message, receipt in zip(messages, client.send_batch(messages), strict=True):
                        self._note(message.topic, receipt.queue_id, receipt.queue_offset, receipt.message_id)
            self._over.wait(0.02)

    def _queues(self) -> list[tuple[str, int]]:
        chosen = self._random.choices(TOPICS, weights=[10, 1, 4], k=self._random.randrange(1, 25))
        return [(topic, self._random.randrange(3)) for topic in chosen]

    def _note(self, topic: str, queue_id: int, offset: int, message: str) -> None:
        before = self.acked.setdefault((topic, queue_id, offset), message)
        if before != message:
            self.problems.append(f"offset {offset} of {topic}/{queue_id} was given to {before} and {message}")


def node_address(store: StoreProcess) -> str:
    """Where the store's own node reaches it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for event in store.events():
            if event["event"] == "listening internally":
                return str(event["internal"])
        time.sleep(0.01)
    raise AssertionError("the store does not say where it listens for its node")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreProcess]:
    process = StoreProcess(tmp_path / "store", message_delay_level="1s")
    process.start()
    yield process
    if process.running:
        process.stop(signal.SIGKILL)
    shutil.rmtree(tmp_path / "store")


def entries_of(files: Files) -> list[tuple[int, int]]:
    """Hash and physical offset of every index entry."""
    found = []
    for data in files.index:
        for number in range(1, IndexHeader.unpack(data).index_count):
            entry = read_entry(data, SIZES.slots, number)
            found.append((entry.key_hash, entry.physical_offset))
    return found


def check(root: Path, load: Load, scratch: Path) -> None:
    """Queues and index of the closed store are those of its log, and every acknowledged message is in its place."""
    want, got = by_log_code(root, scratch, SIZES), files_of(root)
    assert Files(got.queues, []).differences(Files(want.queues, [])) == []
    assert entries_of(got) == entries_of(want)
    assert load.problems == []
    for (topic, queue_id, offset), message in load.acked.items():
        at = offset * UNIT_SIZE
        start = at - at % SIZES.queue_file
        data = got.queues[f"consumequeue/{topic}/{queue_id}/{start:020d}"]
        (unit,) = unpack_units(data[at - start : at - start + UNIT_SIZE])
        assert unit.physical_offset == int(message[-16:], 16), (topic, queue_id, offset)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_rebuilds_under_sends_with_kills_of_job_and_store(store: StoreProcess, tmp_path: Path) -> None:
    chance, root = random.Random(SEED), tmp_path / "store"
    staging = StagingDirectory(root / "tandem.rebuild")
    load, done = Load(SEED), {"job killed": 0, "store killed": 0, "adopted": 0}
    load.address = store.address
    try:
        wait_for_load(load, 50)
        for _ in range(ROUNDS):
            if not store.running:
                store.start()
                load.address = store.address
            job = Job(root, tmp_path / "job.log", chance.choice([3, 20]), running=(store.address, node_address(store)))
            victim = chance.choice(["job", "store", "nobody"])
            goal, wait = chance.randrange(14), chance.random() * 0.05
            late = chance.random() < 0.5  # when the job has given its work away, or has it nearly done

            def reached(goal: int = goal, late: bool = late) -> bool:
                if late:
                    return (staging.path / "tandem.rebuilt").exists()
                return staging.count("scan") + staging.count("built") >= goal and staging.path.exists()

            if victim == "job":
                done["job killed"] += job.kill_when(reached)
            elif victim == "store":
                while not reached() and job.process.poll() is None:
                    time.sleep(0.001)
                time.sleep(wait)
                store.stop(signal.SIGKILL)
                done["store killed"] += 1
                job.process.wait(PATIENCE)
            else:
                done["adopted"] += job.report()["published"] == "adopted"
        if not store.running:
            store.start()
            load.address = store.address
        with store.client() as client:
            wait_until_ready(client)
        report = Job(root, tmp_path / "job.log", running=(store.address, node_address(store))).report()
        assert report["published"] == "adopted"
        wait_for_load(load, max(201, len(load.acked) + 50))  # the store goes on with what it took over
    finally:
        load.stop()
    assert store.stop() == 0
    assert not staging.path.exists()
    assert len(load.acked) > 200
    assert sum(done.values()) > ROUNDS // 2, done
    sys.stdout.write(f"{done}, {len(load.acked)} messages\n")
    check(root, load, tmp_path / "sequential")


def wait_for_load(load: Load, number: int) -> None:
    """So many messages are acknowledged."""
    deadline = time.monotonic() + PATIENCE
    while len(load.acked) < number:
        assert time.monotonic() < deadline, f"{len(load.acked)} of {number} messages"
        time.sleep(0.01)


def wait_until_ready(client: StoreClient) -> None:
    """The store answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            client.log()
            return
        except ClientError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
