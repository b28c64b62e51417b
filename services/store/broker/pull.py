"""Pulling: the messages of one queue from an offset on (RocketMQ: ``DefaultMessageStore.getMessage``).

The answer is records exactly as they lie in the log. Neighbours in the log are copied in one piece, so a queue that was
filled by batches costs one copy, whatever the number of messages.
"""

import struct
from collections.abc import Iterator

from tandemmq.store.broker.errors import NoSuchQueue, NotReadable, QueueOutOfRange
from tandemmq.store.broker.pulled import Pulled, PullStatus, Wanted
from tandemmq.store.broker.reading import may_have_been_lost, read_whole
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.slave_reads import SlaveReadRules, SlaveReads
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.record import MAGIC_V1, MAGIC_V2, MIN_RECORD_SIZE, CorruptRecord, decode_record
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6
from tandemmq.store.format.unit import Unit, is_blank
from tandemmq.store.log.consume_queue import ConsumeQueue
from tandemmq.store.log.errors import QueueNotReady
from tandemmq.store.log.message_store import MessageStore

SCAN_UNITS = 8_192
"""With a tag filter: units looked at in one call (RocketMQ looks at 800 or more)."""

_READ_UNITS = 1_024
_HEAD = struct.Struct(">iI4xi4xqqi")
"""TOTALSIZE, MAGICCODE, QUEUEID, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG."""
_BODY_LENGTH_AT = 84  # with two IPv4 hosts
_MAGICS = frozenset({MAGIC_V1, MAGIC_V2})


class Puller:
    """Answers pulls from a store."""

    def __init__(self, store: MessageStore, topics: TopicTable, rules: SlaveReadRules | None = None) -> None:
        self._store = store
        self._topics = topics
        self._slave_reads = SlaveReads(store, rules or SlaveReadRules())

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

    def advice(self, pulled: Pulled) -> int:
        """Id of the broker that a consumer with this answer should pull from next; see `SlaveReads`."""
        return self._slave_reads.advice(pulled)

    def pull(self, wanted: Wanted) -> Pulled:
        """One answer, without waiting.

        Raises:
            As `find`; BadRequest for a negative offset; QueueNotReady where the queue is being rebuilt and has nothing
            at the offset yet: a consumer that was told to go elsewhere would miss messages, or read them again.
        """
        check_not_negative("offset", wanted.offset)
        queue = self.find(wanted.topic, wanted.queue_id)
        if queue is None:
            if may_have_been_lost(self._store, wanted.topic, wanted.queue_id):
                raise _not_ready(wanted)
            return self._slave_reads.place(Pulled(PullStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0), wanted.offset)
        status, correct = _place(queue, wanted.offset)
        if status is not None:
            if queue.rebuilding and correct != wanted.offset:
                raise _not_ready(wanted)
            answer = Pulled(status, correct, queue.min_offset, queue.max_offset)
            return self._slave_reads.place(answer, wanted.offset)
        reading = _Reading(self._store, wanted)
        reading.read(queue)
        if reading.hole and not reading.count:
            raise _not_ready(wanted)
        return Pulled(
            reading.status, reading.next_offset, queue.min_offset, queue.max_offset, reading.count, reading.records
        )


