"""What is kept beside the ledger: which messages somebody holds."""

from tandemmq.store.delivery.facts import Dealt, Given, GivenAgain, Moved, Place
from tandemmq.store.delivery.handles import ReceiptHandle
from tandemmq.store.delivery.ledger import Ledger
from tandemmq.store.delivery.side_state import SideState

PLACE = Place("group", "topic", 0)


def test_a_message_that_waits_for_its_retry_is_held_by_nobody_whether_it_is_due_or_not() -> None:
    ledger = Ledger()
    side = SideState(ledger, 1)
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 3, 60_000))
    assert side.in_flight(PLACE) == 3
    ledger.apply(GivenAgain(PLACE, 0, 1, 500))
    side.waits_for_retry(PLACE, 0)
    assert side.in_flight(PLACE) == 2
    ledger.come_due(1_000)
    assert (ledger.ready_count(PLACE), side.in_flight(PLACE)) == (1, 2)
    ledger.apply(GivenAgain(PLACE, 0, 2, 70_000))
    side.given_again(PLACE, 0)
    assert (ledger.ready_count(PLACE), side.in_flight(PLACE)) == (0, 3)


def test_a_handle_of_an_earlier_start_counts_until_its_message_is_given_out_again() -> None:
    """The numbers of deliveries repeat where the facts of the last moments were lost with that start."""
    ledger = Ledger()
    side = SideState(ledger, 2)
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 2, 500))
    progress = ledger.progress(PLACE)
    assert progress is not None

    def counts(offset: int, number: int, start: int) -> bool:
        entry = progress.entries.get(offset)
        return entry is not None and side.counts(ReceiptHandle(PLACE, offset, number, 0, start), entry)

    assert counts(0, 1, 1)
    for offset in (0, 1):
        ledger.apply(GivenAgain(PLACE, offset, 2, 60_000))
        side.given_again(PLACE, offset)
    assert [counts(offset, 2, start) for offset in (0, 1) for start in (1, 2)] == [False, True, False, True]
    ledger.apply(Dealt(PLACE, 0))
    side.dealt(Dealt(PLACE, 0))
    assert not counts(0, 2, 2)
    assert not counts(1, 2, 1)
    side.dealt(Dealt(PLACE, 1))
    assert side._again == {}


def test_what_is_put_off_counts_once_however_it_ends() -> None:
    ledger = Ledger()
    side = SideState(ledger, 1)
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 6, 60_000))

    def put_off(offset: int, due: int) -> None:
        ledger.apply(GivenAgain(PLACE, offset, 1, due))
        side.waits_for_retry(PLACE, offset)

    for offset in range(4):
        put_off(offset, 5_000)
    assert side.in_flight(PLACE) == 2
    ledger.apply(Dealt(PLACE, 0))
    assert side.in_flight(PLACE) == 2, "dealt with while it was put off"
    ledger.come_due(5_000)
    assert side.in_flight(PLACE) == 2, "due: neither put off nor held"
    ledger.set_aside(PLACE, 1)
    assert side.in_flight(PLACE) == 2, "it waits for its message group"
    put_off(4, 0)
    assert side.in_flight(PLACE) == 1, "due at once"
    put_off(5, 9_000)
    assert side.in_flight(PLACE) == 0
    ledger.apply(GivenAgain(PLACE, 5, 1, 60_000))
    assert side.in_flight(PLACE) == 1, "the answer of the same attempt was repeated: somebody holds it again"
    put_off(5, 9_000)
    ledger.apply(Moved(PLACE, 6, 0))
    ledger.apply(Given(PLACE, 6, 1, 60_000))
    assert (side.in_flight(PLACE), ledger.places_put_off()) == (1, [])
    put_off(6, 9_000)
    ledger.apply(Moved(PLACE, 0, 1))
    assert (side.in_flight(PLACE), ledger.places_put_off()) == (0, [])


def test_a_handle_of_an_earlier_start_counts_for_what_was_given_out_then_and_not_for_what_took_its_place() -> None:
    ledger = Ledger()
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 2, 60_000))
    side = SideState(ledger, 2)
    progress = ledger.progress(PLACE)
    assert progress is not None
    side.begins_to_give(progress)
    ledger.apply(Given(PLACE, 2, 1, 60_000))
    side.begins_to_give(progress)
    told = {
        (offset, start): side.counts(ReceiptHandle(PLACE, offset, 1, 0, start), progress.entries[offset])
        for offset in (0, 2) for start in (1, 2)
    }  # fmt: skip
    assert told == {(0, 1): True, (0, 2): True, (2, 1): False, (2, 2): True}
