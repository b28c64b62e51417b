"""What facts and index say of timers is true at every moment: whoever goes on from there loses none."""

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.recalls import MessageRecalls, RecallHandle
from tandemmq.store.delivery.delays.timer_entry import HOUR_MS, TimerEntry
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.delays.timer_slot import hour_of
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.journal.facts import LevelDone
from tandemmq.store.format import properties
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tandemmq.store.log.edges.disk import LocalDisk
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.delays.delay_kit import BEGIN, DelayKit, delaying


async def at(kit: DelayKit, when: int, body: bytes) -> None:
    await kit.send(body, TIMER_DELIVER_MS=str(when))


async def test_a_clock_that_was_ahead_loses_no_timer_at_the_next_start(tmp_path: Path) -> None:
    """Delivered up to an hour ahead: what comes later for a time before that is not done yet, however far away."""
    async with delaying(tmp_path, now=BEGIN + HOUR_MS) as kit:
        await at(kit, BEGIN + HOUR_MS + 1_000, b"ahead")
        await kit.pass_time(2)
    async with delaying(tmp_path) as kit:
        await at(kit, BEGIN + 1_000, b"soon")
        await at(kit, BEGIN + 40_000, b"later")
        await at(kit, BEGIN + 2_000, b"next")
        await kit.pass_time(3)
        await at(kit, BEGIN + 10_000, b"while down")
    seen = [b"ahead", b"soon", b"next"]
    async with delaying(tmp_path, now=BEGIN + 30_000) as kit:
        await kit.pass_time(1)
        assert kit.bodies()[:3] == seen
        assert set(kit.bodies()[3:]) <= {b"next", b"while down"}, "what lies behind one that waits may come again"
        assert b"while down" in kit.bodies()
        await kit.pass_time(10)
        assert kit.bodies().count(b"later") == kit.bodies().count(b"while down") == 1
        known = kit.journal.ledger.timers
        assert known is not None
        assert (known.indexed, known.due) == (5, BEGIN + HOUR_MS + 1_000)
        bodies = kit.bodies()
    async with delaying(tmp_path, now=BEGIN + 2 * HOUR_MS) as kit:
        await kit.pass_time(2)
        assert kit.bodies() == bodies


async def test_an_index_ahead_of_a_queue_that_was_being_rebuilt_waits_for_no_more_timers(tmp_path: Path) -> None:
    """The queue stays shorter than the index says: what comes next is a timer like others."""
    async with delaying(tmp_path / "a") as kit:
        for number in range(3):
            await at(kit, BEGIN + 4 * HOUR_MS, b"%d" % number)
        await kit.pass_time(0)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    async with delaying(tmp_path / "a") as kit:
        for number in range(3, 6):
            await at(kit, BEGIN + 4 * HOUR_MS, b"%d" % number)
        await kit.pass_time(0)
    shutil.rmtree(tmp_path / "b" / "timers")
    shutil.copytree(tmp_path / "a" / "timers", tmp_path / "b" / "timers")
    async with delaying(tmp_path / "b") as kit:
        queue = kit.kit.store.queue(TIMER_TOPIC, 0)
        assert queue is not None
        queue.rebuilding = True
        await kit.pass_time(1)
        queue.rebuilding = False
        await at(kit, BEGIN + 2_000, b"new")
        await kit.pass_time(3)
        assert kit.bodies() == [b"new"]


async def test_a_level_ahead_of_a_queue_that_was_being_rebuilt_goes_on(tmp_path: Path) -> None:
    async with delaying(tmp_path, starts=False) as kit:
        await kit.send(b"first", DELAY="1")
        kit.journal.note(LevelDone(1, 3))
    async with delaying(tmp_path, starts=False) as kit:
        queue = kit.kit.store.queue(SCHEDULE_TOPIC, 0)
        assert queue is not None
        queue.rebuilding = True
        kit.delays.start()
        await kit.pass_time(1)
        queue.rebuilding = False
        await kit.pass_time(2)  # it has tried in vain up to five times: the pause after that is 1.6 s at most
        await kit.send(b"new", DELAY="1")
        await kit.pass_time(2)
        assert kit.bodies() == [b"new"]


