"""What is kept beside the ledger: which messages somebody holds."""

from tandemmq.store.delivery.journal.facts import Dealt, Given, GivenAgain, Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.receiving.side_state import SideState

PLACE = Place("group", "topic", 0)


def test_a_message_that_waits_for_its_retry_is_held_by_nobody_whether_it_is_due_or_not() -> None:
    ledger = Ledger()
    side = SideState(ledger)
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 3, 60_000))
    assert side.in_flight(PLACE) == 3
    ledger.apply(GivenAgain(PLACE, 0, 1, 500))
    side.waits_for_retry(PLACE, 0)
    assert side.in_flight(PLACE) == 2
    ledger.come_due(1_000)
    assert (ledger.ready_count(PLACE), side.in_flight(PLACE)) == (1, 2)
    ledger.apply(GivenAgain(PLACE, 0, 2, 70_000))
    assert (ledger.ready_count(PLACE), side.in_flight(PLACE)) == (0, 3)


def test_what_is_put_off_counts_once_however_it_ends() -> None:
    ledger = Ledger()
    side = SideState(ledger)
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
