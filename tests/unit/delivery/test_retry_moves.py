"""What a group fails on for long moves to its retry topic, and its position goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tandemmq.store.broker.postponing import TIMER_TOPIC, DelayRules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delays.delays import Delays
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.journal import base
from tandemmq.store.delivery.journal.facts import Dealt, Forgotten, Given, Moved, Place
from tandemmq.store.delivery.ledger import copied_messages
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.port import Wish
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.delivery.retries import retry_moves
from tandemmq.store.log.edges.disk import LocalDisk
from tests.manual_timers import turns
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.delivery_kit import delivering
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, TOPIC, Scene, bodies, numbers, scene

RETRY = f"%RETRY%{GROUP}"
HOUR_MS = 3_600_000
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def with_retry_topic(at: Scene) -> None:
    at.kit.topics._entries[RETRY] = TopicConfig(RETRY, 1, 1)


@asynccontextmanager
async def timers_of(at: Scene) -> AsyncIterator[Delays]:
    """What waits for its time is delivered, by the clock of the scene."""
    delays = Delays(at.kit.broker, at.journal, at.clock, LocalDisk(), HOST, DelayRules())
    delays.follower.start()
    delays.start()
    try:
        yield delays
    finally:
        await delays.stop()
        await delays.follower.stop()


async def until_it_comes(at: Scene) -> list[str]:
    """What a receive gets that waits: timers look at the clock of the scene each second."""
    for _ in range(600):
        messages = await at.take()
        if messages:
            return bodies(messages)
        await asyncio.sleep(0.05)
    raise AssertionError("nothing came")


async def test_what_is_put_off_for_long_holds_the_position_up_for_ten_minutes(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at):
        with_retry_topic(at)
        at.send("bad", "good", KEYS="k")
        messages = await at.take()
        await at.acknowledge(messages[1:])
        await at.retry_after(messages[0], HOUR_MS)
        await at.timers.advance(590)
        assert at.cursor() == 0
        await at.timers.advance(120)
        assert at.cursor() == 2
        (waiting,) = at.records(TIMER_TOPIC)
        given = waiting.properties
        assert (given["REAL_TOPIC"], given["RETRY_TOPIC"], given["KEYS"]) == (RETRY, TOPIC, "k")
        assert int(given["TIMER_DELIVER_MS"]) - at.clock.begin - 1_000_000 == HOUR_MS
        assert waiting.reconsume_times == 1
        assert at.receiving.moved() == {(GROUP, TOPIC): 1}
        await at.timers.advance(2_800)
        assert await at.take() == [], "not before its time"
        await at.timers.advance(100)
        assert await until_it_comes(at) == ["bad"]


async def test_a_kill_in_between_neither_loses_nor_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_moves, "LONGEST_HOLD_MS", -1)
    monkeypatch.setattr(retry_moves, "_LOOK_SECONDS", 0.02)
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "store") as at:
        await at.send(TOPIC, 3)
        wish = Wish(GROUP, TOPIC, most=1, invisible_ms=INVISIBLE_MS)
        (message,) = (await at.delivery.receive(wish)).messages
        await at.delivery.change_invisible(GROUP, TOPIC, message.handle, HOUR_MS)
        while (progress := at.delivery.ledger.progress(place)) is None or progress.cursor == 0:
            await asyncio.sleep(0.01)
        at.delivery.journal.write()
        copy = at.killed(tmp_path / "copy")
    for written in (1, 2):
        async with delivering(copy) as again:
            progress = again.delivery.ledger.progress(place)
            assert progress is not None
            assert (progress.cursor, progress.entries) == (1, {})
            queue = again.store.queue(TIMER_TOPIC, 0)
            assert queue is not None
            assert queue.max_offset == written
            assert again.delivery.ledger.timers is None, "it still waits"
            (outcome,) = await again.delivery.acknowledge(GROUP, TOPIC, [message.handle])
            again.store.catch_up()
            assert (outcome.error, queue.max_offset) == (None, 2), "the old handle takes it back, once"


async def test_a_handle_of_before_a_kill_says_that_the_message_has_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_moves, "LONGEST_HOLD_MS", -1)
    monkeypatch.setattr(retry_moves, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(retry_moves, "_LEAST_LEFT_MS", 0)
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "store") as at:
        await at.send(TOPIC, 2)
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, most=2, invisible_ms=INVISIBLE_MS))
        message, done = batch.messages
        await at.delivery.acknowledge(GROUP, TOPIC, [done.handle])
        await at.delivery.change_invisible(GROUP, TOPIC, message.handle, 1_000)
        while (progress := at.delivery.ledger.progress(place)) is None or progress.cursor < 2:
            await asyncio.sleep(0.01)
        at.delivery.journal.write()
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        (coming,) = (await again.delivery.receive(Wish(GROUP, TOPIC, invisible_ms=HOUR_MS, wait_ms=60_000))).messages
        moved, other = await again.delivery.acknowledge(GROUP, TOPIC, [message.handle, done.handle])
        assert isinstance(moved.error, HandleExpired)
        assert other.error is None, "it was acknowledged before"
        (outcome,) = await again.delivery.acknowledge(GROUP, TOPIC, [coming.handle])
        assert outcome.error is None


async def test_what_fails_again_and_again_comes_from_the_retry_topic_with_its_number(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.groups.put(retry_max_times=25)
        with_retry_topic(at)
        at.send("bad")
        for number in range(1, 25):
            messages = await at.take()
            assert (bodies(messages), numbers(messages)) == (["bad"], [number])
            await at.timers.advance(INVISIBLE_MS / 1000)
        assert at.cursor() == 1
        assert at.cursor(topic=RETRY) == 0
        (copy,) = at.records(RETRY)
        assert copy.reconsume_times in (21, 22)


async def test_the_topic_is_made_where_there_is_none(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("bad")
        await at.retry_after((await at.take())[0], HOUR_MS)
        await at.timers.advance(1_000)
        while at.kit.topics.get(RETRY) is None:
            await asyncio.sleep(0.01)
        await at.timers.advance(60)
        assert at.cursor() == 1


async def test_ordered_groups_and_those_that_ask_for_a_queue_move_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        with_retry_topic(at)
        at.groups.put(consume_message_orderly=True)
        at.send("a")
        await at.retry_after((await at.take())[0], HOUR_MS)
        await at.timers.advance(2_000)
        assert at.cursor() == 0
        at.groups.put(consume_message_orderly=False)
        await at.take(queue=0)
        await at.timers.advance(1_000)
        assert at.cursor() == 0


async def test_a_group_without_retry_queues_moves_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        with_retry_topic(at)
        at.groups.put(retry_queues=0)
        at.send("a")
        await at.retry_after((await at.take())[0], HOUR_MS)
        await at.timers.advance(2_000)
        assert at.cursor() == 0


async def test_more_than_may_be_put_off_move_at_once_the_oldest_first(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_in_flight=3)) as at:
        with_retry_topic(at)
        for number in range(8):
            at.send(str(number))
            for message in await at.take():
                await at.retry_after(message, HOUR_MS)
        await at.timers.advance(31)
        assert [record.body for record in at.records(TIMER_TOPIC)] == [b"0", b"1", b"2", b"3", b"4"]
        assert at.cursor() == 5


async def test_a_million_behind_moves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_moves, "MOST_BEHIND", 10)
    async with scene(tmp_path) as at:
        with_retry_topic(at)
        at.send("bad")
        await at.retry_after((await at.take())[0], HOUR_MS)
        at.send(*map(str, range(9)))
        await at.acknowledge(await at.take())
        await at.timers.advance(31)
        assert at.cursor() == 0
        at.send("one more")
        await at.acknowledge(await at.take())
        await at.timers.advance(31)
        assert at.cursor() == 11


async def test_who_puts_it_off_in_small_steps_keeps_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        with_retry_topic(at)
        at.send("long work")
        (message,) = await at.take()
        for _ in range(60):
            await at.retry_after(message, 45_000)
            await at.timers.advance(20)
        assert at.cursor() == 0
        assert [one.error for one in await at.acknowledge([message])] == [None]
        assert at.cursor() == 1
        assert at.receiving.moved() == {}


async def moved(at: Scene) -> list[str]:
    """A message that waits in its copy; gives its handle."""
    with_retry_topic(at)
    at.send("late")
    (message,) = await at.take()
    await at.retry_after(message, HOUR_MS)
    await at.timers.advance(700)
    assert at.cursor() == 1
    return [message.handle]


async def nothing_comes(at: Scene, delays: Delays) -> None:
    await at.timers.advance(3 * 3_600)
    while delays.counts.recalled + delays.counts.delivered == 0:
        await asyncio.sleep(0.05)
    await turns()
    assert await at.take() == []
    assert delays.counts.delivered == 0


async def test_its_handle_still_acknowledges_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at) as delays:
        handles = await moved(at)
        for _ in range(2):
            (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, handles)
            assert outcome.error is None
        await nothing_comes(at, delays)


async def test_what_was_before_a_reset_is_not_what_comes_after_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at):
        (before,) = await moved(at)
        await at.receiving.reset(GROUP, TOPIC, {0: 0})
        messages = await at.take()
        for _ in range(2):
            assert [one.error for one in await at.acknowledge(messages)] == [None]
        (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, [before])
        assert isinstance(outcome.error, HandleExpired)
        await at.timers.advance(3_600)
        assert await until_it_comes(at) == ["late"], "the copy was not taken back"


async def test_its_handle_still_forwards_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at) as delays:
        (handle,) = await moved(at)
        await at.receiving.forward(GROUP, TOPIC, handle)
        assert [one.body for one in at.records(f"%DLQ%{GROUP}")] == [b"late"]
        await nothing_comes(at, delays)


async def test_its_time_can_still_be_changed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at) as delays:
        (handle,) = await moved(at)
        await at.receiving.change_invisible(GROUP, TOPIC, handle, 2 * HOUR_MS)
        await at.timers.advance(3_600)
        while not delays.counts.recalled:
            await asyncio.sleep(0.05)
        assert await at.take() == []
        await at.timers.advance(3_700)
        assert await until_it_comes(at) == ["late"]
        assert delays.counts.delivered == 1


async def test_when_it_has_come_again_its_old_handle_says_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at):
        (handle,) = await moved(at)
        await at.timers.advance(3_600)
        (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, [handle])
        assert isinstance(outcome.error, HandleExpired)
        with pytest.raises(HandleExpired):
            await at.receiving.change_invisible(GROUP, TOPIC, handle, 0)
        assert await until_it_comes(at) == ["late"]


async def test_without_timers_it_waits_in_a_level_that_is_no_shorter(tmp_path: Path) -> None:
    async with scene(tmp_path, delays=DelayRules(timers=False)) as at:
        with_retry_topic(at)
        at.send("a", "b")
        first, second = await at.take()
        await at.retry_after(first, HOUR_MS)
        await at.retry_after(second, 4 * HOUR_MS)
        await at.timers.advance(700)
        assert [one.body for one in at.records(SCHEDULE, 16)] == [b"a"]
        assert at.cursor() == 1, "no level is long enough for the second"
        (outcome,) = await at.acknowledge([first])
        assert isinstance(outcome.error, HandleExpired)


async def test_what_was_before_a_deletion_is_not_what_comes_after_it(tmp_path: Path) -> None:
    """A place that is made again has no resets, as the one before it."""
    async with scene(tmp_path) as at, timers_of(at):
        await moved(at)
        at.journal.note(Forgotten(Place(GROUP, TOPIC, 0)))
        messages = await at.take()
        assert bodies(messages) == ["late"]
        timers = len(at.records(TIMER_TOPIC))
        for _ in range(2):
            assert [one.error for one in await at.acknowledge(messages)] == [None]
        assert len(at.records(TIMER_TOPIC)) == timers, "nothing is taken back"


def harmed(at: Scene, what: bytes) -> None:
    """These bytes of the newest record of the timers' topic are others now."""
    record = at.records(TIMER_TOPIC)[-1]
    file = at.kit.store._parts.files.find(record.physical_offset)
    assert file is not None
    begin = file.map.find(what, record.physical_offset - file.start)
    file.map[begin : begin + len(what)] = b"x" * len(what)


