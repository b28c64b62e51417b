"""Any two sets that must meet do: all sets of up to five slaves."""

from itertools import combinations

import pytest

from tandemmq.replicator.roles.quorum import enough_to_know, enough_to_promise

SIZES = [(members, needed) for members in range(1, 6) for needed in range(1, members + 2)]


def sets(members: int, size: int) -> list[frozenset[int]]:
    return [frozenset(one) for one in combinations(range(members), size)]


@pytest.mark.parametrize(("members", "needed"), SIZES)
def test_whoever_takes_over_has_asked_one_that_acknowledged(members: int, needed: int) -> None:
    for promised in sets(members, enough_to_promise(members, needed)):
        assert members - len(promised) < needed, "the others cannot make the old master acknowledge"
        assert all(promised & acknowledged for acknowledged in sets(members, needed))


@pytest.mark.parametrize(("members", "needed"), SIZES)
def test_two_who_take_over_have_asked_the_same_one(members: int, needed: int) -> None:
    promised = sets(members, enough_to_promise(members, needed))
    assert all(one & other for one in promised for other in promised)
    larger = sets(members + 1, enough_to_promise(members + 1, needed))
    assert all(one & other for one in promised for other in larger), "one of them knew of a slave more"


@pytest.mark.parametrize(("members", "needed"), SIZES)
def test_whoever_takes_over_has_asked_one_that_knows(members: int, needed: int) -> None:
    """Also if it knew of the slave that was joining, which the others were told of."""
    for know in sets(members, enough_to_know(members, needed)):
        for size in (members, members + 1):
            assert all(know & promised for promised in sets(size, enough_to_promise(size, needed)))


def test_with_nothing_needed_nothing_is_enough() -> None:
    assert enough_to_promise(2, 0) == 3
    assert enough_to_know(0, 1) == 0
