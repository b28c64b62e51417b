"""What delivery does for thousands at a time is done in turns of the event loop."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.broker.pulled import PullStatus, Wanted
from tandemmq.store.delivery.errors import TooMuchInFlight
from tandemmq.store.delivery.journal.base import Base, SafeBase
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, GivenAgain, HeldBy, Moved, Place, Snapshot
from tandemmq.store.delivery.journal.follower import JournalFollower
from tandemmq.store.delivery.journal.journal_format import _Reader
from tandemmq.store.delivery.journal.telling import Telling
from tandemmq.store.delivery.ledger.due_item import unpack
from tandemmq.store.delivery.ledger.durable_cursors import DurableCursors
from tandemmq.store.delivery.ledger.ledger import DueBetween, Ledger
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.delivery.ledger.ways import Way, Ways
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.delivery.port import FilterKind, GivenMessage, Subscription, Wish
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader, Stretch
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.receiving.renewal import GRACE_MS
from tandemmq.store.delivery.receiving.selection import Selections
from tandemmq.store.delivery.receiving.waiting import Alarm
from tandemmq.store.delivery.transactions.halves import PendingTransaction
from tandemmq.store.fronts.remoting.filtered_pull import filtered
from tandemmq.store.offsets_link import OffsetsLink
from tests.manual_timers import ManualTimers, turns
from tests.turn_counter import TurnCounter
from tests.unit.delivery.delivery_kit import DeliveringStore, begin, delivering, state
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, TOPIC, Scene, TimerClock, bodies, scene
from tests.unit.delivery.transaction_kit import scene as half_messages

SQL = Subscription("wanted = 1", FilterKind.SQL)
PLACE = Place(GROUP, TOPIC, 0)


class Counting:
    """A filter that counts what it looks at."""

    def __init__(self, count: TurnCounter) -> None:
        self._count = count

    def matches(self, properties: Mapping[str, str]) -> bool:
        self._count()
        return properties.get("wanted") == "1"


def filtering(at: Scene, count: TurnCounter) -> None:
    at.receiving._calls._selections = Selections(lambda _: Counting(count))


@pytest.mark.parametrize(("each_look", "most"), [(0.0, 320), (0.01, 64)])
async def test_a_filter_looks_into_some_messages_a_turn_and_finds_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each_look: float, most: int
) -> None:
    """Each read is of 64 messages; one answer has what was found in several turns."""
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        for number in range(1_200):
            at.send("body", wanted=str(int(number % 300 == 299)))
        await at.kit.dispatched()
        at.timers.each_look = each_look
        with TurnCounter.counting() as count:
            filtering(at, count)
            noted: list[Fact] = []

            def apply(fact: Fact) -> bool:
                noted.append(fact)
                return Ledger.apply(at.ledger, fact)

            monkeypatch.setattr(at.ledger, "apply", apply)
            found = await at.take(32, subscription=SQL)
            assert (len(found), count.all) == (4, 1_200)
            assert sum(isinstance(fact, Dealt) for fact in noted) <= 1_200 // 64 + 4  # those in a row are one fact
            assert count.most <= most
        assert at.ledger.entries == 4
        await at.acknowledge(found)
        assert at.cursor() == 1_200


async def test_a_receive_that_is_to_be_answered_at_once_looks_for_one_turn_only(tmp_path: Path) -> None:
    """It had one found, and so looked on in the same turn, 32 times as long."""
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        for number in range(1_200):
            at.send("body", wanted=str(int(number % 300 == 1)))
        await at.kit.dispatched()
        at.groups.put()
        with TurnCounter.counting() as count:
            filtering(at, count)
            wish = Wish(GROUP, TOPIC, subscription=SQL, most=32)
            assert at.receiving.receive_at_once(wish) == []
            assert count.most <= 320
            found = await at.take(32, subscription=SQL)
        assert [one.number for one in found] == [1] * 4


async def test_a_repeat_that_comes_between_two_turns_is_given_the_same(tmp_path: Path) -> None:
    """The answer of the first goes nowhere: what only that was given would wait for its invisible time."""
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        for number in range(1_200):
            at.send("body", wanted=str(int(number % 300 == 299)))
        await at.kit.dispatched()
        at.timers.each_look = 0.01
        with TurnCounter.counting() as count:
            filtering(at, count)
            first = asyncio.create_task(at.take(32, subscription=SQL, attempt_id="one"))
            while not at.ledger.entries:
                await asyncio.sleep(0)
            again = await at.take(32, subscription=SQL, attempt_id="one")
        given = await first
        assert [one.number for one in again] == [one.number for one in given] == [1, 1, 1, 1]
        assert [one.record for one in again] == [one.record for one in given]


async def test_a_receive_that_is_given_up_between_two_turns_gives_its_messages_back(tmp_path: Path) -> None:
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        for number in range(1_200):
            at.send("body", wanted=str(int(number == 1)))
        await at.kit.dispatched()
        at.timers.each_look = 0.01
        with TurnCounter.counting() as count:
            filtering(at, count)
            receiving = asyncio.create_task(at.receive(32, subscription=SQL))
            while not at.ledger.entries:
                await asyncio.sleep(0)
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            assert count.all < 1_200
        at.timers.each_look = 0.0
        assert at.ledger.ready(PLACE) == [1]
        [again, *_] = await at.take(32)
        assert again.number == 1


async def test_one_that_leaves_between_two_turns_passes_its_wake_on(tmp_path: Path) -> None:
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        await at.take()
        with TurnCounter.counting() as count:
            filtering(at, count)
            first = asyncio.create_task(at.take(subscription=SQL, wait_ms=20_000))
            await turns()
            second = asyncio.create_task(at.take(subscription=SQL, wait_ms=20_000))
            await turns()
            for number in range(600):
                at.send("body", wanted=str(int(number == 599)))
            at.timers.each_look = 0.01
            at.kit.store.catch_up()
            while not count.all:
                await asyncio.sleep(0)
            first.cancel()
            for _ in range(5):
                await turns()
        assert second.done()
        assert bodies(await second) == ["body"]


@pytest.mark.parametrize("ordered", [False, True])
async def test_an_answer_without_room_for_the_next_message_is_given_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    """The message that is too large for it was read again and again, until all turns were over."""
    async with scene(tmp_path) as at:
        at.groups.put(consume_message_orderly=ordered)
        for _ in range(3):
            at.send("x" * 3_000, wanted="1")
        await at.kit.dispatched()
        reads, stretch = 0, PlaceReader.stretch

        def counted(self: PlaceReader, *arguments: Any) -> Stretch:
            nonlocal reads
            reads += 1
            return stretch(self, *arguments)

        monkeypatch.setattr(PlaceReader, "stretch", counted)
        with TurnCounter.counting() as count:
            filtering(at, count)
            found = await at.take(32, most_bytes=5_000, subscription=SQL)
        assert (len(found), reads) == (1, 2)
        await at.acknowledge(found)
        assert len(await at.take(32, most_bytes=5_000)) == 1


async def test_a_filter_by_tags_passes_over_one_queue_after_the_other_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=6)
        for queue in range(6):
            at.send("a", "b", queue=queue, TAGS="other")
        at.send("c", queue=3, TAGS="wanted")
        await at.kit.dispatched()
        with TurnCounter.counting() as count:
            stretch = PlaceReader.stretch

            def counted(self: PlaceReader, *arguments: Any) -> Stretch:
                count()
                return stretch(self, *arguments)

            monkeypatch.setattr(PlaceReader, "stretch", counted)
            at.timers.each_look = 0.01
            found = await asyncio.wait_for(at.take(subscription=Subscription("wanted")), 10)
            assert (len(found), count.all, count.most) == (1, 6, 1)
        assert [at.cursor(queue) for queue in (0, 3, 5)] == [2, 2, 2]


async def blocked(at: Scene, queues: int) -> None:
    """Messages of many queues are due again."""
    at.topic(queues=queues)
    for queue in range(queues):
        at.send("body", queue=queue)
    assert len(await at.take(queues)) == queues
    await at.timers.advance(INVISIBLE_MS / 1000)
    assert at.ledger.ready_entries == queues
    at.timers.each_look = 0.01


async def test_a_receive_that_is_blocked_in_many_queues_comes_to_its_end(tmp_path: Path) -> None:
    """It began anew after each turn, from one blocked queue to the next, and heeded no time."""
    async with scene(tmp_path, ReceiveRules(most_in_flight_in_all=6)) as at:
        at.topic("others")
        at.send(*"abcdef", topic="others")
        await blocked(at, 6)
        assert len(await at.take(topic="others")) == 6
        with pytest.raises(TooMuchInFlight):
            await asyncio.wait_for(at.take(), 10)


async def test_a_receive_of_many_queues_that_are_put_right_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path) as at:
        await blocked(at, 6)
        monkeypatch.setattr(PlaceReader, "one", lambda *_: Absence.LATER)
        assert await asyncio.wait_for(at.take(), 10) == []


@pytest.mark.parametrize(("each_look", "most"), [(0.0, 256), (0.0003, 4)])
async def test_a_filtered_pull_looks_into_some_messages_a_turn(tmp_path: Path, each_look: float, most: int) -> None:
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        for number in range(1_000):
            at.send("body", wanted=str(int(number == 999)))
        await at.kit.dispatched()
        timers = ManualTimers()
        timers.each_look = each_look
        at.kit.store.timers = timers

        async def room(_size: int) -> None:
            pass

        with TurnCounter.counting() as count:
            pulled = await filtered(at.kit.broker, Wanted(TOPIC, 0, 0, 1_000, 1 << 20), Counting(count), 0, room)
            assert (pulled.status, pulled.count, pulled.next_offset) == (PullStatus.FOUND, 1, 1_000)
            assert (count.all, count.most) == (1_000, most)


async def test_what_comes_due_at_the_same_time_is_made_ready_in_turns() -> None:
    ledger, timers = Ledger(), ManualTimers()
    clock = TimerClock(timers)
    ledger.apply(Moved(PLACE, 0, 0))
    due = clock.now_ms() + 1_000
    ledger.apply(Given(PLACE, 0, 9_000, due))
    with TurnCounter.counting() as count:
        before = 0

        def came_due(place: Place) -> None:
            nonlocal before
            count(ledger.ready_count(place) - before)
            before = ledger.ready_count(place)

        alarm = Alarm(ledger, clock, timers, came_due)
        ledger.come_due(clock.now_ms())
        alarm.look()
        await timers.advance(1.0)
        while before < 9_000:
            await turns()
        assert (count.all, count.most) == (9_000, 2_000)
    assert ledger.ready(PLACE) == list(range(9_000))


async def test_places_that_begin_together_are_told_in_turns() -> None:
    ledger, timers = Ledger(), ManualTimers()
    clock = TimerClock(timers)
    for number in range(1_000):
        ledger.apply(Moved(Place(f"group-{number}", TOPIC, 0), 0, 0))
    with TurnCounter.counting() as count:
        timers.each_look = 0.0003
        Alarm(ledger, clock, timers, lambda _: count()).look()
        for _ in range(50):
            await turns()
        assert (count.all, count.most) == (1_000, 4)


@pytest.mark.slow
def test_dead_messages_are_thrown_out_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counted(item: int) -> tuple[int, int, int, int]:
        nonlocal looked
        looked += 1
        return unpack(item)

    monkeypatch.setattr("tandemmq.store.delivery.ledger.ledger.unpack", counted)
    ledger, most, longest = Ledger(), 0, 0
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.come_due(0)
    for at in range(30_000):
        looked = 0
        ledger.apply(Given(PLACE, at, 1, 10_000_000 + at % 7))
        most, longest = max(most, looked), max(longest, len(ledger._heap) + len(ledger._old))
        ledger.apply(Dealt(PLACE, at))
    assert 0 < most <= 64
    assert longest < 6_000


async def test_holding_back_stops_after_some_messages_of_a_place() -> None:
    """A place may have as many as are in flight; those that come again together are one item of the heap, as before."""
    ledger, before = Ledger(), 0
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 5_000, 1_000))
    for offset in range(0, 5_000, 50):
        ledger.apply(GivenAgain(PLACE, offset, 2, 7_000))
    progress = ledger.progress(PLACE)
    assert progress is not None
    ledger.come_due(0)
    items = len(ledger._heap)
    for _ in ledger.hold_back(DueBetween(5_000, 9_000), DueBetween(5_000, 9_000)):
        done = sum(entry.due == 5_000 for entry in progress.entries.values())
        assert 0 < done - before <= 256
        before = done
    assert before == 4_900
    assert len(ledger._heap) - items <= 120
    ledger.come_due(5_000, 10_000)
    assert ledger.ready_entries == 4_900
    ledger.come_due(7_000, 10_000)
    assert ledger.ready_entries == 5_000


@pytest.mark.parametrize("seen", [0, 1, 7, 20])
async def test_a_heap_that_was_begun_is_begun_again(seen: int) -> None:
    """A replay makes none. A master that loses its role while it is made may read on, and make it anew."""
    ledger, bounds = Ledger(), DueBetween(0, 9_000)
    for queue in range(10):
        place = Place(GROUP, TOPIC, queue)
        ledger.apply(Moved(place, 0, 0))
        ledger.apply(Given(place, 1, 500, 7_000))
        ledger.apply(GivenAgain(place, 5, 2, 30_000))
        ledger.apply(Dealt(place, 10, 20))
    assert not ledger._heap
    begun = ledger.hold_back(bounds, bounds)
    for _ in range(seen):
        next(begun, None)
    ledger.apply(GivenAgain(Place(GROUP, TOPIC, 9), 6, 2, 8_000))
    for _ in ledger.hold_back(bounds, bounds):
        pass
    ready = []
    for now in (6_999, 7_000, 8_000, 9_000):
        ledger.come_due(now, 100_000)
        ready.append(ledger.ready_entries)
    assert ready == [10, 10 * 480 - 1, 10 * 480, 10 * 481], "with the ten that no fact speaks of"


async def test_holding_back_stops_after_each_place() -> None:
    ledger = Ledger()
    for queue in range(10):
        place = Place(GROUP, TOPIC, queue)
        ledger.apply(Moved(place, 0, 0))
        ledger.apply(Given(place, 0, 5, 1_000))
    assert len(list(ledger.hold_back(DueBetween(5_000, 9_000), DueBetween(5_000, 9_000)))) == 10
    assert ledger.next_due() is not None
    ledger.come_due(4_999)
    assert ledger.ready_entries == 0
    ledger.come_due(5_000)
    assert ledger.ready_entries == 50


async def test_positions_that_are_given_up_between_two_turns_are_told_by_the_next(tmp_path: Path) -> None:
    """Those of a store that stops: its files lacked them, and said to have them."""
    async with scene(tmp_path) as at:
        places = [Place(GROUP, TOPIC, queue) for queue in range(10)]
        at.journal.note(*[Moved(place, 0, 0) for place in places])
        at.kit.store.timers = at.timers
        at.timers.each_look = 0.01
        cursors = DurableCursors(at.kit.store, at.journal)
        taking = asyncio.create_task(cursors.take())
        await asyncio.sleep(0)
        taking.cancel()
        assert isinstance((await asyncio.gather(taking, return_exceptions=True))[0], asyncio.CancelledError)
        changes = await cursors.take()
        assert changes is not None
        assert {one.place for one in changes.cursors} == set(places)
        assert await cursors.take() is None


async def test_silent_clients_are_gone_in_turns() -> None:
    timers = ManualTimers()
    sessions = Sessions(timers, 10.0)
    with TurnCounter.counting() as count:
        for number in range(500):
            sessions.register(Member(f"client-{number}", GROUP))
        sessions.listen(lambda _: count())
        timers.each_look = 0.0003
        await timers.advance(10.0)
        while sessions.count():
            await turns()
        await turns()
        assert (count.all, count.most) == (500, 4)
    sessions.register(Member("another", GROUP))
    await timers.advance(10.0)
    assert sessions.count() == 0


async def test_figures_of_many_places_are_read_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(tmp_path) as at:
        figures = at.receiving.figures
        assert figures is not None
        for number in range(300):
            at.ledger.apply(Moved(Place(f"group-{number}", TOPIC, 0), 0, 0))
        with TurnCounter.counting() as count:
            read = figures._read

            async def counted(*arguments: object) -> object:
                count()
                return await read(*arguments)  # type: ignore[arg-type]

            monkeypatch.setattr(figures, "_read", counted)
            at.timers.each_look = 0.0003
            await figures.refresh()
            assert (count.all, count.most) == (300, 4)
        assert len(figures.now) == 300


async def holding(at: Scene, clients: int, messages: int) -> None:
    """A start with so many clients that hold so many messages each, which are to be renewed."""
    now = at.clock.now_ms()
    for queue in range(clients):
        place = Place(GROUP, TOPIC, queue)
        at.journal.note(Moved(place, 0, 0), Given(place, 0, messages, now + 30_000))
        at.journal.note(HeldBy(place, 0, messages, now + 30_000, f"client-{queue}", now))
    await at.receiving.stop()
    at.timers.each_look = 0.01
    at.receiving.start()


def counted_facts(at: Scene, count: TurnCounter, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(fact: Fact) -> bool:
        count(getattr(fact, "messages", 1))
        return Ledger.apply(at.ledger, fact)

    monkeypatch.setattr(at.ledger, "apply", apply)


@pytest.mark.parametrize(("clients", "messages"), [(1, 5_000), (60, 50)])
async def test_what_clients_hold_is_renewed_and_given_back_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clients: int, messages: int
) -> None:
    async with scene(tmp_path) as at:
        await holding(at, clients, messages)
        for _ in range(2 * clients + 50):
            await turns()
        members = [Member(f"client-{number}", GROUP) for number in range(clients)]
        with TurnCounter.counting() as count:
            counted_facts(at, count, monkeypatch)
            for member in members:
                at.sessions.register(member)
                await turns()
                await turns()
            assert count.all == clients * messages
            assert count.most <= 256
        progress = at.ledger.progress(PLACE)
        assert progress is not None
        assert {entry.due for entry in progress.entries.values()} == {at.clock.now_ms() + 60_000}
        with TurnCounter.counting() as count:
            counted_facts(at, count, monkeypatch)
            for _ in range(2):
                await at.timers.advance(15.0)
                for _ in range(clients):
                    await turns()
            assert (count.all, count.most <= 256) == (clients * messages, True)
        with TurnCounter.counting() as count:
            counted_facts(at, count, monkeypatch)
            for member in members:
                at.sessions.unregister(member)
                for _ in range(5):
                    await turns()
            assert (count.all, count.most <= 256) == (clients * messages, True)
        assert at.ledger.ready_entries == 0
        await at.timers.advance(GRACE_MS / 1000)
        assert at.ledger.ready_entries == clients * messages


async def test_a_client_that_is_heard_before_it_is_known_to_be_awaited_is_renewed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        await holding(at, 20, 10)
        last = Place(GROUP, TOPIC, 19)
        await at.receive(renew=True, client_id="client-19")  # a sign of life
        for _ in range(10):
            await turns()
        progress = at.ledger.progress(last)
        assert progress is not None
        assert {entry.due for entry in progress.entries.values()} == {at.clock.now_ms() + 60_000}


async def ordered_after_a_start(at: Scene, messages: int) -> list[GivenMessage]:
    """An ordered group to which so many messages are given out, after a start."""
    at.groups.put(consume_message_orderly=True)
    for number in range(messages):
        at.send(f"{number}", __SHARDINGKEY=f"{number % 50}")
    await at.kit.dispatched()
    given = await at.take(messages)
    await at.receiving.stop()
    at.timers.each_look = 0.0003
    at.receiving.start()
    return given


@contextmanager
def counted_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[TurnCounter]:
    one = PlaceReader.one
    with TurnCounter.counting() as count:

        def counted(self: PlaceReader, *arguments: Any) -> Any:
            count()
            return one(self, *arguments)

        monkeypatch.setattr(PlaceReader, "one", counted)
        yield count


async def test_the_lines_of_an_ordered_group_are_made_in_turns_for_all_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is dealt with, or given back, between two turns is as if it had been so before."""
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        given = await ordered_after_a_start(at, 400)
        assert len(given) == 400
        with counted_reads(monkeypatch) as count:
            asking = [asyncio.create_task(at.take()) for _ in range(3)]
            await turns()
            assert 0 < count.all < 400
            lines = at.receiving._there.lines
            early, late = given[:10], given[350:360]
            assert {one.error for one in await at.acknowledge([*early, *late])} == {None}
            assert not lines.known(GROUP, TOPIC)
            assert await asyncio.gather(*asking) == [[], [], []]
            assert lines.known(GROUP, TOPIC)
            assert (count.all, count.most) == (390, 3 * 4)  # each of the three that ask
        assert len(lines._groups[GROUP, TOPIC]) == 380
        at.timers.each_look = 0.0
        await at.timers.advance(INVISIBLE_MS / 1000)
        again = [int(body) for body in bodies(await at.take(400))]
        assert again == [number for number in range(10, 400) if not 350 <= number < 360]