@pytest.mark.parametrize("what", [b"late", b"TIMER_DELIVER_MS\x01176"])
async def test_where_its_copy_cannot_be_read_the_handle_is_not_answered_as_done(tmp_path: Path, what: bytes) -> None:
    async with scene(tmp_path) as at, timers_of(at):
        handles = await moved(at)
        harmed(at, what)
        (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, handles)
        assert isinstance(outcome.error, HandleExpired)


async def test_what_was_taken_back_stays_so_though_its_copy_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as at, timers_of(at):
        handles = await moved(at)
        (copy,) = at.records(TIMER_TOPIC)
        known = at.ledger.copied(Place(GROUP, TOPIC, 0), 0)
        assert known is not None
        assert known.copies == (copy.physical_offset,)
        await at.receiving.acknowledge(GROUP, TOPIC, handles)
        reader = at.receiving._reader
        read = reader.copy_at
        monkeypatch.setattr(reader, "copy_at", lambda offset: None if offset == copy.physical_offset else read(offset))
        (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, handles)
        assert outcome.error is None


async def test_however_often_its_time_is_changed_few_copies_are_remembered(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, timers_of(at) as delays:
        (handle,) = await moved(at)
        for number in range(20):
            await at.receiving.change_invisible(GROUP, TOPIC, handle, 2 * HOUR_MS + number * 60_000)
        known = at.ledger.copied(Place(GROUP, TOPIC, 0), 0)
        assert known is not None
        assert len(known.copies) == 8
        for _ in range(2):
            (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, [handle])
            assert outcome.error is None
        await at.timers.advance(3 * 3_600)
        while delays.counts.recalled < 21:
            await asyncio.sleep(0.05)
        assert await at.take() == []
        assert delays.counts.delivered == 0


async def test_dead_letters_take_no_room_from_what_has_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_messages, "_MOST_REMEMBERED", 2)
    monkeypatch.setattr(retry_moves, "LONGEST_HOLD_MS", -1)
    monkeypatch.setattr(retry_moves, "_LOOK_SECONDS", 0.02)
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "store") as at:
        await at.send(TOPIC, 5)
        messages = (await at.delivery.receive(Wish(GROUP, TOPIC, most=5, invisible_ms=INVISIBLE_MS))).messages
        await at.delivery.change_invisible(GROUP, TOPIC, messages[0].handle, HOUR_MS)
        while (progress := at.delivery.ledger.progress(place)) is None or progress.cursor == 0:
            await asyncio.sleep(0.01)
        for message in messages[1:]:
            await at.delivery.forward(GROUP, TOPIC, message.handle)
        copies = at.delivery.ledger.copied(place, 0)
        assert copies is not None
        at.delivery.journal.write()
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        assert again.delivery.ledger.copied(place, 0) == copies
        await again.delivery.forward(GROUP, TOPIC, messages[1].handle)
        queue = again.store.queue(f"%DLQ%{GROUP}", 0)
        assert queue is not None
        assert queue.max_offset == 4, "once more is fine"