def _not_ready(wanted: Wanted) -> QueueNotReady:
    return QueueNotReady(
        f"Queue {wanted.queue_id} of topic {wanted.topic} is being rebuilt from the commit log.",
        remedy="Try again in a moment.",
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
    """One pull while it reads: first the units that are wanted, then their records."""

    def __init__(self, store: MessageStore, wanted: Wanted) -> None:
        self._store = store
        self._wanted = wanted
        self._places: list[tuple[int, int, int]] = []  # queue offset, log offset, size
        self._topic = wanted.topic.encode()
        self._bytes = 0
        self._strict = False
        self.hole = False
        self.count = 0
        self.records = b""
        self.next_offset = wanted.offset
        self.status = PullStatus.NO_MATCHED_MESSAGE

    def read(self, queue: ConsumeQueue) -> None:
        """Take units until there is enough, or the end of the queue, or too much was looked at in vain; then copy."""
        wanted = self._wanted
        # A unit that is missing or wrong may be put right: stop before it.
        self._strict = queue.rebuilding or not self._store.commit_log.offsets.all_known
        if wanted.tag_filter is None and not self._strict:
            bulk = self._store.read_bulk(queue, wanted.offset, wanted.max_messages, wanted.max_bytes)
            if bulk is not None:
                self.count, self.records = bulk
                self.next_offset += self.count
                self.status = PullStatus.FOUND
                return
        looked_at = 0
        while looked_at < SCAN_UNITS:
            missing = wanted.max_messages - len(self._places) if wanted.tag_filter is None else _READ_UNITS
            units = queue.read(self.next_offset, min(missing, _READ_UNITS, SCAN_UNITS - looked_at))
            if not units:
                if self.next_offset < queue.max_offset:
                    self._unreadable(queue)
                break
            looked_at += len(units)
            if not self._take_all(units):
                break
        self.records = b"".join(self._pieces())
        if self.count:
            self.status = PullStatus.FOUND

    def _unreadable(self, queue: ConsumeQueue) -> None:
        """The units at this place cannot be had: go on at the next file of the queue, unless they may come back."""
        self.hole = self._strict
        if not self._places and not self.hole:
            per_file = queue.units_per_file
            self.status = PullStatus.OFFSET_FOUND_NULL
            self.next_offset = min((self.next_offset // per_file + 1) * per_file, queue.max_offset)

    def _take_all(self, units: list[Unit]) -> bool:
        """Take units in order; False when there is enough."""
        wanted, tag_filter, places = self._wanted, self._wanted.tag_filter, self._places
        total, passed, first = self._bytes, 0, self.next_offset
        most_messages, most_bytes = wanted.max_messages, wanted.max_bytes
        for unit in units:
            offset, size, code = unit
            if size < MIN_RECORD_SIZE or (not offset and is_blank(unit)):
                if self._strict:
                    self.hole = True
                    break
                passed += 1
                continue
            if tag_filter is not None and not (tag_filter.may_match(code) and self._has_tag(offset, size, tag_filter)):
                passed += 1
                continue
            if places and (len(places) >= most_messages or total + size > most_bytes):
                break
            passed += 1
            total += size
            places.append((first + passed - 1, offset, size))
        self.next_offset += passed
        self._bytes = total
        return passed == len(units) and len(places) < most_messages

    def _has_tag(self, offset: int, size: int, tag_filter: TagFilter) -> bool:
        """Whether a readable record stands there, with exactly one of the tags wanted."""
        record = read_whole(self._store, offset, size)
        if record is None:
            return False
        try:
            return decode_record(record, verify=False).tags in tag_filter.tags
        except CorruptRecord:
            return False

    def _pieces(self) -> Iterator[bytes]:
        """The records taken, neighbours in one piece; without what is none: expired, quarantined, or a bad unit."""
        log, damage = self._store.commit_log, self._store.damage
        log_end = log.max_offset
        file, start, stop = None, 0, 0
        begin = end = -1
        for number, offset, size in self._places:
            if not start <= offset <= stop - size:
                if file is not None:
                    yield file.map[begin - start : end - start]
                file = log.files.find(offset)
                begin = end = -1
                if file is None or offset + size > min(file.end, log_end):
                    self._note_missing(offset)
                    file, start, stop = None, 0, 0
                    continue
                start, stop = file.start, min(file.end, log_end)
            assert file is not None
            if not self._is_own(file.map, offset - start, number, offset, size):
                if self._strict:  # the rebuild puts it right
                    self.hole, self.next_offset = True, number
                    break
                continue
            if damage and any(known.begin < offset + size and offset < known.end for known in damage):
                continue
            if offset != end:
                if end > begin:
                    yield file.map[begin - start : end - start]
                begin = offset
            end = offset + size
            self.count += 1
        if file is not None:
            yield file.map[begin - start : end - start]

    def _is_own(self, data: ReadBuffer, at: int, number: int, offset: int, size: int) -> bool:
        """Whether the record at index `at` is the one of this queue with this number, not what a bad unit points at."""
        found, magic, queue_id, queue_offset, physical, flags = _HEAD.unpack_from(data, at)
        if (found, queue_id, queue_offset, physical) != (size, self._wanted.queue_id, number, offset):
            return False
        if magic not in _MAGICS:
            return False
        at += _BODY_LENGTH_AT + 12 * (flags & BORN_HOST_V6 != 0) + 12 * (flags & STORE_HOST_V6 != 0)
        at += 4 + int.from_bytes(data[at : at + 4], "big")
        at += 1 if magic == MAGIC_V1 else 2
        return data[at : at + len(self._topic)] == self._topic and data[at - 1] == len(self._topic) & 0xFF

    def _note_missing(self, offset: int) -> None:
        if offset < self._store.commit_log.min_offset:
            self.status = PullStatus.MESSAGE_WAS_REMOVING