def test_an_hour_that_is_over_keeps_its_minutes_while_one_has_a_late_timer(tmp_path: Path) -> None:
    """Else the next late one would go into a file of the hour, beside one of its minutes: that index is none."""
    hour = BEGIN - BEGIN % HOUR_MS
    late = [TimerEntry(hour + 1 + number, number, 1_000 + number, 7) for number in range(3)]
    index = TimerIndex(tmp_path / "timers", LocalDisk())
    index.load()
    index.add(late[:1], 1, 1_000)
    for _ in index.split(hour_of(hour)):
        pass
    index.add(late[1:2], 2, 1_001)
    index.drop(1, hour + 2 * HOUR_MS, 0)
    index.add(late[2:], 3, 1_002)
    pending = index.checkpoint()
    pending.write()
    index.remove(index.written(pending))
    index.close()
    again = TimerIndex(tmp_path / "timers", LocalDisk())
    again.load()
    assert (again.indexed, again.entries) == (3, 3)
    again.close()


async def test_a_recall_that_is_not_confirmed_yet_at_a_start_counts(tmp_path: Path) -> None:
    """A synchronous master that starts does not know yet what its slaves have: it shows the message, not its recall."""
    async with delaying(tmp_path, starts=False) as kit:
        waits = await kit.send(b"x", TIMER_DELIVER_MS=str(BEGIN + 3_000))
        handle = RecallHandle("orders", "a", BEGIN + 3_000, waits.properties[properties.UNIQ_KEY])
        await MessageRecalls(kit.kit.broker, kit.wall).recall("orders", str(handle), HOST)
        await at(kit, BEGIN + 3_000, b"other")
    shutil.rmtree(tmp_path / "timers")
    async with delaying(tmp_path, now=BEGIN + 10_000, starts=False) as kit:
        confirmed = kit.kit.store._parts.confirmed
        confirmed.limit = waits.physical_offset + waits.size
        kit.delays.start()
        await kit.pass_time(3)
        assert kit.delays.index.indexed == 1
        assert kit.bodies() == []
        confirmed.show_all()
        await kit.pass_time(3)
        assert kit.bodies() == [b"other"]
        assert kit.counts.recalled == 1
        assert (kit.counts.timers_in, kit.counts.timers_out) == ({"orders": 2}, {"orders": 1})


class LaterClock:
    """Shows a time once, and then a later one."""

    def __init__(self, first: int, later: int) -> None:
        self._times = [first, later]

    def now_ms(self) -> int:
        return self._times.pop(0)


async def test_a_recall_that_is_safe_too_late_is_not_answered_with_success(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        waits = await kit.send(b"x", TIMER_DELIVER_MS=str(BEGIN + 3_000))
        handle = str(RecallHandle("orders", "a", BEGIN + 3_000, waits.properties[properties.UNIQ_KEY]))
        with pytest.raises(HandleExpired, match="may have been delivered"):
            await MessageRecalls(kit.kit.broker, LaterClock(BEGIN, BEGIN + 3_000)).recall("orders", handle, HOST)
        assert await MessageRecalls(kit.kit.broker, LaterClock(BEGIN, BEGIN + 2_999)).recall("orders", handle, HOST)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([1, 700, 1_500, 4_000, 9_000, 70_000])),
        st.tuples(st.just("pass"), st.sampled_from([0, 300, 2_000, 6_000])),
    ),
    max_size=6,
)
LIVES = st.lists(st.tuples(STEPS, st.sampled_from([0, 3, -3, 20, -20, -90, 4_000, -4_000]), st.booleans()), max_size=5)
Life = tuple[list[tuple[str, int]], int, bool]


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LIVES)
def test_take_overs_by_nodes_with_other_clocks_and_older_indexes_lose_none(lives: list[Life]) -> None:
    """Each life is that of another node with the same log: its clock is so far ahead, its index may be an older one."""
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(_lives(Path(scratch), lives))


async def _lives(root: Path, lives: list[Life]) -> None:
    now, sent = BEGIN, 0
    node, kept = root / "node", root / "kept"
    for steps, seconds_ahead, older in lives:
        async with delaying(node, now=now) as kit:
            for what, ms in steps:
                if what == "send":
                    await at(kit, kit.wall.now_ms() + ms, b"%d" % sent)
                    sent += 1
                else:
                    await kit.pass_time(ms / 1_000)
            now = kit.wall.now_ms() + seconds_ahead * 1_000
        if older and kept.exists():
            shutil.rmtree(node / "timers")
            kept.rename(node / "timers")
        elif not kept.exists():
            shutil.copytree(node / "timers", kept)
    async with delaying(node, now=now) as kit:
        for _ in range(5):
            await kit.pass_time(1)
        kit.wall.ahead_ms += 10 * HOUR_MS
        await kit.pass_time(12)
        assert set(kit.bodies()) == {b"%d" % number for number in range(sent)}