@pytest.mark.parametrize("forgotten", ["by the base", "by number"])
async def test_what_is_not_known_to_have_moved_is_not_answered_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten: str
) -> None:
    """It comes again from the retry topic: who is told that it is acknowledged would be wrong."""
    monkeypatch.setattr(retry_moves, "LONGEST_HOLD_MS", -1)
    monkeypatch.setattr(retry_moves, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(retry_moves, "_LEAST_LEFT_MS", 0)
    if forgotten == "by number":
        monkeypatch.setattr(copied_messages, "_MOST_REMEMBERED", 0)
    else:
        monkeypatch.setattr(base, "_LEAST_BYTES", 0)
        monkeypatch.setattr(base, "_TIMES_STATE", 0)
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "store") as at:
        await at.send(TOPIC, 3)
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, most=2, invisible_ms=INVISIBLE_MS))
        message, done = batch.messages
        await at.delivery.acknowledge(GROUP, TOPIC, [done.handle])
        await at.delivery.change_invisible(GROUP, TOPIC, message.handle, 1_000)
        while (progress := at.delivery.ledger.progress(place)) is None or progress.cursor < 2:
            await asyncio.sleep(0.01)
        for _ in range(20):  # the base moves on, from unit to unit
            at.delivery.journal.keep_base_soon()
            await turns()
            at.delivery.journal.write()
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        (coming,) = (await again.delivery.receive(Wish(GROUP, TOPIC, 0, invisible_ms=HOUR_MS))).messages
        assert coming.handle != message.handle
        outcomes = await again.delivery.acknowledge(GROUP, TOPIC, [message.handle, coming.handle, coming.handle])
        assert isinstance(outcomes[0].error, HandleExpired)
        assert [one.error for one in outcomes[1:]] == [None, None], "what this start has given out is known"
        (moved,) = (await again.delivery.receive(Wish(GROUP, TOPIC, invisible_ms=HOUR_MS, wait_ms=60_000))).messages
        assert bodies([moved]) == bodies([message])


