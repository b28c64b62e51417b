"""The journal: what was noted is there again, whatever ended the store."""

import asyncio
import shutil
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.journal.base import Base, SafeBase
from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Forgotten,
    Given,
    GivenAgain,
    HeldBy,
    LevelDone,
    Moved,
    Place,
    Snapshot,
    TimersDone,
)
from tandemmq.store.delivery.journal.follower import JournalFollower
from tandemmq.store.delivery.journal.journal_format import JOURNAL_TOPIC, Position
from tandemmq.store.delivery.journal.telling import Telling
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.delivery.opening import LEAST_WAIT_MS
from tandemmq.store.format.message import Message
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.marks.running_flags import Reason
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter
from tests.unit.delivery.delivery_kit import PLACE, DeliveringStore, begin, delivering, state


async def test_what_was_noted_is_there_after_a_clean_stop(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        journal = one.delivery.journal
        due = begin(one.delivery)
        journal.note(Dealt(PLACE, 0), Dealt(PLACE, 4, 2), GivenAgain(PLACE, 3, 2, due + 9))
        journal.note(LevelDone(3, 17), TimersDone(5, 1_000, 4))
        await journal.safe()
        journal.note(Dealt(PLACE, 1))  # the end of the turn does not come before the stop
        before, start = state(one.delivery.ledger), journal.start
    async with delivering(tmp_path / "store", whole=False) as two:
        assert state(two.delivery.ledger) == before
        assert two.delivery.journal.start == start


async def test_what_was_noted_is_there_after_a_kill_and_those_who_hold_messages_have_time(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        begin(one.delivery, due_in=10)
        one.delivery.journal.note(Dealt(PLACE, 2))
        await one.delivery.journal.safe()
        before, start = state(one.delivery.ledger, dues=False), one.delivery.journal.start
        root = one.killed(tmp_path / "killed")
    async with delivering(root, whole=False) as two:
        ledger, now = two.delivery.ledger, two.delivery.clock.now_ms()
        assert state(ledger, dues=False) == before
        assert two.delivery.journal.start > start
        ledger.come_due(now)
        assert not ledger.ready(PLACE)
        ledger.come_due(now + LEAST_WAIT_MS)
        assert ledger.ready(PLACE) == [0, 1, 3, 4, 5, 6, 7, 8, 9]


async def test_facts_of_one_turn_are_one_message_and_come_behind_their_copy(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        begin(one.delivery)
        copy = one.delivery.journal.copy(Message("%DLQ%workers", 0, b"dead", store_host=one.broker.sender.store_host))
        one.delivery.journal.note(Dealt(PLACE, 0, 1, copy.physical_offset))
        await asyncio.sleep(0)
        queue = one.store.queue(JOURNAL_TOPIC, 0)
        assert queue is not None
        [unit] = queue.read(0, 10)
        assert unit.physical_offset >= copy.end_offset


async def test_one_who_cannot_be_told_of_a_turn_does_not_take_the_others_along(tmp_path: Path) -> None:
    async with delivering(tmp_path, whole=False) as one:
        told: list[object] = []

        def broken(_: object) -> None:
            raise RuntimeError("it is in pieces")

        begin(one.delivery)
        one.delivery.journal.when_written(broken)
        one.delivery.journal.when_written(told.append)
        async with asyncio.timeout(10):
            await one.delivery.journal.written()
        assert told == [None]


@pytest.mark.parametrize("error", [RuntimeError("it is in pieces"), StoreError("the log takes nothing")])
async def test_a_stop_that_cannot_write_tells_those_who_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async with delivering(tmp_path, whole=False) as one:
        journal, told = one.delivery.journal, list[object]()
        due = begin(one.delivery)
        journal.write()

        def broken(*_: object) -> None:
            raise error

        async def waits() -> None:
            journal.note(GivenAgain(PLACE, 3, 2, due + 9))
            await journal.written()

        waiting = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        journal.when_written(told.append)
        monkeypatch.setattr(journal, "_write", broken)
        with suppress(RuntimeError):
            journal.close()
        async with asyncio.timeout(10):
            with pytest.raises(NotDelivering, match="it stops"):
                await waiting
        assert [type(each) for each in told] == [NotDelivering]


async def test_a_fact_whose_copy_is_gone_does_not_count(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        begin(one.delivery)
        one.delivery.journal.note(LevelDone(1, 3), Dealt(PLACE, 0, 1, copy=5), LevelDone(1, 9, copy=5))
        await one.delivery.journal.safe()
    async with delivering(tmp_path / "store", whole=False) as two:
        progress = two.delivery.ledger.progress(PLACE)
        assert progress is not None
        assert progress.cursor == 0
        assert two.delivery.ledger.levels == {1: 3}


async def test_a_damaged_record_is_passed_over(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        begin(one.delivery)
        await one.delivery.journal.safe()
        for facts in (Dealt(PLACE, 0), Dealt(PLACE, 1), Dealt(PLACE, 2)):
            one.delivery.journal.note(facts)
            await one.delivery.journal.safe()
        one.store.catch_up()
        queue = one.store.queue(JOURNAL_TOPIC, 0)
        assert queue is not None
        unit = queue.read(2, 1)[0]
    log = next((tmp_path / "store" / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    data[unit.physical_offset + 88 + 12] ^= 0x40  # in its body
    log.write_bytes(data)
    async with delivering(tmp_path / "store", whole=False) as two:
        progress = two.delivery.ledger.progress(PLACE)
        assert progress is not None
        assert progress.cursor == 1
        assert sorted(progress.entries) == [1, 3, 4, 5, 6, 7, 8, 9]


async def test_a_slave_knows_what_the_master_knows_and_goes_on_with_it(tmp_path: Path) -> None:
    async with delivering(tmp_path / "master", whole=False) as one:
        begin(one.delivery)
        await one.delivery.journal.safe()
        shutil.copytree(tmp_path / "master", tmp_path / "slave", ignore=shutil.ignore_patterns("lock", "abort"))
        known = one.store.commit_log.max_offset
        async with delivering(tmp_path / "slave", ready=False, broker_role="SLAVE", broker_id=1, whole=False) as two:
            one.delivery.journal.note(Dealt(PLACE, 0), Dealt(PLACE, 5), HeldBy(PLACE, 6, 2, 9_000, "client", 8_000))
            await one.delivery.journal.safe()
            [file] = one.store.commit_log.files
            two.store.append_replica(known, memoryview(file.map)[known : one.store.commit_log.max_offset])
            assert not two.delivery.delivering
            with pytest.raises(NotDelivering):
                two.delivery.journal.note(Dealt(PLACE, 1))
            await two.store.replica.promote(BrokerRole.ASYNC_MASTER, 0)
            await two.delivery.ready()
            assert state(two.delivery.ledger, dues=False) == state(one.delivery.ledger, dues=False)
            assert two.delivery.journal.start > one.delivery.journal.start
            two.delivery.journal.note(Dealt(PLACE, 1))
            await two.delivery.journal.safe()
            two.store.replica.fence(9)
            with pytest.raises(NotDelivering):
                two.delivery.journal.note(Dealt(PLACE, 2))


async def test_the_base_moves_on_and_old_records_are_not_needed(tmp_path: Path) -> None:
    other = Place("workers", "orders", 1)
    async with delivering(tmp_path / "store", whole=False) as one:
        due = begin(one.delivery, other)
        begin(one.delivery)
        one.delivery.journal.note(Dealt(other, 3), GivenAgain(other, 4, 2, due), HeldBy(other, 6, 2, due, "client", 9))
        for number in range(3_000):  # many log files of 64 KiB
            one.delivery.journal.note(Given(PLACE, 10 + number, 1, due), Dealt(PLACE, number))
            one.delivery.journal.write()
        await one.delivery.journal.safe()
        assert await one.store.wait_flushed(one.store.commit_log.max_offset)
        guard = one.store._retention.guards[0]()
        assert guard is not None
        assert one.store.commit_log.max_offset - guard <= 3 * 64 * 1024
        before = state(one.delivery.ledger, dues=False)
    for file in sorted((tmp_path / "store" / "commitlog").iterdir())[: guard // (64 * 1024)]:
        file.unlink()
    shutil.rmtree(tmp_path / "store" / "config", ignore_errors=True)
    for path in (tmp_path / "store").glob("tandem.manifest*"):
        path.unlink()
    async with delivering(tmp_path / "store", whole=False) as two:
        assert state(two.delivery.ledger, dues=False) == before


async def test_the_journal_has_not_failed_any_more_when_its_base_is_kept(tmp_path: Path) -> None:
    """What was noted is all written: until the next note nothing else would say that the log takes records again."""
    async with delivering(tmp_path / "store", whole=False) as one:
        journal, store, due = one.delivery.journal, one.store, begin(one.delivery)
        number = 0
        while not journal._base_is_late:  # the turn that would keep it does not come in between
            journal.note(Given(PLACE, 10 + number, 1, due), Dealt(PLACE, number))
            journal.write()
            number += 1
        store.flags.set(Reason.FENCED, "there is a newer master")
        journal._turn()
        assert journal.failure is not None
        store.flags.clear(Reason.FENCED)
        journal._turn()
        assert journal.failure is None


async def test_a_place_that_was_forgotten_stays_so(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        begin(one.delivery)
        one.delivery.journal.note(Forgotten(PLACE))
        await one.delivery.journal.safe()
    async with delivering(tmp_path / "store", whole=False) as two:
        assert not state(two.delivery.ledger)["places"]
        two.delivery.journal.note(Moved(PLACE, 4, 0))
        await two.delivery.journal.safe()


async def test_a_log_that_starts_above_the_base_gets_one_of_its_own(tmp_path: Path) -> None:
    """A slave that joined late and was promoted, or a store whose first files are gone: its journal is whole again."""
    file_size, root = 64 * 1024, tmp_path / "store"
    other = Place("workers", "orders", 1)
    async with delivering(root, whole=False) as one:
        await one.send("orders", 10, queue=1)
        due = begin(one.delivery, other)
        one.delivery.journal.note(Dealt(other, 0, 4))
        begin(one.delivery)
        number, base, newest = 0, 0, 0
        while number < 1_000 or base >= newest:  # else nothing that is needed would be taken away
            assert number < 5_000
            for at in range(number, number + 50):
                one.delivery.journal.note(Given(PLACE, 10 + at, 1, due), Dealt(PLACE, at))
                one.delivery.journal.write()
            number += 50
            await one.delivery.journal.safe()
            assert await one.store.wait_flushed(one.store.commit_log.max_offset)
            base = one.store._retention.guards[0]() or 0
            newest = one.store.commit_log.max_offset // file_size * file_size
    for file in sorted((root / "commitlog").iterdir()):
        if int(file.name) < newest:
            file.unlink()
    for path in root.glob("tandem.manifest*"):
        path.unlink()
    async with delivering(root, whole=False) as two:
        known = {progress.place: progress.cursor for progress in two.delivery.ledger.all()}
        assert known[other] == 4
        await two.delivery.journal.safe()
        own = two.store._retention.guards[0]()
        assert own is not None
        assert own >= two.store.commit_log.min_offset
        before = state(two.delivery.ledger, dues=False)
    shutil.rmtree(root / "config")
    async with delivering(root, whole=False) as three:
        assert state(three.delivery.ledger, dues=False) == before


async def told_in_turns(one: DeliveringStore, entries: int) -> Telling:
    """The base lies far behind a place with so many entries, which is being told."""
    due = begin(one.delivery, given=entries)
    journal = one.delivery.journal
    journal.note(*[GivenAgain(PLACE, at, 2, due + at) for at in range(0, entries, 3)])
    journal.write()
    other = Place("workers", "orders", 1)
    begin(one.delivery, other)
    while journal._telling is None:
        journal.note(GivenAgain(other, 3, 1, due))
        journal.write()
        for _ in range(20):
            journal.note(*[GivenAgain(other, 3, 1, due)] * 500)
        await asyncio.sleep(0)
    assert journal._telling.place == PLACE
    return journal._telling


@pytest.mark.slow
async def test_a_place_with_many_entries_is_told_in_turns_and_what_is_noted_meanwhile_counts(tmp_path: Path) -> None:
    timers = ManualTimers()
    async with delivering(tmp_path / "store", whole=False) as one:
        one.store.timers = timers
        timers.each_look = 0.01
        telling = await told_in_turns(one, 5_000)
        journal = one.delivery.journal
        with TurnCounter.counting() as count:
            add = telling._pages.add

            def counted(fact: Fact, *, apart: bool = True) -> None:
                count(len(fact.entries) if isinstance(fact, Snapshot) else 1)
                add(fact, apart=apart)

            telling._pages.add = counted  # type: ignore[method-assign]
            number = 0
            while journal._telling is telling:
                journal.note(Dealt(PLACE, number), GivenAgain(PLACE, 4_999 - number, 3, 99))
                number += 1
                await asyncio.sleep(0)
            assert 10 < number < 100
            assert count.all == 5_000 + 2 * number
            assert count.most <= 256 + 2 * number
        await journal.safe()
        before = state(one.delivery.ledger, dues=False)
        assert journal._base.position(Position(0, 0)).queue_offset > 1
        killed = one.killed(tmp_path / "killed")
    for root in (tmp_path / "store", killed):
        shutil.rmtree(root / "config", ignore_errors=True)
        async with delivering(root, whole=False) as two:
            assert state(two.delivery.ledger, dues=False) == before


async def test_a_place_that_is_forgotten_while_it_is_told_stays_so(tmp_path: Path) -> None:
    timers = ManualTimers()
    async with delivering(tmp_path / "store", whole=False) as one:
        one.store.timers = timers
        timers.each_look = 0.01
        telling = await told_in_turns(one, 5_000)
        one.delivery.journal.note(Forgotten(PLACE), Moved(PLACE, 7, 0))
        assert telling.vain
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.delivery.journal._telling is None
        await one.delivery.journal.safe()
        before = state(one.delivery.ledger, dues=False)
    async with delivering(tmp_path / "store", whole=False) as two:
        assert state(two.delivery.ledger, dues=False) == before
        assert two.delivery.ledger.progress(PLACE) is not None


def test_the_facts_since_are_in_the_record_of_the_last_piece() -> None:
    """Two records may be parted by a kill: what was acknowledged meanwhile would be undone by the first alone."""
    progress = QueueProgress(PLACE)
    progress.give(Given(PLACE, 0, 3_000, 60_000))
    telling = Telling(progress, 1_000)
    while telling.step():
        telling.noted(Dealt(PLACE, 5))
        telling.noted(Dealt(Place("others", "orders", 0), 5))
    [*some, (_, last)] = telling.encode(Position(0, 0), 1)
    pieces = [fact for _, facts in some for fact in facts]
    assert all(isinstance(one, Snapshot) and one.more for one in pieces)
    assert isinstance(last[0], Snapshot)
    assert not [one for one in last[1:] if not isinstance(one, Dealt)]
    assert (len(pieces), len(last)) == (11, 1 + 12)


async def test_the_journal_is_read_in_turns(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        due = begin(one.delivery)
        for _ in range(20):
            one.delivery.journal.note(GivenAgain(PLACE, 3, 1, due))
            one.delivery.journal.write()
        await one.delivery.journal.safe()
        timers, ledger = ManualTimers(), Ledger()
        follower, reads = JournalFollower(one.store, ledger, Base(1 << 20), SafeBase()), [0]
        await follower.dispatched_to(one.store.commit_log.max_offset)
        one.store.timers = timers
        timers.each_look = 0.0003
        while follower.step():
            reads.append(follower.next)
        reads.append(follower.next)
        assert max(after - before for before, after in pairwise(reads)) == 4
        assert state(ledger) == state(one.delivery.ledger)
