"""Pulling: the messages of one queue from an offset on (RocketMQ: ``DefaultMessageStore.getMessage``).

The answer is records exactly as they lie in the log. Neighbours in the log are copied in one piece, so a queue that was
filled by batches costs one copy, whatever the number of messages.
"""

from collections.abc import Iterator, Sequence

from tandemmq.store.broker.errors import NoSuchQueue, NotReadable, QueueOutOfRange
from tandemmq.store.broker.pulled import PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.reading import is_whole, may_have_been_lost, read_whole
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.slave_reads import SlaveReadRules, SlaveReads
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.format.record import MIN_RECORD_SIZE, CorruptRecord, decode_record
from tandemmq.store.format.record_identity import behind_topic, shows_tags_code
from tandemmq.store.format.unit import SCHEDULE_TOPIC, Unit, bytes_of_records, record_tags_code
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

SCAN_UNITS = 2_048
"""With a tag filter: units looked at in one call, which take a millisecond (RocketMQ looks at 800 or more)."""

_READ_UNITS = 1_024
"""At a time. Without a tag filter each is read from the log too, so a call has no more of them."""
_MEASURED_UNITS = 32
"""So many units are cheap to add up before they are read."""
_MOST_DOUBTS = 16
"""Wrong units that are put right within one call."""


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
            if config is None and not self._store.queue_ids(topic):
                raise NoSuchQueue(f"There is no topic {topic}.", remedy="It comes into being with its first message.")
            if config is None or queue_id >= config.read_queues:
                queues = 0 if config is None else config.read_queues
                raise QueueOutOfRange(f"Topic {topic} has {queues} read queues: there is no queue {queue_id}.")
        return queue

    def advice(self, pulled: PullAnswer) -> int:
        """Id of the broker that a consumer with this answer should pull from next; see `SlaveReads`."""
        return self._slave_reads.advice(pulled)

    def most_bytes(self, wanted: Wanted) -> int:
        """Bytes that an answer may have at most: of few messages what they take, of many what was asked for.

        Who asks for little need not wait for room as those do who ask for much.
        """
        queue = self._store.queue(wanted.topic, wanted.queue_id)
        if queue is None:
            return 0
        count = min(wanted.max_messages, queue.max_offset - wanted.offset)
        if wanted.tag_filter is not None or count > _MEASURED_UNITS:
            return wanted.max_bytes
        if count <= 0 or wanted.offset < 0:
            return 0
        return min(bytes_of_records(queue.read_bytes(wanted.offset, count)), wanted.max_bytes)

    def pull(self, wanted: Wanted) -> PullAnswer:
        """One answer, without waiting.

        Raises:
            As `find`; BadRequest for a negative offset; QueueNotReady where the queue is being rebuilt and has nothing
            at the offset yet: a consumer that was told to go elsewhere would miss messages, or read them again.
            QueueInDoubt: the unit at the offset does not fit the log, and is being put right.
        """
        check_not_negative("offset", wanted.offset)
        queue = self.find(wanted.topic, wanted.queue_id)
        if queue is None:
            if may_have_been_lost(self._store, wanted.topic, wanted.queue_id):
                raise _not_ready(wanted)
            return self._slave_reads.place(PullAnswer(PullStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0), wanted.offset)
        begin, end = queue.readable_begin, queue.readable_end
        status, correct = _place(queue, begin, end, wanted.offset)
        if status is not None:
            if correct != wanted.offset and not is_whole(self._store, queue):
                raise _not_ready(wanted)
            answer = PullAnswer(status, correct, begin, end)
            return self._slave_reads.place(answer, wanted.offset)
        reading = self._read(queue, end, wanted)
        return PullAnswer(reading.status, reading.next_offset, begin, end, reading.count, reading.records)

    def _read(self, queue: ConsumeQueue, end: int, wanted: Wanted) -> "_Reading":
        """Read up to what does not fit the log; where that is the first thing there is, put it right or say so."""
        reading = _Reading(self._store, wanted, queue, end)
        reading.read()
        if reading.hole < 0:
            return reading
        strict = not is_whole(self._store, queue)
        for _ in range(_MOST_DOUBTS):
            if reading.hole < 0 or strict or not self._store.repairs.doubt(queue, reading.hole):
                break
            reading = _Reading(self._store, wanted, queue, end)
            reading.read()
        if reading.hole < 0 or reading.count:
            return reading
        if strict:
            raise _not_ready(wanted)
        raise QueueInDoubt(
            f"Queue {wanted.queue_id} of topic {wanted.topic} does not fit the commit log at offset {reading.hole}.",
            remedy="It is being put right; try again in a moment.",
        )


