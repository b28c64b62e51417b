"""Pulling: the messages of one queue from an offset on (RocketMQ: ``DefaultMessageStore.getMessage``).

The answer is records exactly as they lie in the log. Neighbours in the log are copied in one piece, so a queue that was
filled by batches costs one copy, whatever the number of messages.
"""

from tandemmq.store.broker.errors import NoSuchQueue, NotReadable, QueueOutOfRange
from tandemmq.store.broker.pulled import PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.reading import is_whole, may_have_been_lost, read_whole
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.slave_reads import SlaveReadRules, SlaveReads
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.format.record import MIN_RECORD_SIZE
from tandemmq.store.format.unit import SCHEDULE_TOPIC, Unit, bytes_of_records
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.reading.bulk import TagLimits
from tandemmq.store.log.reading.named_records import Named
from tandemmq.store.log.reading.record_reader import named_record

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

    @property
    def advises(self) -> bool:
        """Whether that may be a slave."""
        return self._slave_reads.advises

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
        self._named: list[Named] = []
        self._records = store.named_records(queue)
        self._bytes = 0
        self.count = 0
        self.records = b""
        self.next_offset = wanted.offset
        self.status = PullStatus.NO_MATCHED_MESSAGE

    @property
    def hole(self) -> int:
        """See `NamedRecords`."""
        return self._records.hole

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
        elif wanted.tag_filter.by_code:
            limits = TagLimits(SCAN_UNITS, wanted.max_messages, wanted.max_bytes)
            span = range(wanted.offset, self._end)
            tagged = self._store.read_tagged(queue, span, wanted.tag_filter.by_code, limits)
            if tagged is not None:
                self.next_offset, self.count, self.records = tagged
                self.status = PullStatus.FOUND if tagged.found else PullStatus.NO_MATCHED_MESSAGE
                return
        looked_at, enough = 0, SCAN_UNITS if wanted.tag_filter is not None else _READ_UNITS
        while looked_at < enough:
            missing = wanted.max_messages - len(self._named) if wanted.tag_filter is None else _READ_UNITS
            most = min(missing, _READ_UNITS, enough - looked_at, self._end - self.next_offset)
            units = queue.read(self.next_offset, most)
            if not units:
                if self.next_offset < self._end:
                    self._unreadable()
                break
            looked_at += len(units)
            if not self._take_all(units):
                break
        self.records, self.count = self._records.copy(self._named), self._records.count
        if self.hole >= 0:
            self.next_offset = self.hole
        if self.count:
            self.status = PullStatus.FOUND
        elif self._records.expired:
            self.status = PullStatus.MESSAGE_WAS_REMOVING
        if self._records.wrong_tags >= 0:
            self._store.repairs.doubt(queue, self._records.wrong_tags)

    def _unreadable(self) -> None:
        """The units at this place cannot be had: go on at the next file of the queue, unless they may come back."""
        queue = self._queue
        if not self._records.doubt(self.next_offset) and not self._named:
            per_file = queue.units_per_file
            self.status = PullStatus.OFFSET_FOUND_NULL
            self.next_offset = min((self.next_offset // per_file + 1) * per_file, self._end)

    def _take_all(self, units: list[Unit]) -> bool:
        """Take units in order; False when there is enough."""
        wanted, tag_filter, named = self._wanted, self._wanted.tag_filter, self._named
        total, passed, first = self._bytes, 0, self.next_offset
        most_messages, most_bytes = wanted.max_messages, wanted.max_bytes
        largest = self._store.config.mapped_file_size_commit_log  # a blank claims to be larger
        for unit in units:
            offset, size, code = unit
            number = first + passed
            if not MIN_RECORD_SIZE <= size <= largest:
                if self._records.doubt(number):
                    break
                passed += 1
                continue
            if tag_filter is not None and not self._has_tag(number, unit, tag_filter):
                if self.hole >= 0:
                    break
                passed += 1
                continue
            if named and (len(named) >= most_messages or total + size > most_bytes):
                break
            passed += 1
            total += size
            named.append((number, offset, size, code))
        self.next_offset += passed
        self._bytes = total
        return passed == len(units) and len(named) < most_messages and self.hole < 0

    def _has_tag(self, number: int, unit: Unit, tag_filter: TagFilter) -> bool:
        """Whether the unit's record has exactly one of the tags wanted; `hole` is set where the record is not its.

        A record whose unit has the hash of another tag is not read: that is what the hash is for. A code that is no
        hash at all is noticed.
        """
        offset, size, code = unit
        if not tag_filter.may_match(code):
            if _is_hash(code) or self._wanted.topic == SCHEDULE_TOPIC:
                return False
            self._records.doubt(number)
            return False
        data = read_whole(self._store, offset, size)
        record = None if data is None else named_record(data, (self._wanted.topic, self._wanted.queue_id), number)
        if record is None:
            self._records.doubt(number)
            return False
        self._records.compare_tags(number, record, code)
        return record.tags in tag_filter.tags


def _is_hash(code: int) -> bool:
    """Whether a tags code can be the hash of a tag, a Java int."""
    return -(1 << 31) <= code < 1 << 31
