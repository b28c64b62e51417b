"""Stretches of numbers against a plain set of them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format.offset_ranges import OffsetRanges

_SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40))


@given(st.lists(_SPANS), _SPANS)
def test_it_is_the_set_of_its_numbers(spans: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    ranges, numbers = OffsetRanges(), set[int]()
    for begin, end in spans:
        ranges.add(begin, end)
        numbers.update(range(begin, end))
    assert {number for number in range(-1, 42) if number in ranges} == numbers
    stretches = list(ranges)
    assert all(begin < end for begin, end in stretches)
    assert all(a[1] < b[0] for a, b in pairwise(stretches))
    missing = {number for begin, end in ranges.missing(*asked) for number in range(begin, end)}
    assert missing == set(range(*asked)) - numbers
