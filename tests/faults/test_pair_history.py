"""A slave that comes late, comes back late, or comes with another history."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.harness import SEED, TOPICS
from tests.faults.pair import Node, Pair, stopped
from tests.faults.pair_checks import assert_logs_equal, assert_queues_equal, log_files, missing_on
from tests.faults.pair_load import PUT_OK, Told, load, outgoing
from tests.faults.pair_process import ServiceProcess, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
STORE_TIMESTAMP = 56 + 7
"""Last byte of the time in a record: no checksum covers it."""
EXPIRES = {
    "fileReservedTime": 0,
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "cleanResourceInterval": 300,
    "deleteFileBatchMax": 1,
}
"""Files go as soon as they are full, one every 300 ms: who waits for some of them, can stop in time."""


def fill(node: Node, number: int, name: str) -> list[Told]:
    """So many messages that wait for nobody."""
    told: list[Told] = []
    with node.client() as client:
        for begin in range(0, number, 50):
            values = [f"{name}-{at}" for at in range(begin, begin + 50)]
            messages = [outgoing(TOPICS[at % 3], value) for at, value in enumerate(values)]
            for message, value, one in zip(messages, values, client.send_batch(messages, no_wait=True), strict=True):
                assert one.status == PUT_OK
                told.append(Told(value, message.topic, one.queue_id, one.queue_offset, one.physical_offset, one.status))
    return told


def expire(node: Node, files: int) -> int:
    """Lets so many files of the log go, and no more; the offset at which it begins now. The store is started anew."""
    store = node.store
    kept = dict(store.settings)
    for settings in (EXPIRES, {}):
        if store.running:
            store.stop()
        store.settings = {**kept, **settings}
        store.start()
        if settings:
            until(lambda: node.role().min_offset >= files * FILE_SIZE, 60, "files expire")
    return int(node.role().min_offset)


def run(process: ServiceProcess) -> None:
    """Starts a process unless it runs."""
    if not process.running:
        process.start()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A pair of which nothing runs."""
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def test_an_empty_slave_takes_the_whole_history(pair: Pair) -> None:
    """All that there is, from the first file that the master still has: far above 0."""
    pair.master.start()
    told = fill(pair.master, 6_000, "history")
    begin = expire(pair.master, 4)
    pair.heal()
    assert pair.slave.role().min_offset == begin >= 4 * FILE_SIZE
    end = pair.master.role().max_offset
    with stopped(pair):
        assert assert_logs_equal(pair.master.root, pair.slave.root, end, begin=begin) > 5 * FILE_SIZE
        assert not missing_on(pair.slave.root, FILE_SIZE, told, begin)


def test_an_empty_slave_takes_the_history_from_0(pair: Pair) -> None:
    pair.master.start()
    told = fill(pair.master, 4_000, "history")
    pair.heal()
    end = pair.master.role().max_offset
    with stopped(pair):
        assert assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0) > 5 * FILE_SIZE
        assert not missing_on(pair.slave.root, FILE_SIZE, told)
        assert_queues_equal(pair.master.root, pair.slave.root)


def test_files_expire_while_the_slave_catches_up(pair: Pair) -> None:
    """The slave was away while the master's first files went; it had what the master still has, and goes on."""
    pair.master.start()
    fill(pair.master, 3_000, "before")
    pair.heal()
    had = pair.slave.role().max_offset
    pair.slave.stop()
    fill(pair.master, 2_000, "away")
    begin = expire(pair.master, 2)
    assert begin < had
    pair.heal()
    fill(pair.master, 500, "after")
    pair.wait_level()
    end = pair.master.role().max_offset
    with stopped(pair):
        assert_logs_equal(pair.master.root, pair.slave.root, end, begin=begin)


def test_a_slave_forgets_on_its_own(tmp_path: Path) -> None:
    """Its files expire sooner than its master's: it goes on, also after a restart; what both have is the same."""
    pair = Pair(tmp_path, slave_store=EXPIRES)
    try:
        pair.master.start()
        fill(pair.master, 2_000, "before")
        pair.heal()
        for name in ("first", "second"):
            fill(pair.master, 1_500, name)
            pair.wait_level()
            until(lambda: pair.slave.role().min_offset > 2 * FILE_SIZE, 60, "files expire at the slave")
            pair.slave.stop()
            pair.heal()
        end, begin = pair.master.role().max_offset, pair.slave.role().min_offset
        with stopped(pair):
            assert_logs_equal(pair.master.root, pair.slave.root, end, begin=pair_begin(pair.slave, begin))
    finally:
        pair.close()


def pair_begin(node: Node, begin: int) -> int:
    """Where a log begins when files went since it was asked for."""
    return max(begin, min(log_files(node.root)))


