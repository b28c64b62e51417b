"""Pulling: the messages of one queue from an offset on (RocketMQ: ``DefaultMessageStore.getMessage``).

The answer is records exactly as they lie in the log. Neighbours in the log are copied in one piece, so a queue that was
filled by batches costs one copy, whatever the number of messages.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum

from tandemmq.store.broker.errors import NoSuchQueue, NotReadable, QueueOutOfRange
from tandemmq.store.broker.reading import read_whole
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.format.unit import Unit, is_blank
from tandemmq.store.log.consume_queue import ConsumeQueue
from tandemmq.store.log.message_store import MessageStore


class PullStatus(IntEnum):
    """RocketMQ's ``GetMessageStatus``; the numbers are those of the contract."""

    FOUND = 1
    NO_MATCHED_MESSAGE = 2
    MESSAGE_WAS_REMOVING = 3
    OFFSET_FOUND_NULL = 4
    OFFSET_OVERFLOW_BADLY = 5
    OFFSET_OVERFLOW_ONE = 6
    OFFSET_TOO_SMALL = 7
    NO_MATCHED_LOGIC_QUEUE = 8
    NO_MESSAGE_IN_QUEUE = 9
    NO_NEW_MESSAGE = 10


NOTHING_YET = frozenset(
    {PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.NO_MATCHED_LOGIC_QUEUE, PullStatus.NO_MESSAGE_IN_QUEUE}
)
"""The statuses that a long poll waits on."""

SCAN_UNITS = 8_192
"""With a tag filter: units looked at in one call (RocketMQ looks at 800 or more)."""

