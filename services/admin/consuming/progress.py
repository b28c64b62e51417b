"""How far groups are, and their lag: arithmetic on offsets, without a network."""

from collections.abc import Mapping
from typing import NamedTuple

from tandemmq.admin.books.queue_ends import QueueEnd, QueueEnds

BEHIND, AHEAD = "behind", "ahead"

_NOWHERE = QueueEnd(0, 0, False)


class GroupPosition(NamedTuple):
    """Where a group is in a queue."""

    end: QueueEnd
    offset: int

    @property
    def lag(self) -> int | None:
        """Messages there, but not consumed; None while the queue is being rebuilt, when nobody knows where it ends."""
        return None if self.end.rebuilding else max(0, self.end.high - max(self.offset, self.end.low))

    @property
    def trouble(self) -> str:
        """`behind` or `ahead` of what the queue has; empty if it is inside."""
        if self.end.rebuilding:
            return ""
        if self.offset < self.end.low:
            return BEHIND
        return AHEAD if self.offset > self.end.high else ""

    @property
    def oldest_waiting(self) -> int | None:
        """Offset of the oldest message that waits and is still there; None if none does."""
        return max(self.offset, self.end.low) if self.lag else None


def position(ends: QueueEnds, topic: str, queue: int, offset: int) -> GroupPosition:
    """Where a group is; a queue that the store does not have ends at 0."""
    return GroupPosition(ends.queues(topic).get(queue, _NOWHERE), offset)


def lag_in(queues: Mapping[int, QueueEnd], offsets: Mapping[int, int]) -> int:
    """Messages of a topic that a group has not consumed. The hot loop of all lists: no objects are made."""
    lag = 0
    for queue, offset in offsets.items():
        end = queues.get(queue)
        if end is not None and end[1] > offset and not end[2]:
            lag += end[1] - (offset if offset > end[0] else end[0])
    return lag


def lag_of(ends: QueueEnds, topics: Mapping[str, Mapping[int, int]]) -> int:
    """Messages that a group has not consumed, in all topics."""
    lag = 0
    for topic, offsets in topics.items():
        lag += lag_in(ends.queues(topic), offsets)
    return lag
