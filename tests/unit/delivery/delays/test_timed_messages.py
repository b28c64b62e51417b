"""Timers: any time, to the millisecond, each once, over restarts, kills and lost index files."""

import asyncio
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tandemmq.store.delivery.delays import timed_messages, timer_index, timer_window
from tandemmq.store.delivery.delays.timer_checkpoint import TimerCheckpoint
from tandemmq.store.log import message_store
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue
from tandemmq.store.log.segments.touching import touch_records
from tests.unit.delivery.delays.delay_kit import BEGIN, DelayKit, delaying

HOUR = 3_600_000


async def at(kit: DelayKit, when: int, body: bytes = b"x", **properties: str) -> None:
    await kit.send(body, topic="orders", queue_id=0, TIMER_DELIVER_MS=str(when), **properties)


async def test_a_timer_comes_at_its_millisecond(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await at(kit, BEGIN + 1_500, b"second")
        await at(kit, BEGIN + 1_499, b"first", a="b")
        await kit.pass_time(1.498)
        assert kit.bodies() == []
        await kit.pass_time(0.001)
        assert kit.bodies() == [b"first"]
        await kit.pass_time(0.001)
        assert kit.bodies() == [b"first", b"second"]
        first, _ = kit.found()
        assert set(first.properties) == {"a", "UNIQ_KEY", "TIMER_DELIVER_MS"}  # consumers are told when it was due
        assert kit.counts.delivered == 2
        assert kit.counts.timers_in == kit.counts.timers_out == {"orders": 2}


@pytest.mark.slow
async def test_timers_far_ahead_wait_over_restarts_and_come_once(tmp_path: Path) -> None:
    times = [1, 7, 59, 60, 61, 3_599, 3_600, 3_601, 7_250, 30_000, 90_000]
    now = BEGIN
    async with delaying(tmp_path) as kit:
        for seconds in random.Random(1).sample(times, len(times)):
            await at(kit, BEGIN + seconds * 1_000, b"%d" % seconds)
    come: list[bytes] = []
    for step in (5, 55, 3_500, 50, 4_000, 86_400):
        async with delaying(tmp_path, now=now) as kit:
            assert kit.bodies() == come
            for _ in range(10):
                await kit.pass_time(step / 10)
            now = kit.wall.now_ms()
            come = kit.bodies()
            assert come == [b"%d" % seconds for seconds in times if BEGIN + seconds * 1_000 <= now]
    async with delaying(tmp_path, now=now + 2 * HOUR) as kit:
        await kit.pass_time(10)
        assert [int(body) for body in kit.bodies()] == times
        await kit.delays.follower.checkpoint()
        await kit.delays.follower.checkpoint()
        assert kit.delays.index.entries <= 1


@pytest.mark.parametrize("harm", ["lost", "no checkpoint", "cut", "flipped", "another name"])
async def test_an_index_that_is_lost_or_damaged_is_made_anew(tmp_path: Path, harm: str) -> None:
    async with delaying(tmp_path) as kit:
        for number in range(50):
            await at(kit, BEGIN + 4 * HOUR + number * 1_000, b"%d" % number)
        await kit.pass_time(1)
        assert kit.delays.index.indexed == 50
    index = tmp_path / "timers"
    (hour,) = [path for path in index.iterdir() if path.name != "checkpoint"]
    if harm == "lost":
        shutil.rmtree(index)
    elif harm == "no checkpoint":
        (index / "checkpoint").unlink()
    elif harm == "cut":
        hour.write_bytes(hour.read_bytes()[:-24])
    elif harm == "flipped":
        data = bytearray(hour.read_bytes())
        data[24 * 20 + 2] ^= 64
        hour.write_bytes(data)
    else:
        hour.rename(index / "1999010100")
    async with delaying(tmp_path, now=BEGIN + 4 * HOUR - 5_000) as kit:
        await kit.pass_time(5 + 60)
        assert kit.bodies() == [b"%d" % number for number in range(50)]


async def test_an_index_that_is_behind_is_filled_from_the_log(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        for number in range(10):
            await at(kit, BEGIN + HOUR * 5 + number, b"%d" % number)
        await kit.pass_time(0)
        await kit.delays.follower.checkpoint()
        shutil.copytree(tmp_path / "timers", tmp_path / "old")
        for number in range(10, 20):
            await at(kit, BEGIN + HOUR * 5 + number, b"%d" % number)
    shutil.rmtree(tmp_path / "timers")
    (tmp_path / "old").rename(tmp_path / "timers")
    async with delaying(tmp_path, now=BEGIN + HOUR * 6) as kit:
        await kit.pass_time(1)
        assert kit.bodies() == [b"%d" % number for number in range(20)]


async def test_an_index_ahead_of_the_progress_is_not_believed(tmp_path: Path) -> None:
    """As after a power cut that took the last facts and copies: what the index has dropped must come again."""
    async with delaying(tmp_path) as kit:
        await at(kit, BEGIN + 2_000)
        await kit.pass_time(0)
    checkpoint = tmp_path / "timers" / "checkpoint"
    known = TimerCheckpoint.decode(checkpoint.read_bytes())
    ahead = TimerCheckpoint(known.rules, known.indexed, known.physical, (BEGIN + 60_000, 5), {})
    checkpoint.write_bytes(ahead.encode())
    async with delaying(tmp_path) as kit:
        await kit.pass_time(3)
        assert kit.bodies() == [b"x"]


async def test_crowded_seconds_and_milliseconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (timer_index, timer_window):
        monkeypatch.setattr(module, "CROWDED", 8)
        monkeypatch.setattr(timer_index, "PIECE", 4)
    chance = random.Random(2)
    expected: dict[int, int] = {}
    async with delaying(tmp_path) as kit:
        for number in range(300):
            when = BEGIN + 8_000_000 + chance.choice([0, 0, 0, chance.randrange(2_000), chance.randrange(100_000)])
            expected[number] = when
            await at(kit, when, b"%d" % number)
        await kit.pass_time(0.5)
    async with delaying(tmp_path, now=BEGIN + 7_999_000) as kit:
        await kit.pass_time(0.5)
        for number in range(300, 320):
            expected[number] = BEGIN + 8_000_000
            await at(kit, expected[number], b"%d" % number)
        await kit.pass_time(0.5)
        now = kit.wall.now_ms()
        come = [int(body) for body in kit.bodies()]
        assert come == [number for number, when in sorted(expected.items(), key=_by_time) if when <= now]
        await kit.pass_time(1)
    async with delaying(tmp_path, now=BEGIN + 8_200_000) as kit:
        await kit.pass_time(1)
        assert [int(body) for body in kit.bodies()] == [number for number, _ in sorted(expected.items(), key=_by_time)]


def _by_time(item: tuple[int, int]) -> tuple[int, int]:
    return item[1], item[0]


@pytest.mark.slow
async def test_what_waits_longer_than_its_file_is_stored_again(tmp_path: Path) -> None:
    async with delaying(tmp_path, file_reserved_time=2) as kit:
        await at(kit, BEGIN + 5 * HOUR, b"long", UNIQ_KEY="k", a="b")
        for _ in range(30):
            await kit.pass_time(600)
        assert (kit.counts.rolled, kit.counts.timers_in, kit.counts.timers_out) == (4, {"orders": 1}, {"orders": 1})
        assert kit.bodies() == [b"long"]
        (come,) = kit.found()
        assert come.properties == {"a": "b", "UNIQ_KEY": "k", "TIMER_DELIVER_MS": str(BEGIN + 5 * HOUR)}
        waiting = kit.found("rmq_sys_wheel_timer")
        assert [record.properties.get("TIMER_ROLL_TIMES") for record in waiting] == [None, "1", "2", "3", "4"]
        assert {record.properties["TIMER_DELIVER_MS"] for record in waiting} == {str(BEGIN + 5 * HOUR)}
        assert kit.wall.now_ms() == BEGIN + 5 * HOUR


async def test_a_clock_that_is_set_back_delivers_nothing_early_and_forward_at_once(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await at(kit, BEGIN + 60_000, b"a")
        await at(kit, BEGIN + 3 * HOUR, b"b")
        await kit.pass_time(50)
        kit.wall.ahead_ms -= 100_000
        await kit.pass_time(100)
        assert kit.bodies() == []
        kit.wall.ahead_ms += 3 * HOUR
        await kit.pass_time(1.1)
        assert kit.bodies() == [b"a", b"b"]


async def test_timers_of_a_java_broker_without_our_time(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        given = {"TIMER_DELAY_SEC": "3", "TIMER_OUT_MS": str(BEGIN + 2_000), "REAL_TOPIC": "orders", "REAL_QID": "0"}
        kit.append("rmq_sys_wheel_timer", b"java", **given)
        await kit.pass_time(2.9)
        assert kit.bodies() == []
        await kit.pass_time(0.2)
        assert kit.bodies() == [b"java"]


async def test_records_are_read_ahead_of_their_time_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timed_messages, "_RECENT_BYTES", 0)
    touched: list[int] = []

    def touch(files: MappedFileQueue, offsets: Iterable[int]) -> None:
        touched.extend(offsets)
        touch_records(files, offsets)

    monkeypatch.setattr(message_store, "touch_records", touch)
    async with delaying(tmp_path) as kit:
        soon = await kit.send(b"x" * 9_000, TIMER_DELIVER_MS=str(BEGIN + 30_000))
        await at(kit, BEGIN + HOUR)
        await kit.pass_time(20)
        assert touched == []
        await kit.pass_time(7)
        while not touched:
            await asyncio.sleep(0.01)
        assert touched == [soon.physical_offset]
        assert kit.bodies() == []
        await kit.pass_time(3)
        assert kit.bodies() == [b"x" * 9_000]
    async with delaying(tmp_path, now=BEGIN + HOUR + 1_000) as kit:
        await kit.pass_time(0.1)
        assert kit.counts.delivered == 1
