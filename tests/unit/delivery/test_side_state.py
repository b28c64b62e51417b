"""What is kept beside the ledger: which messages somebody holds."""

from tandemmq.store.delivery.facts import Given, GivenAgain, Moved, Place
from tandemmq.store.delivery.ledger import Ledger
from tandemmq.store.delivery.side_state import SideState

PLACE = Place("group", "topic", 0)


def test_a_message_that_waits_for_its_retry_is_held_by_nobody_whether_it_is_due_or_not() -> None:
    ledger = Ledger()
    side = SideState(ledger, 1)
    ledger.apply(Moved(PLACE, 0, 0))
    ledger.apply(Given(PLACE, 0, 3, 60_000))
    assert side.held(PLACE) == 3
    ledger.apply(GivenAgain(PLACE, 0, 1, 500))
    side.waits_for_retry(PLACE, 0)
    assert side.held(PLACE) == 2
    ledger.come_due(1_000)
    assert (ledger.ready_count(PLACE), side.held(PLACE)) == (1, 2)
    ledger.apply(GivenAgain(PLACE, 0, 2, 70_000))
    side.given_again(PLACE, 0)
    assert (ledger.ready_count(PLACE), side.held(PLACE)) == (0, 3)
