"""The judge of every crash test: takes what producers, consumers and audits saw, and says what should not have been.

The eleven points (the first seven are those of Jepsen's Kafka workload):

 1. aborted read: a message was read whose send had failed, or that nobody sent
 2. inconsistent offset: two messages at one queue offset
 3. lost write: an acknowledged message below the highest read offset that nobody can read
 4. duplicate: one message at two offsets
 5. a consumer's polls skip or go backwards
 6. messages of one producer in another order than they were sent
 7. unseen: an acknowledged message is not there at the end
 8. log prefix: bytes that were acknowledged have changed, or are gone, at their place in the log
 9. bijection: a consume queue unit without its record, or a record without its unit
10. index: a key of a record in the log is not found
11. offsets go backwards (log or queue, first or next), or a message that was gone comes back

A checker is fed across many crashes of one store; `problems` stays empty as long as the store keeps its word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Queue = tuple[str, int]


class Problem(NamedTuple):
    """A broken promise: the point of the list above, and what was seen."""

    point: int
    what: str


class Ack(NamedTuple):
    """What a producer was told. ``crc`` is that of the record's bytes as they stood in the log then."""

    value: str
    producer: str
    number: int
    queue: Queue
    offset: int
    physical: int
    size: int
    crc: int


class LogRecord(NamedTuple):
    """A record found in the log's files. ``value`` is empty if the body is not what its producer sends."""

    physical: int
    size: int
    crc: int
    queue: Queue
    offset: int
    value: str
    producer: str
    number: int


@dataclass
class QueueView:
    """A queue as readers see it: bounds, and value, physical offset and size of every readable message by offset."""

    min_offset: int
    max_offset: int
    messages: dict[int, tuple[str, int, int]] = field(default_factory=dict)


@dataclass
class Audit:
    """Everything a store holds at one moment, read in three ways: files, queues, index."""

    log_min: int
    log_max: int
    records: list[LogRecord]
    queues: dict[Queue, QueueView]
    missing_keys: list[str] = field(default_factory=list)


