"""A topic whose messages are kept for a shorter time than the files of the log: what readers have of it."""

import asyncio
import errno
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.broker.pulled import PullStatus
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.unit import BLANK_UNIT
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.edges.file_cache import FileCache
from tandemmq.store.log.marks.manifest import read_manifest
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tests.unit.broker.broker_kit import HOST, Kit, SetClock, bodies, broker

HOUR_MS = 3_600_000


def keep(kit: Kit, hours: str, topic: str = "orders") -> None:
    """Sets the attribute, as a metadata service does."""
    kit.topics._entries[topic] = TopicConfig(topic, 4, 4, other={"attributes": {"reserve.time": hours}})


def follow(kit: Kit) -> None:
    topics = kit.topics
    kit.store.keep_topics(lambda name: 0 if (topic := topics.get(name)) is None else topic.reserve_hours)


async def a_day(kit: Kit, topic: str = "orders") -> None:
    """A message in each of 24 hours; it is the end of the last one then."""
    for hour in range(24):
        kit.send(topic, b"%d" % hour, KEYS=f"hour{hour}")
        kit.clock.now += HOUR_MS
    await kit.dispatched()


async def passes(kit: Kit) -> None:
    kit.clock.now += 60_000  # a queue rests so long
    await kit.store._topics.run_once()


def first(kit: Kit, topic: str = "orders") -> int:
    return kit.catalog.offsets_of(topic, 0).min_offset


