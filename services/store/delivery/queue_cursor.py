"""Reading a queue of the broker's own from a place on, as background services do, with all that may be wrong with it.

Such a service works on what a queue has, message after message, and must not lose its place. It `begin`s where it
stood, takes `units` in steps so short that others have their turn, `wait`s for more, and `stop`s. What keeps its place
is `kept_positions`. A service of the master keeps it as facts of the journal. These are refused as soon as the store is
no master any more, before its services are stopped: no place moves in the name of another one's successor.
"""

import asyncio
import functools
import math
from collections import deque
from collections.abc import Callable, Iterator

from tandemmq.common.log_output import get_log
from tandemmq.store.broker.reading import is_whole
from tandemmq.store.delivery.ledger.kept_positions import KeptPosition
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.record import MIN_RECORD_SIZE, Record
from tandemmq.store.format.unit import Unit
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.reading.record_reader import named_record

log = get_log(__name__)

_READ_AHEAD = 128
_MOST_DOUBTS = 8


class QueueCursor:
    """A service's place in one queue, which goes forward; and any of its messages by number."""

    def __init__(self, store: MessageStore, topic: str, queue_id: int, position: KeptPosition | None = None) -> None:
        """`position`: what keeps the place; None where the service sees to that itself."""
        self._store = store
        self.topic = topic
        self.queue_id = queue_id
        self.position = position
        self.next = 0
        """Queue offset of the message that comes next."""
        self._ahead: deque[Unit] = deque()
        self._ahead_from = 0
        self._idle: asyncio.Future[None] | None = None

    # -- the queue --------------------------------------------------------------------------------------------------

    @property
    def queue(self) -> ConsumeQueue:
        """The queue itself; an empty one where there is none yet."""
        return self._store.queue(self.topic, self.queue_id) or self.dispatched

    @property
    def dispatched(self) -> ConsumeQueue:
        """The queue as it is: for this, nothing is dispatched that was appended just now.

        Each copy would be dispatched by itself, which costs more than the copy.
        """
        return self._store.ensure_queue(self.topic, self.queue_id)

    @property
    def complete(self) -> bool:
        """Whether the queue is known to have all its messages; not while it is being rebuilt."""
        return is_whole(self._store, self.queue)

    # -- the place --------------------------------------------------------------------------------------------------

    def begin(self, offset: int | None = None) -> None:
        """Go on at an offset, or where the position was kept; at 0 where none was."""
        kept = self.position.kept() if offset is None and self.position is not None else offset
        self.next = kept or 0

    def settle(self) -> int:
        """Go on within what there is of the queue; gives how many messages have expired before they were read.

        Where the queue ends before the place, that is put back, or what comes would be passed over. Raises
        QueueNotReady: it may only not be restored yet. NotDelivering.
        """
        expired = self.pass_expired()
        end = self.queue.max_offset
        if self.next > end:
            if not self.complete:  # not to be waited for: it may never come so far
                raise self._not_ready()
            log.error(
                "a queue ends before the position in it", topic=self.topic, queue=self.queue_id, end=end,
                position=self.next,
            )  # fmt: skip
            self.next = end
            if self.position is not None:
                self.position.put_back(end)
        return expired

    def pass_expired(self) -> int:
        """Go on at the first message there is, where those before it have expired; gives how many these are.

        Raises QueueNotReady: they may only not be restored yet.
        """
        first = self.queue.min_offset
        expired = first - self.next
        if expired <= 0:
            return 0
        if not self.complete:
            raise self._not_ready()
        self.next = first
        return expired

    def units(self, end: int, most: int, until: float = math.inf) -> Iterator[Unit]:
        """Units from the place on and before `end`: at most so many, but one, until a time of the timers' `elapsed`.

        One is passed when the next is asked for: who breaks off before that, or raises, meets it again. Raises
        QueueNotReady: it cannot be read now. OSError.
        """
        while most > 0:
            unit = self.peek(end)
            if unit is None:
                return
            yield unit
            self.next += 1
            most -= 1
            if self._store.timers.elapsed() >= until:
                return

    def peek(self, end: int) -> Unit | None:
        """The unit at the place; None at `end`. Raises as `units`."""
        offset, ahead = self.next, self._ahead
        if offset >= end:
            return None
        while ahead and self._ahead_from < offset:
            ahead.popleft()
            self._ahead_from += 1
        if ahead and self._ahead_from == offset:
            return ahead[0]
        for _ in range(_MOST_DOUBTS):
            self._ahead = ahead = deque(self.dispatched.read(offset, min(_READ_AHEAD, end - offset)))
            self._ahead_from = offset
            if ahead:
                return ahead[0]
            if self._store.repairs.is_lost(self.queue, offset):
                return Unit(0, 0, 0)
            if offset < self.queue.min_offset:
                break  # it has expired: nothing is to be put right, see `pass_expired`
            if not (self.complete and self._store.repairs.doubt(self.queue, offset)):
                break
        raise QueueNotReady(f"Queue {self.queue_id} of topic {self.topic} cannot be read at offset {offset}.")

    def forget(self) -> None:
        """Read units anew: the queue has been cut, or put right."""
        self._ahead.clear()

    # -- waiting ----------------------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether there was nothing more to read, and nothing has come since."""
        return self._idle is not None

    def wait(self, woken: Callable[[], None]) -> None:
        """Have `woken` called when there is a message at the place that may be read."""
        self._idle = self.queue.wait_beyond(self.next)
        self._idle.add_done_callback(functools.partial(self._woken, woken))

    def _woken(self, woken: Callable[[], None], idle: "asyncio.Future[None]") -> None:
        if self._idle is idle:
            self._idle = None
            woken()

    def stop(self) -> None:
        """Wait no more."""
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.cancel()

    # -- messages ---------------------------------------------------------------------------------------------------

    def record(self, unit: Unit) -> Record | None:
        """The record at the place, which has this unit; see `record_of`."""
        return self.record_of(self.next, unit)

    def record_of(self, offset: int, unit: Unit) -> Record | None:
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

    def record_at(self, offset: int, physical_offset: int) -> Record | None:
        """The record of an offset where it is known to lie there, intact; None where it does not: ask its unit then."""
        data = self._store.read_record(physical_offset)
        record = None if data is None else named_record(data, (self.topic, self.queue_id), offset)
        if record is None or (record.body and crc31(record.body) != record.body_crc):
            return None
        return record

    def record_seen(self, offset: int, physical_offset: int) -> Record | None:
        """The record of an offset that was seen before, most likely there; None where it cannot be read any more.

        Raises as `record_of`, and OSError.
        """
        record = self.record_at(offset, physical_offset)
        if record is not None:
            return record
        unit = self.dispatched.unit(offset)
        return None if unit is None else self.record_of(offset, unit)

    def _fitting(self, offset: int, unit: Unit) -> Record | None:
        if unit.size < MIN_RECORD_SIZE or unit.physical_offset < 0:
            return None
        data = self._store.read_record(unit.physical_offset, unit.size)
        return None if data is None else named_record(data, (self.topic, self.queue_id), offset)

    def _not_ready(self) -> QueueNotReady:
        return QueueNotReady(f"Queue {self.queue_id} of topic {self.topic} is being rebuilt from the commit log.")
