"""What is made of the log's records as they are dispatched: consume queues, the index, and whatever comes to that."""

from typing import Protocol

from tandemmq.store.format.walker import Walk
from tandemmq.store.log.parts import StoreParts


class Derived(Protocol):
    """Something that may be thrown away and made again from the log."""

    position: int
    """Log offset up to which it has taken the records."""

    def take(self, walk: Walk, end: int) -> None:
        """Take walked records, as far as it does not have them; `position` is `end` then, the log offset after them.

        After a failure they are given again, maybe with more after them. Raises OSError, StoreError.
        """
        ...


class QueueUnits:
    """The units of the consume queues; on a slave, also the next offset of each queue."""

    def __init__(self, parts: StoreParts, position: int) -> None:
        self._queues = parts.queues
        self._offsets = parts.offsets
        self.position = position
        self.follows = False
        """On a slave the log's records tell the next offset of each queue."""

    def take(self, walk: Walk, end: int) -> None:
        """See `Derived.take`; a queue leaves alone what it has."""
        runs = self._queues.nameable(walk.runs())
        self._queues.append(runs)
        if self.follows:
            for run in runs:
                self._offsets.raise_to((run.topic, run.queue_id), run.first_queue_offset + run.count)
        self.position = end