def test_a_slave_that_was_away_too_long_is_told_to_begin_anew(pair: Pair) -> None:
    """What comes next is gone from the master: nothing is appended, it is said, and an empty directory helps."""
    pair.master.start()
    fill(pair.master, 1_000, "before")
    pair.heal()
    pair.slave.stop()
    before = contents(pair.slave.root)
    fill(pair.master, 6_000, "away")
    begin = expire(pair.master, max(log_files(pair.slave.root)) // FILE_SIZE + 2)
    for process in pair.slave.processes.values():
        run(process)
    run(pair.master.replicator)
    problem = pair.wait_refused()
    assert str(begin) in problem
    pair.slave.stop()
    assert contents(pair.slave.root) == before
    shutil.rmtree(pair.slave.root)
    pair.heal()
    assert pair.slave.role().min_offset >= begin


def contents(root: Path) -> dict[str, bytes]:
    """The bytes of a log, file by file; files that hold nothing yet do not count."""
    found = {path.name: path.read_bytes() for path in log_files(root).values()}
    return {name: data for name, data in found.items() if data.strip(b"\0")}


@pytest.mark.parametrize("slave_messages", [300, 3_000], ids=["shorter", "longer"])
def test_a_fork_is_refused_and_appended_to_never(pair: Pair, slave_messages: int) -> None:
    """The slave's directory was somebody else's: a shorter log with other bytes, or a longer one."""
    pair.master.start()
    fill(pair.master, 1_500, "ours")
    role = pair.slave.store.settings["brokerRole"]
    pair.slave.store.settings |= {"brokerRole": "ASYNC_MASTER", "brokerId": 0}
    pair.slave.store.start()
    fill(pair.slave, slave_messages, "theirs")
    pair.slave.store.stop()
    pair.slave.store.settings |= {"brokerRole": role, "brokerId": 1}
    before = contents(pair.slave.root)
    pair.slave.start()
    assert pair.wait_refused()
    fill(pair.master, 500, "more")
    assert pair.wait_refused()
    status = pair.master.status()
    assert status is not None
    assert status.in_sync == 0
    pair.slave.stop()
    assert contents(pair.slave.root) == before


def test_a_slave_that_is_ahead_is_refused_and_can_be_promoted(pair: Pair) -> None:
    """The master has lost its end (put back from a copy, as after a power cut): nothing is cut off or appended."""
    pair.master.start()
    fill(pair.master, 500, "before")
    pair.heal()
    pair.master.stop()
    copy = shutil.copytree(pair.master.root, pair.master.directory / "copy")
    pair.master.start()
    told = fill(pair.master, 1_000, "lost")
    pair.heal()
    pair.master.stop()
    shutil.rmtree(pair.master.root)
    copy.rename(pair.master.root)
    before = contents(pair.slave.root)
    pair.master.start()
    assert pair.wait_refused()
    fill(pair.master, 100, "new")
    assert pair.wait_refused()
    assert contents(pair.slave.root) == before
    pair.master.kill()
    request = PromoteRequest(role=BrokerRole.SYNC_MASTER, old_master_is_gone=True)
    promoted = pair.slave.replication().Promote(request, timeout=60).state
    assert promoted.identity.role == BrokerRole.SYNC_MASTER
    assert not missing_on(pair.slave.root, FILE_SIZE, told)


def test_a_slave_begins_anew_under_load(pair: Pair) -> None:
    """Its directory is lost while producers are at work: a new one takes all, and no send is told PUT_OK too soon."""
    pair.master.start()
    fill(pair.master, 3_000, "before")
    pair.heal()
    with load(pair.master.address("store"), None, FILE_SIZE, SEED, producers=2) as ledger:
        for _ in range(2):
            told = len(ledger.of())
            until(lambda: len(ledger.of()) >= told + 100, 60, lambda: f"{ledger.count()}")  # noqa: B023
            pair.slave.kill()
            lost = len(ledger.of())
            shutil.rmtree(pair.slave.root)
            pair.slave.start()
            until(lambda: len(ledger.of()) > lost + 100, 60, pair.describe)  # noqa: B023
            acknowledged = ledger.of()[lost + 30 :]  # behind what was on its way: of each producer, up to 11
            assert not missing_on(pair.slave.root, FILE_SIZE, acknowledged)
    pair.wait_level()
    end = pair.master.role().max_offset
    with stopped(pair):
        assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0)
        assert_queues_equal(pair.master.root, pair.slave.root)


def test_one_changed_byte_near_the_end_is_found(pair: Pair) -> None:
    """The overlap is compared before anything is appended. (The file is changed while nobody runs.)"""
    pair.master.start()
    told = fill(pair.master, 1_500, "ours")
    pair.heal()
    pair.slave.stop()
    target = told[-1].physical_offset + STORE_TIMESTAMP
    with (pair.slave.root / "commitlog" / f"{target // FILE_SIZE * FILE_SIZE:020}").open("r+b") as file:
        file.seek(target % FILE_SIZE)
        byte = file.read(1)[0]
        file.seek(target % FILE_SIZE)
        file.write(bytes([byte ^ 1]))
    before = contents(pair.slave.root)
    fill(pair.master, 500, "more")
    pair.slave.start()
    assert pair.wait_refused()
    pair.slave.stop()
    assert contents(pair.slave.root) == before


def test_another_file_size_is_refused(tmp_path: Path) -> None:
    pair = Pair(tmp_path, slave_store={"mappedFileSizeCommitLog": 2 * FILE_SIZE})
    try:
        pair.master.start()
        fill(pair.master, 1_000, f"seed{SEED % 10}")
        pair.slave.start()
        problem = pair.wait_refused()
        assert str(FILE_SIZE) in problem.replace(",", "")
        assert not contents(pair.slave.root)
    finally:
        pair.close()