_READ_UNITS = 1_024
_HEAD = struct.Struct(">iI")
_MAGICS = frozenset({0xDAA320A7, 0xDAA320AB})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a consumer wants of a queue. `tag_filter` None: every message."""

    topic: str
    queue_id: int
    offset: int
    max_messages: int
    max_bytes: int
    tag_filter: TagFilter | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """What it gets: `records` are whole records in queue order, `count` of them."""

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    count: int = 0
    records: bytes = b""


class Puller:
    """Answers pulls from a store."""

    def __init__(self, store: MessageStore, topics: TopicTable) -> None:
        self._store = store
        self._topics = topics

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue to read from, or None if nothing was ever written to it.

        Raises:
            BadRequest: a negative queue id. NoSuchQueue, QueueOutOfRange: no such topic or queue. NotReadable: not
            allowed.
        """
        check_not_negative("queue_id", queue_id)
        config = self._topics.get(topic)
        queue = self._store.queue(topic, queue_id)
        if config is not None and not config.readable:
            raise NotReadable(f"Topic {topic} does not allow reading (its permission is {config.perm}).")
        if queue is None:
            if config is None and not any(other.topic == topic for other in self._store.queues()):
                raise NoSuchQueue(f"There is no topic {topic}.", remedy="It comes into being with its first message.")
            if config is None or queue_id >= config.read_queues:
                queues = 0 if config is None else config.read_queues
                raise QueueOutOfRange(f"Topic {topic} has {queues} read queues: there is no queue {queue_id}.")
        return queue

    def pull(self, wanted: Wanted) -> Pulled:
        """One answer, without waiting. Raises as `find`, and BadRequest for a negative offset."""
        check_not_negative("offset", wanted.offset)
        queue = self.find(wanted.topic, wanted.queue_id)
        if queue is None:
            return Pulled(PullStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
        status, correct = _place(queue, wanted.offset)
        if status is not None:
            return Pulled(status, correct, queue.min_offset, queue.max_offset)
        reading = _Reading(self._store, wanted)
        reading.read(queue)
        return Pulled(
            reading.status, reading.next_offset, queue.min_offset, queue.max_offset, reading.count, reading.records()
        )


def _place(queue: ConsumeQueue, offset: int) -> tuple[PullStatus | None, int]:
    """The status of an offset that holds no message, with the offset to go on at; None for one that may."""
    if queue.max_offset == 0:
        return PullStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < queue.min_offset:
        return PullStatus.OFFSET_TOO_SMALL, queue.min_offset
    if offset == queue.max_offset:
        return PullStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > queue.max_offset:
        return PullStatus.OFFSET_OVERFLOW_BADLY, queue.max_offset
    return None, offset


class _Reading:
    """One pull while it reads: which stretches of the log it will copy, and where it stands in the queue."""

    def __init__(self, store: MessageStore, wanted: Wanted) -> None:
        self._store = store
        self._wanted = wanted
        self._pieces: list[bytes] = []
        self._begin = self._end = -1  # the stretch of neighbours that is not copied yet
        self._sizes: list[int] = []
        self._bytes = 0
        self.count = 0
        self.next_offset = wanted.offset
        self.status = PullStatus.NO_MATCHED_MESSAGE

    def records(self) -> bytes:
        """The records taken."""
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def read(self, queue: ConsumeQueue) -> None:
        """Take units until there is enough, or the end of the queue, or too much was looked at in vain."""
        wanted = self._wanted
        looked_at = 0
        while looked_at < SCAN_UNITS:
            missing = wanted.max_messages - self.count if wanted.tag_filter is None else _READ_UNITS
            units = queue.read(self.next_offset, min(missing, _READ_UNITS, SCAN_UNITS - looked_at))
            if not units:
                if self.next_offset < queue.max_offset:
                    self._unreadable(queue)
                break
            looked_at += len(units)
            if not self._take_all(units):
                break
        self._copy()
        if self.count:
            self.status = PullStatus.FOUND

    def _unreadable(self, queue: ConsumeQueue) -> None:
        """The units at this place cannot be had: go on at the next file of the queue."""
        if not self.count:
            per_file = queue.units_per_file
            self.status = PullStatus.OFFSET_FOUND_NULL
            self.next_offset = min((self.next_offset // per_file + 1) * per_file, queue.max_offset)

    def _take_all(self, units: list[Unit]) -> bool:
        """Take units in order; False when there is enough."""
        wanted, tag_filter = self._wanted, self._wanted.tag_filter
        for unit in units:
            offset, size, code = unit
            if tag_filter is not None and not tag_filter.may_match(code):
                self.next_offset += 1
                continue
            if self.count and (self.count >= wanted.max_messages or self._bytes + size > wanted.max_bytes):
                return False
            self.next_offset += 1
            if size <= 0 or is_blank(unit) or not self._is_wanted(offset, size, tag_filter):
                continue
            if offset != self._end:
                self._copy()
                self._begin = self._end = offset
            self._end += size
            self._sizes.append(size)
            self._bytes += size
            self.count += 1
        return self.count < wanted.max_messages

    def _is_wanted(self, offset: int, size: int, tag_filter: TagFilter | None) -> bool:
        """Whether a readable record stands there, with exactly one of the tags wanted."""
        if tag_filter is None:
            return True  # its head is looked at when it is copied
        record = read_whole(self._store, offset, size)
        if record is None:
            return False
        try:
            return decode_record(record, verify=False).tags in tag_filter.tags
        except CorruptRecord:
            return False

    def _copy(self) -> None:
        """Copy the stretch gathered so far, leaving out what is no record: expired, quarantined, or a bad unit."""
        if not self._sizes:
            return
        piece = self._store.read_raw(self._begin, self._end - self._begin)
        damaged = any(known.begin < self._end and self._begin < known.end for known in self._store.damage)
        if piece is not None and not damaged and _whole(piece, self._sizes):
            self._pieces.append(piece)
        else:
            self._copy_one_by_one()
        self._sizes.clear()

    def _copy_one_by_one(self) -> None:
        at = self._begin
        for size in self._sizes:
            record = read_whole(self._store, at, size)
            if record is None:
                if at < self._store.commit_log.min_offset:
                    self.status = PullStatus.MESSAGE_WAS_REMOVING
                self.count -= 1
                self._bytes -= size
            else:
                self._pieces.append(record)
            at += size


def _whole(piece: bytes, sizes: list[int]) -> bool:
    """Whether the piece is records of these sizes, as far as their first eight bytes tell."""
    at = 0
    for size in sizes:
        found, magic = _HEAD.unpack_from(piece, at)
        if found != size or magic not in _MAGICS:
            return False
        at += size
    return at == len(piece)
