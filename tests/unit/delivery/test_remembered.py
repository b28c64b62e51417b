"""Subscriptions that are remembered: the latest, and no more text than there is room for."""

import itertools

import pytest

from tandemmq.store.delivery.errors import BadFilter
from tandemmq.store.delivery.port import FilterKind, Subscription
from tandemmq.store.delivery.receiving.remembered import Remembered
from tandemmq.store.delivery.receiving.selection import Selections


def numbered() -> Remembered[int]:
    """Makes a number of each: how many it has made."""
    made = itertools.count(1)
    return Remembered(lambda _: next(made))


def test_long_ones_are_not_all_kept() -> None:
    """A thousand of 32,000 characters each would take hundreds of MB."""
    remembered = numbered()
    long = [Subscription(f"{number}" + "x" * 30_000) for number in range(50)]
    for one in long:
        remembered(one)
    assert remembered.characters <= 256 << 10
    assert remembered(long[-1]) == 50
    assert remembered(long[0]) == 51
    huge = Subscription("y" * (300 << 10))
    assert remembered(huge) == remembered(huge) == 52
    assert remembered.characters == 300 << 10


def test_the_latest_of_many_short_ones_are_kept() -> None:
    remembered = numbered()
    for number in range(2_000):
        remembered(Subscription(f"tag{number}"))
        assert remembered(Subscription("tag0")) == 1
    assert remembered(Subscription("tag1999")) == 2_000
    assert remembered(Subscription("tag1")) == 2_001


def test_a_selection_is_compiled_once_while_it_is_used_and_one_that_is_refused_is_not_kept() -> None:
    asked: list[Subscription] = []

    def parse(subscription: Subscription) -> None:
        asked.append(subscription)
        raise BadFilter("it cannot be understood")

    selections = Selections(parse)  # type: ignore[arg-type]
    tags = Subscription("a || b")
    assert selections.select(tags) is selections.select(tags)
    for _ in range(2):
        with pytest.raises(BadFilter):
            selections.select(Subscription("?", FilterKind.SQL))
    assert len(asked) == 2
