"""Where the next call is made: addresses that were given, and one that a store has told."""

import pytest

from tandemmq.client.places import DOUBT_SECONDS, Places, addresses_of

A, B, C = "a:1", "b:2", "c:3"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_addresses_in_a_row_or_with_commas() -> None:
    assert addresses_of("a:1, b:2,") == addresses_of([A, B]) == (A, B)
    for wrong in ("", "a", "a:", ":1", "a:b"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            addresses_of(wrong)


def test_those_that_were_given_take_turns() -> None:
    places = Places((A, B))
    seen = []
    for _ in range(3):
        seen.append(places.current)
        places.leave(places.current, silent=True)
    assert seen == [A, B, A]
    places.leave(A, silent=True)
    assert places.current == B, "somebody else has gone on already"


def test_a_master_that_is_told_is_tried_at_once() -> None:
    places = Places((A, B))
    assert places.lead_to(B)
    assert (places.current, places.all) == (B, (A, B))
    assert places.lead_to(C)
    assert (places.current, places.all) == (C, (A, B, C))
    places.leave(C, silent=False)
    assert (places.current, places.all) == (A, (A, B, C)), "it has answered, and may be of use later"
    assert not places.lead_to("")


def test_one_that_does_not_answer_is_not_believed_for_a_while() -> None:
    clock = Clock()
    places = Places((A,), clock)
    places.lead_to(C)
    places.leave(C, silent=True)
    assert (places.current, places.all) == (A, (A,))
    assert not places.lead_to(C)
    clock.now += DOUBT_SECONDS
    assert places.lead_to(C)