async def test_the_first_acknowledgement_after_a_start_waits_for_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as at:
        given = await ordered_after_a_start(at, 200)
        with counted_reads(monkeypatch) as count:
            assert [one.error for one in await at.acknowledge(given[50:51], in_time=True)] == [None]
            assert (count.all, count.most) == (200, 4)
        assert at.ledger.entries == 200  # the first of its line is not acknowledged
        assert [one.error for one in await at.acknowledge(given[:1], in_time=True)] == [None]
        assert at.ledger.entries == 198


async def test_a_commit_at_the_metadata_service_is_never_taken_for_a_reset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor in the first moments of a master with more places than one turn looks at, some of which were reset before."""
    async with scene(tmp_path) as at:
        at.send("a", "b", "c")
        await at.kit.dispatched()
        groups = [f"group-{number}" for number in range(100)]
        at.journal.note(*(Moved(Place(group, TOPIC, 0), 1, 1) for group in groups))
        resets: list[str] = []
        monkeypatch.setattr(at.sessions, "ask_consumers", lambda group, _: resets.append(group))
        ways = Ways(at.timers, at.journal, at.sessions)
        link = OffsetsLink("", cast(Any, None), at.kit.store, at.journal, DurableCursors(at.kit.store, at.journal))
        at.timers.each_look = 0.01
        ways.start()

        def told(cursor: int, count: int) -> pb.TablePage:
            entries = [
                pb.GroupOffsets(group=one, topic=TOPIC, offsets={0: cursor}, resets={0: count}) for one in groups
            ]
            return pb.TablePage(consumer_offsets=entries)

        await link._take(told(2, 1))
        assert resets == []
        assert all(ways.of(group) == {Way.COMMITS} for group in groups)
        await link._take(told(0, 2))
        assert resets == groups


async def test_a_whole_table_of_the_metadata_service_is_taken_and_told_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are told again after it: what the metadata service was told last may be lost."""
    async with scene(tmp_path) as at:
        at.send("a", "b")
        await at.kit.dispatched()
        at.kit.store.timers = at.timers
        at.timers.each_look = 0.01
        cursors = DurableCursors(at.kit.store, at.journal)
        link = OffsetsLink("", cast(Any, None), at.kit.store, at.journal, cursors)
        entries = [pb.GroupOffsets(group=f"group-{at}", topic=TOPIC, offsets={0: 1}) for at in range(1_000)]
        page = pb.TablePage(consumer_offsets=entries, whole=True, last=True)
        with TurnCounter.counting() as count:
            counted_facts(at, count, monkeypatch)
            await link._take(page)
            assert (count.all, count.most) == (1_000, 32)
        assert await cursors.take() is not None
        with TurnCounter.counting() as count:
            again = at.ledger.moved_again

            def counted(places: Collection[Place]) -> None:
                count(len(places))
                again(places)

            monkeypatch.setattr(at.ledger, "moved_again", counted)
            await link._take(page)
            assert (count.all, count.most) == (1_000, 32)
        changes = await cursors.take()
        assert changes is not None
        assert len(changes.cursors) == 1_000
        cursors.put_back(changes)
        assert len(at.ledger.take_moved()) == 1_000