async def test_what_is_older_is_nowhere_to_be_had(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        await passes(kit)
        state = kit.catalog.offsets_of("orders", 0, kit.clock.now - 20 * HOUR_MS)
        assert (state.min_offset, state.max_offset, state.at_time) == (19, 24, 19)
        before = kit.pull("orders")
        assert (before.status, before.next_offset, before.min_offset) == (PullStatus.OFFSET_TOO_SMALL, 19, 19)
        assert bodies(kit.pull("orders", offset=19)) == [b"19", b"20", b"21", b"22", b"23"]
        assert kit.finder.by_key("orders", "hour18", 0, 0, 10, unique=False) == []
        assert len(kit.finder.by_key("orders", "hour19", 0, 0, 10, unique=False)) == 1
        with pytest.raises(MessageNotFound, match="older than its topic keeps"):
            kit.finder.view(encode_offset_id(HOST, kit.sent[18]))
        assert kit.finder.view(encode_offset_id(HOST, kit.sent[19]))


async def test_other_topics_and_the_log_keep_theirs(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        kit.clock.now -= 24 * HOUR_MS
        await a_day(kit, "invoices")
        await passes(kit)
        assert (first(kit, "invoices"), kit.store.commit_log.min_offset) == (0, 0)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        assert (queue.min_offset, queue.readable_begin) == (0, 19)
    manifest = read_manifest(tmp_path, [])
    assert manifest is not None
    assert manifest.queues["orders", 0] == (0, 24), "nothing on disk says it"


async def test_a_queue_of_which_all_is_older_is_empty_and_goes_on(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        kit.clock.now += 7 * HOUR_MS
        await passes(kit)
        state = kit.catalog.offsets_of("orders", 0)
        assert (state.min_offset, state.max_offset) == (24, 24)
        assert kit.pull("orders", offset=24).status is PullStatus.OFFSET_OVERFLOW_ONE
        kit.send("orders", b"new")
        await kit.dispatched()
        await passes(kit)
        assert bodies(kit.pull("orders", offset=24)) == [b"new"]


@pytest.mark.parametrize("clean", [True, False])
async def test_a_start_finds_it_again_before_anybody_asks(tmp_path: Path, *, clean: bool) -> None:
    clock = SetClock()
    async with broker(tmp_path, clock=clock) as kit:
        await a_day(kit)
    if not clean:
        (tmp_path / "tandem.manifest").unlink()
        (tmp_path / "abort").touch()
    async with broker(tmp_path, clock=clock) as kit:
        keep(kit, "6")
        follow(kit)
        assert first(kit) == 18
        await kit.store.rebuilt()
        assert first(kit) == 18


async def test_a_queue_that_is_made_anew_has_it_when_that_is_done(tmp_path: Path) -> None:
    clock = SetClock()
    async with broker(tmp_path, clock=clock) as kit:
        await a_day(kit)
    shutil.rmtree(tmp_path / "consumequeue" / "orders")
    async with broker(tmp_path, clock=clock) as kit:
        keep(kit, "6")
        follow(kit)
        kit.store.queue("orders", 0)
        await kit.store.rebuilt()
        await kit.store._topics.run_once()
        assert first(kit) == 18


async def test_a_queue_whose_files_are_exchanged_keeps_it(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        await passes(kit)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        fresh = ConsumeQueue(queue.directory, 2_000, LocalDisk(), FileCache(LocalDisk()))
        fresh.load()
        fresh.end_at(24)
        queue.take_over(fresh, 0)
        assert (queue.min_offset, queue.readable_begin) == (0, 19)


async def test_a_queue_that_cannot_be_read_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        await a_day(kit)
        await a_day(kit, "others")
        for topic in ("orders", "others"):
            keep(kit, "6", topic)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        with monkeypatch.context() as patch:
            patch.setattr(queue, "unit", unreadable)
            await passes(kit)
        assert "Queue 0 of topic orders cannot be read for its topic's retention" in caplog.text
        assert (first(kit), first(kit, "others")) == (0, 19)
        await passes(kit)
        assert first(kit) == 24


def unreadable(_offset: int) -> None:
    raise OSError(errno.EIO, "no such luck")


async def test_other_hours_find_it_anew(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        await passes(kit)
        assert first(kit) == 19
        for hours, expected in (("12", 13), ("3", 22), ("-1", 0), ("3", 22), ("nonsense", 0), ("0", 0)):
            keep(kit, hours)
            await passes(kit)
            assert first(kit) == expected, hours


async def test_a_clock_that_goes_back_brings_nothing_back(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "6")
        await a_day(kit)
        await passes(kit)
        for back in (HOUR_MS, 10 * HOUR_MS, -9 * HOUR_MS):
            kit.clock.now -= back
            await passes(kit)
            assert first(kit) == 19
        kit.clock.now -= -4 * HOUR_MS
        await passes(kit)
        assert first(kit) == 21


async def test_a_clock_that_was_ahead_hides_nothing_that_comes_afterwards(tmp_path: Path) -> None:
    """In queues that are new since, in those that were looked at then, and with other hours."""
    async with broker(tmp_path) as kit:
        follow(kit)
        for topic in ("orders", "later"):
            keep(kit, "6", topic)
        kit.send("orders", b"old")
        await kit.dispatched()
        kit.clock.now += 48 * HOUR_MS
        await passes(kit)
        assert first(kit) == 1
        kit.clock.now -= 48 * HOUR_MS
        for topic in ("orders", "later"):
            kit.send(topic, b"new")
        await kit.dispatched()
        await passes(kit)
        assert (first(kit), first(kit, "later")) == (1, 0)
        keep(kit, "3")
        await passes(kit)
        assert first(kit) == 0, "as young as the old one is by this clock"
        kit.clock.now += 4 * HOUR_MS
        await passes(kit)
        assert (first(kit), first(kit, "later")) == (2, 0)


async def test_the_files_of_the_log_go_as_before(tmp_path: Path) -> None:
    """What the log has no more is gone, whatever the topic says."""
    async with broker(tmp_path, file_reserved_time=2, delete_when=tuple(range(24))) as kit:
        follow(kit)
        keep(kit, "6")
        for hour in range(24):
            kit.send("orders", b"%d" % hour * 4_000)
            kit.clock.now += HOUR_MS
        await kit.dispatched()
        await kit.store._retention.run_once()
        await passes(kit)
        assert first(kit) > 18
        assert first(kit) == next(n for n, at in enumerate(kit.sent) if at >= kit.store.commit_log.min_offset)


async def test_units_that_say_nothing_hide_nothing(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        await a_day(kit)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        for number in (*range(10, 14), *range(17, 20)):
            queue.put(number, BLANK_UNIT)
        keep(kit, "6")
        await passes(kit)
        assert queue.readable_begin in range(17, 21)


async def test_a_queue_that_goes_back_hides_nothing_new(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        follow(kit)
        keep(kit, "1")
        await a_day(kit)
        kit.clock.now += HOUR_MS
        await passes(kit)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        assert queue.readable_begin == 24
        queue.go_back(10)
        assert (queue.readable_begin, queue.kept_from) == (10, 10)


async def test_topics_of_the_broker_keep_what_they_have(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for name in ("SCHEDULE_TOPIC_XXXX", "TANDEM_SYS_DELIVERY", "RMQ_SYS_TRANS_HALF_TOPIC"):
            keep(kit, "1", name)
            config = kit.topics.get(name)
            assert config is not None
            assert config.reserve_hours == 0


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    gaps=st.lists(st.sampled_from([0, 1, 59, 60, 61, 240]), min_size=1, max_size=40),
    steps=st.lists(st.tuples(st.sampled_from([-120, 0, 30, 61, 300]), st.sampled_from([0, 1, 3, 24])), max_size=6),
)
def test_the_first_message_is_the_first_young_one(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], steps: list[tuple[int, int]]
) -> None:
    """Against a list of all: whatever the times and hours, and however the clock goes."""

    async def run() -> None:
        async with broker(tmp_path_factory.mktemp("store")) as kit:
            follow(kit)
            times = []
            for gap in gaps:
                kit.clock.now += gap * 60_000
                kit.send("orders", b"x")
                times.append(kit.clock.now)
            await kit.dispatched()
            before, expected = 0, 0
            for minutes, hours in steps:
                kit.clock.now += minutes * 60_000
                keep(kit, str(hours))
                await passes(kit)
                since = kit.clock.now - hours * HOUR_MS if hours else 0
                young = next((n for n, stored in enumerate(times) if stored >= since), len(times))
                expected = max(expected, young) if hours == before else young
                before = hours
                assert first(kit) == expected

    asyncio.run(run())