async def test_what_had_moved_before_the_base_and_lies_after_the_position_is_not_answered_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message that is held for long keeps the position back; those after it move, and are acknowledged."""
    monkeypatch.setattr(retry_moves, "LONGEST_HOLD_MS", 1 << 50)
    monkeypatch.setattr(retry_moves, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(retry_moves, "_LEAST_LEFT_MS", 0)
    place = Place(GROUP, TOPIC, 0)
    async with delivering(tmp_path / "store") as at:
        await at.send(TOPIC, 6)
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, most=5, invisible_ms=HOUR_MS))
        _, moved, done, held, late = batch.messages
        assert isinstance(at.delivery.receiving, Receiving)
        at.delivery.receiving._there.moves._most_put_off = 0
        await at.delivery.change_invisible(GROUP, TOPIC, moved.handle, 1_000)
        progress = at.delivery.ledger.progress(place)
        assert progress is not None
        while 1 in progress.entries:
            await asyncio.sleep(0.01)
        await at.delivery.acknowledge(GROUP, TOPIC, [done.handle])
        monkeypatch.setattr(base, "_LEAST_BYTES", 0)
        monkeypatch.setattr(base, "_TIMES_STATE", 0)
        for _ in range(20):  # the base moves on, from unit to unit
            at.delivery.journal.keep_base_soon()
            await turns()
            at.delivery.journal.write()
        monkeypatch.undo()
        await at.delivery.acknowledge(GROUP, TOPIC, [late.handle])
        at.delivery.journal.write()
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        handles = [one.handle for one in (moved, done, held, late)]
        outcomes = [one.error for one in await again.delivery.acknowledge(GROUP, TOPIC, handles)]
        assert isinstance(outcomes[0], HandleExpired), "it comes again"
        assert isinstance(outcomes[1], HandleExpired), "it may have moved as well"
        assert outcomes[2:] == [None, None], "what is held counts, and what was acknowledged since then was"


def test_only_what_was_told_before_a_snapshot_is_not_known_to_have_moved() -> None:
    place, whole, later = Place(GROUP, TOPIC, 0), Ledger(), Ledger()
    whole.apply(Moved(place, 1, 0))
    whole.apply(Given(place, 1, 9, 5_000))
    for fact in (Dealt(place, 1, 2), Dealt(place, 5)):
        whole.apply(fact)
    progress = whole.progress(place)
    assert progress is not None
    snapshot = list(progress.snapshot(2))
    assert len(snapshot) > 1
    later.apply(Moved(place, 3, 0))  # a commit of that time; what came before it is not read any more
    for ledger in (whole, later):
        for piece in snapshot:
            ledger.apply(piece)
        ledger.apply(Dealt(place, 7))
    assert [at for at in range(12) if whole.forgot_copies(place, at)] == [0]
    assert [at for at in range(12) if later.forgot_copies(place, at)] == [0, 1, 2, 5]
