"""Which broker a message goes to: the same for all gateways, evenly, and moved little by a new broker."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.gateway.choosing import chosen

NAMES = st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=6, unique=True)


@given(st.text(max_size=40), NAMES, st.randoms())
def test_the_order_of_brokers_does_not_count(key: str, names: list[str], random: object) -> None:
    assert chosen(key, names) == chosen(key, sorted(names)) == chosen(key, names[::-1])


@given(st.text(max_size=40), NAMES, st.text(min_size=1, max_size=20))
def test_a_new_broker_takes_keys_and_moves_no_other(key: str, names: list[str], new: str) -> None:
    assert chosen(key, [*names, new]) in (chosen(key, names), new)


def test_each_broker_gets_its_share() -> None:
    counts = Counter(chosen(f"{number:X}", ["a", "b", "c"]) for number in range(3_000))
    assert all(850 < count < 1_150 for count in counts.values()), counts


def test_the_choice_is_that_of_other_releases_too() -> None:
    """Messages of a group must not change their broker with an upgrade."""
    assert [chosen(f"order-{number}", ["a", "b"]) for number in range(8)] == list("bababaab")
