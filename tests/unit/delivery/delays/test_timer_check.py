"""`config/timercheck`: taken over from a RocketMQ broker, kept for one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.delays.timer_check import SIZE, BadTimerCheck, TimerCheck
from tandemmq.store.delivery.journal.facts import TimersDone
from tandemmq.store.log.edges.clock import SystemClock
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

LONG = st.integers(min_value=0, max_value=(1 << 63) - 1)
BYTES = (
    "0000018bcfe56800" "0000000000000034" "0000000000000007" "0000000000000005"
    "0000000000000001" "0000018bcfe5687b" "0000000000000009"
)  # fmt: skip


def test_the_bytes_are_those_of_rocketmq() -> None:
    data = bytes.fromhex(BYTES).ljust(SIZE, b"\0")
    check = TimerCheck.decode(data)
    assert check == TimerCheck(1_700_000_000_000, 52, 7, 5, (1, 1_700_000_000_123, 9))
    again = check.encode()
    assert (len(again), again[:56]) == (SIZE, data[:56])
    assert TimerCheck.decode(again) == replace(check, ours=True)


@given(LONG, LONG, LONG, LONG, st.tuples(LONG, LONG, LONG), st.integers(0, 447), st.integers(1, 10**9))
def test_what_another_has_written_is_told_from_rot(
    read: int, flush: int, queue: int, master: int, version: tuple[int, int, int], bit: int, later: int
) -> None:
    check = TimerCheck(read, flush, queue, master, version, ours=True)
    data = bytearray(check.encode())
    assert TimerCheck.decode(bytes(data)) == check
    data[bit // 8] ^= 1 << bit % 8
    assert TimerCheck.decode(bytes(data)) == replace(check, rotten=True), "a flipped bit changes nothing"
    seconds = read // 10**4 * 1_000, (read // 10**4 + later) * 1_000
    ours = bytearray(replace(check, read_ms=seconds[0]).encode())
    ours[:8] = seconds[1].to_bytes(8, "big")
    assert TimerCheck.decode(bytes(ours)) == replace(check, read_ms=seconds[1], ours=False)


@pytest.mark.parametrize("data", [b"", b"x" * 55, b"\xff" * SIZE])
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(BadTimerCheck):
        TimerCheck.decode(data)


def file_of(root: Path) -> Path:
    return root / "config" / "timercheck"


async def send(at: DeliveringStore, body: bytes, after_ms: int) -> None:
    due = str(SystemClock().now_ms() + after_ms)
    await at.broker.send(NewMessage("orders", HOST, body, {"TIMER_DELIVER_MS": due}, 0))


async def wait_for(at: DeliveringStore, messages: int) -> None:
    for _ in range(1_000):
        queue = at.store.queue("orders", 0)
        if queue is not None and queue.max_offset >= messages:
            return
        await at.store.timers.sleep(0.05)
    raise AssertionError("nothing was delivered")


@asynccontextmanager
async def with_timers(root: Path, *after_ms: int) -> AsyncIterator[DeliveringStore]:
    async with delivering(root) as at:
        for number, ms in enumerate(after_ms):
            await send(at, b"%d" % number, ms)
        yield at


async def test_it_says_from_where_on_a_rocketmq_broker_must_read(tmp_path: Path) -> None:
    async with with_timers(tmp_path, 300, 3_600_000, 400) as at:
        await wait_for(at, 2)
    check = TimerCheck.decode(file_of(tmp_path).read_bytes())
    assert (check.queue_offset, check.master_queue_offset, check.ours) == (1, 1, True)
    assert 0 < check.read_ms <= SystemClock().now_ms()
    assert check.read_ms % 1_000 == 0


async def test_with_nothing_pending_it_reads_nothing_again(tmp_path: Path) -> None:
    async with with_timers(tmp_path, 300, 200) as at:
        await wait_for(at, 2)
    assert TimerCheck.decode(file_of(tmp_path).read_bytes()).queue_offset == 2


async def test_a_store_without_timers_has_no_such_file(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await at.send("orders", 1)
    assert not file_of(tmp_path).exists()


async def test_what_a_rocketmq_broker_has_delivered_does_not_come_again(tmp_path: Path) -> None:
    async with with_timers(tmp_path, 300_000, 3_700_000, 3_700_000) as at:
        assert at.delivery.ledger.timers is None
    now = SystemClock().now_ms()
    theirs = TimerCheck(now - now % 1_000 + 400_000, 104, 2, 2, (0, now, 3))  # its clock is ahead
    file_of(tmp_path).write_bytes(theirs.encode()[:56].ljust(SIZE, b"\0"))
    (tmp_path / "timerlog").mkdir()
    wheel = tmp_path / "timerwheel", tmp_path / "timerlog" / f"{0:020}"
    for path in wheel:
        path.write_bytes(b"x")
    for _ in range(2):
        async with delivering(tmp_path) as at:
            done = at.delivery.ledger.timers
            assert done == TimersDone(2, theirs.read_ms, (1 << 63) - 1)
        check = TimerCheck.decode(file_of(tmp_path).read_bytes())
        assert (check.flush_position, check.version, check.ours) == (0, theirs.version, True)
        assert not any(path.exists() for path in wheel), "it begins anew from where the file says"
        assert check.queue_offset == 1, "the second is not due, and the third not read there"


async def test_one_that_says_less_than_is_known_changes_nothing(tmp_path: Path) -> None:
    async with with_timers(tmp_path, 300) as at:
        await wait_for(at, 1)
        known = at.delivery.ledger.timers
    assert known is not None
    file_of(tmp_path).write_bytes(
        TimerCheck(known.due // 1_000 * 1_000 - 5_000, 0, 1, 0).encode()[:56].ljust(SIZE, b"\0")
    )
    async with delivering(tmp_path) as at:
        assert at.delivery.ledger.timers == known
        queue = at.store.queue(TIMER_TOPIC, 0)
        assert queue is not None
        assert queue.max_offset == 1


async def test_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    async with with_timers(tmp_path, 3_600_000):
        pass
    now = SystemClock().now_ms() // 1_000 * 1_000
    for data in (b"damaged", TimerCheck(now + 700_000).encode()[:56], TimerCheck(now + 1, 0, 1, 1).encode()[:56]):
        file_of(tmp_path).write_bytes(data.ljust(SIZE, b"\0") if len(data) == 56 else data)
        async with delivering(tmp_path) as at:
            assert at.delivery.ledger.timers is None
    assert TimerCheck.decode(file_of(tmp_path).read_bytes()).ours