def _not_ready(wanted: Wanted) -> QueueNotReady:
    return QueueNotReady(
        f"Queue {wanted.queue_id} of topic {wanted.topic} is being rebuilt from the commit log.",
        remedy="Try again in a moment.",
    )


def _place(queue: ConsumeQueue, begin: int, end: int, offset: int) -> tuple[PullStatus | None, int]:
    """The status of an offset that holds no message, with the offset to go on at; None for one that may.

    From `end` on the queue has messages that may not be seen yet. A consumer that is there waits: it may have seen them
    before this master was started again, and would get them twice if it was sent back.
    """
    if queue.max_offset == 0:
        return PullStatus.NO_MESSAGE_IN_QUEUE, 0
    if offset < begin:
        return PullStatus.OFFSET_TOO_SMALL, begin
    if end <= offset <= queue.max_offset:
        return PullStatus.OFFSET_OVERFLOW_ONE, offset
    if offset > queue.max_offset:
        return PullStatus.OFFSET_OVERFLOW_BADLY, end
    return None, offset


class _Reading:
    """One pull while it reads: first the units that are wanted, then their records."""

    def __init__(self, store: MessageStore, wanted: Wanted, queue: ConsumeQueue, end: int) -> None:
        self._store = store
        self._end = end
        self._wanted = wanted
        self._queue = queue
        self._places: list[tuple[int, int, int, int]] = []  # queue offset, log offset, size, tags code
        self._topic = wanted.topic.encode()
        self._bytes = 0
        self._wrong_tags = -1
        self.hole = -1
        """Offset of a unit that does not fit the log, before which reading has stopped; -1 if there is none."""
        self.count = 0
        self.records = b""
        self.next_offset = wanted.offset
        self.status = PullStatus.NO_MATCHED_MESSAGE

    def read(self) -> None:
        """Take units until there is enough, or the end of the queue, or too much was looked at in vain; then copy."""
        wanted, queue = self._wanted, self._queue
        if wanted.tag_filter is None:
            bulk = self._store.read_bulk(
                queue, wanted.offset, min(wanted.max_messages, self._end - wanted.offset), wanted.max_bytes
            )
            if bulk is not None:
                self.count, self.records = bulk
                self.next_offset += self.count
                self.status = PullStatus.FOUND
                return
        looked_at, enough = 0, SCAN_UNITS if wanted.tag_filter is not None else _READ_UNITS
        while looked_at < enough:
            missing = wanted.max_messages - len(self._places) if wanted.tag_filter is None else _READ_UNITS
            most = min(missing, _READ_UNITS, enough - looked_at, self._end - self.next_offset)
            units = queue.read(self.next_offset, most)
            if not units:
                if self.next_offset < self._end:
                    self._unreadable()
                break
            looked_at += len(units)
            if not self._take_all(units):
                break
        self.records = b"".join(self._pieces())
        if self.count:
            self.status = PullStatus.FOUND
        if self._wrong_tags >= 0:
            self._store.repairs.doubt(queue, self._wrong_tags)

    def _unreadable(self) -> None:
        """The units at this place cannot be had: go on at the next file of the queue, unless they may come back."""
        queue = self._queue
        if not self._store.repairs.is_lost(queue, self.next_offset):
            self.hole = self.next_offset
        elif not self._places:
            per_file = queue.units_per_file
            self.status = PullStatus.OFFSET_FOUND_NULL
            self.next_offset = min((self.next_offset // per_file + 1) * per_file, self._end)

    def _take_all(self, units: list[Unit]) -> bool:
        """Take units in order; False when there is enough."""
        wanted, tag_filter, places = self._wanted, self._wanted.tag_filter, self._places
        total, passed, first = self._bytes, 0, self.next_offset
        most_messages, most_bytes = wanted.max_messages, wanted.max_bytes
        largest = self._store.config.mapped_file_size_commit_log  # a blank claims to be larger
        for unit in units:
            offset, size, code = unit
            number = first + passed
            if not MIN_RECORD_SIZE <= size <= largest:
                if not self._store.repairs.is_lost(self._queue, number):
                    self.hole = number
                    break
                passed += 1
                continue
            if tag_filter is not None and not self._has_tag(number, unit, tag_filter):
                if self.hole >= 0:
                    break
                passed += 1
                continue
            if places and (len(places) >= most_messages or total + size > most_bytes):
                break
            passed += 1
            total += size
            places.append((number, offset, size, code))
        self.next_offset += passed
        self._bytes = total
        return passed == len(units) and len(places) < most_messages and self.hole < 0

    def _has_tag(self, number: int, unit: Unit, tag_filter: TagFilter) -> bool:
        """Whether the unit's record has exactly one of the tags wanted; `hole` is set where the record is not its.

        A record whose unit has the hash of another tag is not read: that is what the hash is for. A code that is no
        hash at all is noticed.
        """
        offset, size, code = unit
        if not tag_filter.may_match(code):
            if _is_hash(code) or self._wanted.topic == SCHEDULE_TOPIC:
                return False
            self._doubt(number)
            return False
        data = read_whole(self._store, offset, size)
        try:
            record = None if data is None else decode_record(data, verify=False)
        except CorruptRecord:
            record = None
        wanted = self._wanted
        named = wanted.topic, wanted.queue_id, number
        if record is None or (record.topic, record.queue_id, record.queue_offset) != named:
            self._doubt(number)
            return False
        if record_tags_code(record.topic, record.properties, record.store_timestamp, self._levels) != code:
            self._wrong_tags = number
        return record.tags in tag_filter.tags

    def _doubt(self, number: int) -> bool:
        """Stop before a unit that does not fit the log, unless its message is known to be lost. True: it stops."""
        if self._store.repairs.is_lost(self._queue, number):
            return False
        self.hole = number
        return True

    def _pieces(self) -> Iterator[bytes]:
        """The records taken, neighbours in one piece; without those that are lost, and up to a unit that is wrong."""
        log, damage = self._store.commit_log, self._store.damage
        log_end = log.max_offset
        topic, queue_id = self._topic, self._wanted.queue_id
        file, start, stop = None, 0, 0
        begin = end = -1
        for number, offset, size, code in self._places:
            if not start <= offset <= stop - size:
                if file is not None:
                    yield file.map[begin - start : end - start]
                file = log.files.find(offset)
                begin = end = -1
                if file is None or offset + size > min(file.end, log_end):
                    file, start, stop = None, 0, 0
                    if self._doubt(number):
                        self.next_offset = number
                        return
                    self._note_missing(offset)
                    continue
                start, stop = file.start, min(file.end, log_end)
            assert file is not None
            at = offset - start
            behind = behind_topic(file.map, at, topic, queue_id, number, offset, size)
            if behind < 0 or (damage and any(known.begin < offset + size and offset < known.end for known in damage)):
                if self._doubt(number):
                    self.next_offset = number
                    break
                continue
            if not shows_tags_code(file.map, behind, at + size, code) and self._wrong_tags < 0:
                self._compare_tags(number, file.map[at : at + size], code)
            if offset != end:
                if end > begin:
                    yield file.map[begin - start : end - start]
                begin = offset
            end = offset + size
            self.count += 1
        if file is not None:
            yield file.map[begin - start : end - start]

    def _compare_tags(self, number: int, data: bytes, code: int) -> None:
        try:
            record = decode_record(data, verify=False)
        except CorruptRecord:
            return
        if record_tags_code(record.topic, record.properties, record.store_timestamp, self._levels) != code:
            self._wrong_tags = number

    @property
    def _levels(self) -> Sequence[int]:
        return self._store.config.message_delay_levels

    def _note_missing(self, offset: int) -> None:
        if offset < self._store.commit_log.min_offset:
            self.status = PullStatus.MESSAGE_WAS_REMOVING


def _is_hash(code: int) -> bool:
    """Whether a tags code can be the hash of a tag, a Java int."""
    return -(1 << 31) <= code < 1 << 31