@asynccontextmanager
async def with_a_large_snapshot(root: Path, entries: int) -> AsyncIterator[DeliveringStore]:
    """A store whose journal ends with a record that tells all of one place."""
    async with delivering(root, whole=False, mapped_file_size_commit_log=1 << 20) as one:
        journal = one.delivery.journal
        due = begin(one.delivery, given=entries)
        journal.note(*(GivenAgain(PLACE, at, 2, due + at % 7) for at in range(0, entries, 3)))
        journal.note(HeldBy(PLACE, 100, 20, due, "client", 9))
        journal.write()
        progress = one.delivery.ledger.progress(PLACE)
        assert progress is not None
        telling = Telling(progress, 1 << 18)
        while telling.step():
            pass
        [record] = telling.encode(journal._base_position, journal.start)
        journal._append([record])
        one.store.catch_up()
        yield one


def follower_of(one: DeliveringStore) -> tuple[JournalFollower, Ledger]:
    """Another one that reads the journal of a store, with a clock that lets a slice be over at each look."""
    timers, ledger = ManualTimers(), Ledger()
    timers.each_look = 0.01
    one.store.timers = timers
    return JournalFollower(one.store, ledger, Base(1 << 30), SafeBase()), ledger


async def test_a_record_with_a_large_snapshot_is_read_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_a_large_snapshot(tmp_path, 5_000) as one:
        follower, ledger = follower_of(one)
        restore, wait = QueueProgress.restore, Ledger._wait
        with TurnCounter.counting() as decoded, TurnCounter.counting() as restored, TurnCounter.counting() as waiting:

            def number(self: _Reader) -> int:
                decoded()
                return read_number(self)

            def counted_restore(self: QueueProgress, fact: Snapshot) -> None:
                restored(len(fact.entries))
                restore(self, fact)

            def counted_wait(self: Ledger, *arguments: Any) -> None:
                waiting()
                wait(self, *arguments)

            read_number = _Reader.number
            monkeypatch.setattr(_Reader, "number", number)
            monkeypatch.setattr(QueueProgress, "restore", counted_restore)
            monkeypatch.setattr(Ledger, "_wait", counted_wait)
            await follower.catch_up()
            assert (restored.all, restored.most) == (5_000, 256)
            assert waiting.all > 3_000
            assert waiting.most <= 256
            assert decoded.all > 4 * 5_000
            assert decoded.most <= 6 * 128
        assert state(ledger) == state(one.delivery.ledger)
        assert ledger.entries == one.delivery.ledger.entries


