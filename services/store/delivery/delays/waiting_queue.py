"""A queue of the broker's own that is read in order, with all that may be wrong with it."""

from collections import deque

from tandemmq.store.broker.reading import is_whole, named_record
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.record import MIN_RECORD_SIZE, Record
from tandemmq.store.format.unit import Unit
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

_READ_AHEAD = 128
_MOST_DOUBTS = 8


class WaitingQueue:
    """Units and records of one queue, from a place on that only goes forward."""

    def __init__(self, store: MessageStore, topic: str, queue_id: int) -> None:
        self._store = store
        self.topic = topic
        self.queue_id = queue_id
        self._ahead: deque[Unit] = deque()
        self._ahead_from = 0

    @property
    def queue(self) -> ConsumeQueue:
        """The queue itself; an empty one where there is none yet."""
        return self._store.queue(self.topic, self.queue_id) or self._store.ensure_queue(self.topic, self.queue_id)

    def known_unit(self, offset: int) -> Unit | None:
        """The unit of a message that was seen in the queue before; None where it has expired.

        Nothing that was appended meanwhile is dispatched for that: each copy would be by itself, which costs more than
        the copy.
        """
        return self._store.ensure_queue(self.topic, self.queue_id).unit(offset)

    @property
    def complete(self) -> bool:
        """Whether the queue is known to have all its messages; not while it is being rebuilt."""
        return is_whole(self._store, self.queue)

    def from_first(self, offset: int) -> int:
        """Where to go on that has come to `offset`: there, or at the first message where those before it have expired.

        Raises QueueNotReady: they may only not be restored yet.
        """
        queue = self.queue
        if offset < queue.min_offset and not self.complete:
            raise self._not_ready()
        return max(offset, queue.min_offset)

    def unit(self, offset: int, end: int) -> Unit | None:
        """The unit at an offset; None at `end`. Raises QueueNotReady: it cannot be read now. OSError."""
        if offset >= end:
            return None
        ahead = self._ahead
        while ahead and self._ahead_from < offset:
            ahead.popleft()
            self._ahead_from += 1
        if not ahead or self._ahead_from != offset:
            self._ahead = ahead = deque(self.queue.read(offset, min(_READ_AHEAD, end - offset)))
            self._ahead_from = offset
        if ahead:
            return ahead[0]
        if self._store.repairs.is_lost(self.queue, offset):
            return Unit(0, 0, 0)
        raise QueueNotReady(f"Queue {self.queue_id} of topic {self.topic} cannot be read at offset {offset}.")

    def forget(self) -> None:
        """Read units anew: the queue has been cut, or put right."""
        self._ahead.clear()

    def record(self, offset: int, unit: Unit) -> Record | None:
        """The record of a unit; None where the log does not have it any more.

        A unit that does not fit the log is put right. Raises QueueInDoubt: that takes a while. QueueNotReady: the queue
        is being rebuilt.
        """
        for _ in range(_MOST_DOUBTS):
            record = self._fitting(offset, unit)
            if record is not None:
                intact = not record.body or crc31(record.body) == record.body_crc
                return record if intact else None
            if self._store.repairs.is_lost(self.queue, offset):
                return None
            if offset < self.queue.min_offset:
                return None
            if not self.complete:
                raise self._not_ready()
            if not self._store.repairs.doubt(self.queue, offset):
                break
            self.forget()
            unit = self.queue.unit(offset) or unit
        raise QueueInDoubt(f"Queue {self.queue_id} of topic {self.topic} does not fit the log at offset {offset}.")

    def _not_ready(self) -> QueueNotReady:
        return QueueNotReady(f"Queue {self.queue_id} of topic {self.topic} is being rebuilt from the commit log.")

    def record_at(self, offset: int, physical_offset: int) -> Record | None:
        """The record of an offset where it is known to lie there, intact; None where it does not: ask its unit then."""
        data = self._store.read_record(physical_offset)
        record = None if data is None else named_record(data, self.topic, self.queue_id, offset)
        if record is None or (record.body and crc31(record.body) != record.body_crc):
            return None
        return record

    def _fitting(self, offset: int, unit: Unit) -> Record | None:
        if unit.size < MIN_RECORD_SIZE or unit.physical_offset < 0:
            return None
        data = self._store.read_record(unit.physical_offset, unit.size)
        return None if data is None else named_record(data, self.topic, self.queue_id, offset)