class Checker:
    """Collects a history and what is wrong with it. ``async_loss``: acknowledged messages may go with the power."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.acks: dict[str, Ack] = {}
        self.acked_total = 0
        self.expired_total = 0
        self.polled_total = 0
        self._failed: set[str] = set()
        self._at: dict[tuple[Queue, int], str] = {}
        self._place: dict[str, tuple[Queue, int]] = {}
        self._next_poll: dict[tuple[str, Queue], int] = {}
        self._log_min = 0
        self._log_max = 0
        self._bounds: dict[Queue, tuple[int, int]] = {}
        self._known_at_audit: set[str] | None = None
        self._epoch_at_audit = 0
        self._epoch = 0
        self._born: dict[str, int] = {}

    def _wrong(self, point: int, what: str) -> None:
        if len(self.problems) < 50:
            self.problems.append(Problem(point, what))

    # -- what producers and consumers saw -----------------------------------------------------------------------------

    def begin(self, epoch: int) -> None:
        """A new life of the store's process begins; ``epoch`` grows."""
        self._epoch = epoch

    def ack(self, ack: Ack) -> None:
        """A producer was told that its message is stored."""
        self.acked_total += 1
        self.acks[ack.value] = ack
        self._saw(ack.value, ack.queue, ack.offset)

    def fail(self, value: str) -> None:
        """A producer was told that its message is not stored and never will be."""
        self._failed.add(value)
        if value in self._place:
            self._wrong(1, f"{value} was read at {self._place[value]} although its send failed")

    def poll(self, consumer: str, queue: Queue, first: int, values: Iterable[tuple[int, str]]) -> None:
        """A consumer was given messages, as (offset, value), when the queue's first offset was ``first``."""
        for offset, value in values:
            self.polled_total += 1
            expected = self._next_poll.get((consumer, queue))
            if expected is not None and offset < expected:
                self._wrong(5, f"{consumer} went back in {queue}: {offset} after {expected - 1}")
            if expected is not None and offset > expected:
                skipped = [at for at in range(max(expected, first), offset) if (queue, at) in self._at]
                if skipped:
                    self._wrong(5, f"{consumer} skipped offsets {skipped[:5]} of {queue}, which hold messages")
            self._next_poll[consumer, queue] = offset + 1
            self._saw(value, queue, offset)

    def offsets(self, log_min: int, log_max: int, bounds: Mapping[Queue, tuple[int, int]]) -> None:
        """Somebody was told the bounds of log and queues."""
        if log_min < self._log_min:
            self._wrong(11, f"the log's first offset went back from {self._log_min} to {log_min}")
        if log_max < self._log_max:
            self._wrong(11, f"the log's end went back from {self._log_max} to {log_max}")
        self._log_min, self._log_max = max(log_min, self._log_min), max(log_max, self._log_max)
        for queue, (first, end) in bounds.items():
            first_before, end_before = self._bounds.get(queue, (0, 0))
            if first < first_before:
                self._wrong(11, f"the first offset of {queue} went back from {first_before} to {first}")
            if end < end_before:
                self._wrong(11, f"the end of {queue} went back from {end_before} to {end}")
            self._bounds[queue] = max(first, first_before), max(end, end_before)

    def _saw(self, value: str, queue: Queue, offset: int) -> None:
        if not value:
            self._wrong(1, f"a message that nobody sent at {offset} of {queue}")
            return
        if value in self._failed:
            self._wrong(1, f"{value} was read at {offset} of {queue} although its send failed")
        other = self._at.setdefault((queue, offset), value)
        if other != value:
            self._wrong(2, f"{other} and {value} both at {offset} of {queue}")
        place = self._place.setdefault(value, (queue, offset))
        if place != (queue, offset):
            self._wrong(4, f"{value} at {place} and at {(queue, offset)}")
        self._born.setdefault(value, self._epoch)

    # -- what an audit saw --------------------------------------------------------------------------------------------

    def audit(self, audit: Audit) -> None:
        """Compare everything known with everything that is there."""
        self.offsets(
            audit.log_min,
            audit.log_max,
            {queue: (view.min_offset, view.max_offset) for queue, view in audit.queues.items()},
        )
        readable: set[str] = set()
        for queue, view in audit.queues.items():
            for offset, (value, _, _) in view.messages.items():
                self._saw(value, queue, offset)
                readable.add(value)
        self._check_order(audit)
        self._check_acks(audit, readable)
        self._check_bijection(audit)
        for key in audit.missing_keys:
            self._wrong(10, f"key {key} is not found")
        self._check_returned(audit)
        self._forget_expired(audit)

    def _check_order(self, audit: Audit) -> None:
        for queue, view in audit.queues.items():
            last: dict[str, tuple[int, int]] = {}
            order = {record.physical: record for record in audit.records}
            for offset in sorted(view.messages):
                record = order.get(view.messages[offset][1])
                if record is None or not record.producer:
                    continue
                number, before = last.get(record.producer, (-1, -1))
                if record.number <= number:
                    self._wrong(6, f"{record.producer} in {queue}: {record.number} at {offset}, {number} at {before}")
                last[record.producer] = record.number, offset

    def _check_acks(self, audit: Audit, readable: set[str]) -> None:
        records = {record.physical: record for record in audit.records}
        highest = {queue: max(view.messages, default=-1) for queue, view in audit.queues.items()}
        for ack in self.acks.values():
            if ack.physical < audit.log_min:
                continue
            if ack.value not in readable:
                point = 3 if ack.offset <= highest.get(ack.queue, -1) else 7
                self._wrong(point, f"{ack.value}, acknowledged at {ack.offset} of {ack.queue}, cannot be read")
            record = records.get(ack.physical)
            if record is None or (record.size, record.crc) != (ack.size, ack.crc):
                self._wrong(8, f"{ack.value}, acknowledged at log offset {ack.physical}: its bytes have changed")

    def _check_bijection(self, audit: Audit) -> None:
        units = {
            (queue, offset): message[1:]
            for queue, view in audit.queues.items()
            for offset, message in view.messages.items()
        }
        for record in audit.records:
            unit = units.pop((record.queue, record.offset), None)
            view = audit.queues.get(record.queue)
            if unit is None:
                bounds = (view.min_offset, view.max_offset) if view is not None else None
                self._wrong(9, f"the record at {record.physical} is not at {record.offset} of {record.queue}, {bounds}")
            elif unit != (record.physical, record.size):
                self._wrong(9, f"unit {record.offset} of {record.queue} is {unit}, its record at {record.physical}")
        for queue, offset in units:
            self._wrong(9, f"unit {offset} of {queue} has no record")

    def _check_returned(self, audit: Audit) -> None:
        """A message that an earlier audit did not find must not be there later, unless it was sent after that audit."""
        present = {record.value for record in audit.records}
        if self._known_at_audit is not None:
            for record in audit.records:
                born = int(record.producer.partition("-")[0][1:]) if record.producer else self._epoch
                if born < self._epoch_at_audit and record.value not in self._known_at_audit:
                    self._wrong(11, f"{record.value} at log offset {record.physical} has come back")
        self._known_at_audit = present
        self._epoch_at_audit = self._epoch

    def _forget_expired(self, audit: Audit) -> None:
        """Keep memory and time in bounds: what the log no longer holds needs no more looking at."""
        expired = [value for value, ack in self.acks.items() if ack.physical < audit.log_min]
        self.expired_total += len(expired)
        for value in expired:
            del self.acks[value]
        firsts = {queue: view.min_offset for queue, view in audit.queues.items()}
        gone = [key for key in self._at if key[1] < firsts.get(key[0], 0)]
        for key in gone:
            self._place.pop(self._at.pop(key), None)