@pytest.mark.slow
async def test_a_journal_that_is_read_anew_in_the_middle_of_a_record_is_read_whole(tmp_path: Path) -> None:
    async with with_a_large_snapshot(tmp_path, 1_000) as one:
        follower, ledger = follower_of(one)
        steps = 0
        while follower.step():
            steps += 1
        for stop in range(0, steps, 3):
            follower.begin_anew()
            for _ in range(stop):
                follower.step()
            follower.begin_anew()
            assert (len(ledger), ledger.entries) == (0, 0)
            while follower.step():
                pass
            assert state(ledger) == state(one.delivery.ledger)
            ledger.come_due(1 << 43, 10_000)
            assert ledger.ready_entries == ledger.entries == 1_000


async def test_half_messages_are_made_known_in_turns_before_any_is_ended_or_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with half_messages(tmp_path, mapped_file_size_commit_log=1 << 20) as on:
        handles = [await on.half(f"{number}") for number in range(400)]
        on.kit.store.catch_up()
        await on.timers.advance(60.0)
        checking, producer = on.transactions.checking, on.producer()
        await on.transactions.stop()
        on.timers.each_look = 0.01
        with TurnCounter.counting() as count:

            def watch(pending: PendingTransaction) -> None:
                count()
                checking.watch(pending)

            monkeypatch.setattr(on.transactions._following, "_began", watch)
            on.transactions.start()
            async with asyncio.timeout(20):
                while not count.all:
                    await asyncio.sleep(0)
            assert count.all < 400
            late = await on.half("late")
            on.kit.store.catch_up()
            assert producer() == []  # all of them are due
            ending = asyncio.create_task(on.end(handles[7]))
            await turns()
            await on.end(late)
            await ending
            assert (count.all, count.most) == (401, 32)
        assert on.bodies() == [b"7", b"late"]
        on.timers.each_look = 0.0
        await on.timers.advance(0.1)
        assert sorted(producer(), key=int) == [str(number) for number in range(400) if number != 7]
