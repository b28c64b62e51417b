"""A number in its queue that a flipped bit has made larger: the records after it in the log show it."""

import pytest

from tandemmq.spark.rebuilding.queue_writer import Interval
from tandemmq.spark.rebuilding.stitching import accept


@pytest.mark.parametrize("odd", [11, 12, 15, 500])
def test_later_records_are_not_hidden(odd: int) -> None:
    plan = accept(
        [Interval(0, 10, 0, 1_000), Interval(odd, odd + 1, 1_000, 1_100), Interval(11, 20, 1_100, 2_000)], 100
    )
    assert [(one.first, one.end) for one in plan.accepted] == [(0, 10), (11, 20)]
    assert (plan.first, plan.end, plan.blanks, plan.irregular) == (0, 20, [(10, 11)], True)


def test_the_first_record_of_a_queue() -> None:
    plan = accept([Interval(740, 741, 0, 100), Interval(101, 120, 100, 2_000)], 100)
    assert [(one.first, one.end) for one in plan.accepted] == [(101, 120)]
    assert (plan.first, plan.end, plan.blanks) == (101, 120, [(100, 101)])


def test_a_gap_that_records_go_on_behind_is_one() -> None:
    plan = accept([Interval(0, 10, 0, 1_000), Interval(50, 60, 5_000, 6_000), Interval(20, 22, 7_000, 7_200)], 100)
    assert [(one.first, one.end) for one in plan.accepted] == [(0, 10), (50, 60)]


def test_a_number_given_twice_is_the_first_one_s() -> None:
    plan = accept([Interval(0, 10, 0, 1_000), Interval(9, 12, 1_000, 1_300)], 100)
    assert [(one.first, one.end) for one in plan.accepted] == [(0, 10), (10, 12)]
