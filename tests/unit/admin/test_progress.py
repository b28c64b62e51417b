"""Arithmetic on offsets."""

import pytest

from tandemmq.admin.books.queue_ends import QueueEnds
from tandemmq.admin.consuming.progress import lag_in, lag_of, position
from tandemmq.store.v1 import store_pb2


def ends(**topics: dict[int, tuple[int, int]]) -> QueueEnds:
    """Queues by topic: id -> (begin, end); a begin below 0 is a queue that is being rebuilt."""
    return QueueEnds(
        store_pb2.TopicQueues(
            topic=topic,
            queues=[
                store_pb2.QueueOffsets(queue_id=queue, min_offset=max(0, low), max_offset=high, rebuilding=low < 0)
                for queue, (low, high) in queues.items()
            ],
        )
        for topic, queues in topics.items()
    )


@pytest.mark.parametrize(
    ("low", "high", "offset", "lag", "trouble", "oldest"),
    [
        (0, 10, 4, 6, "", 4),
        (0, 10, 10, 0, "", None),
        (0, 0, 0, 0, "", None),
        (5, 10, 5, 5, "", 5),
        (5, 10, 2, 5, "behind", 5),
        (0, 10, 11, 0, "ahead", None),
        (-1, 10, 2, None, "", None),
    ],
)
def test_a_position(low: int, high: int, offset: int, lag: int | None, trouble: str, oldest: int | None) -> None:
    where = position(ends(t={3: (low, high)}), "t", 3, offset)
    assert (where.lag, where.trouble, where.oldest_waiting) == (lag, trouble, oldest)


def test_a_queue_that_the_store_does_not_have() -> None:
    assert (position(ends(), "t", 0, 0).lag, position(ends(), "t", 0, 0).trouble) == (0, "")
    assert position(ends(t={}), "t", 0, 7).trouble == "ahead"


def test_lag_is_the_sum_over_queues_that_have_an_end() -> None:
    found = ends(a={0: (0, 10), 1: (0, 5), 2: (-1, 99)}, b={0: (2, 4)})
    assert lag_in(found.queues("a"), {0: 4, 1: 9, 2: 0, 7: 0}) == 6, "never below 0; a rebuilt queue has no end"
    assert lag_of(found, {"a": {0: 0, 1: 0}, "b": {0: 3}, "gone": {0: 1}}) == 16
    assert (found.messages("a"), found.messages("b"), found.messages("gone")) == (114, 2, 0)
