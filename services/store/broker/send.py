"""Sending: from a message as a client gives it to a place in the log.

Two steps, so that a request of many messages is refused as a whole or not at all: `Sender` first checks everything and
chooses queues (nothing changes but the turn of the round robin), then creates missing topics and appends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.slices import Slices, each
from tandemmq.common.topic_names import BROKER_WRITES, LONGEST_TOPIC, RETRY, TRACES
from tandemmq.store.broker import preparing, rules
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.duplicates import DuplicateWindow, FirstCopy
from tandemmq.store.broker.errors import ForbiddenTopic, IllegalMessage, UnknownQueue, UnknownTopic
from tandemmq.store.broker.postponing import DelayRules, Postponed, postpone
from tandemmq.store.broker.topics import PERM_WRITE, TopicConfig, TopicTable
from tandemmq.store.format import properties, sysflag
from tandemmq.store.format.batch import decode_client_batch
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import BLANK_SIZE, CRC_PROPERTY_SIZE, MAX_PROPERTIES, Message, record_size
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.errors import NotWritable, RecordTooLarge, StoreError
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended, AppendedBatch, EncodedBatch

ANY_QUEUE = -1

new_tuple = tuple.__new__
"""Makes a named tuple of its fields in half the time of a call."""

_MOST_BESIDE_BODY = 34_000
"""More bytes than a record takes beside its body."""

_APPENDED_AT_ONCE = 128
"""Messages of a request, of which the log takes no more than a millisecond."""

_CRC_ROOM = CRC_PROPERTY_SIZE + 1
"""Bytes of properties that the whole-record checksum takes, with a separator before it."""


@dataclass(frozen=True, slots=True)
class SendRules:
    """What a sender needs to know of the settings."""

    store_host: Host
    max_message_size: int = 4 << 20
    file_size: int = 1 << 30
    append_crc: bool = False
    auto_create_topics: bool = True
    trace_topic: bool = False
    """The topic of clients' traces is created even where no others are."""
    queues_of_new_topics: int = 4
    delays: DelayRules = field(default_factory=DelayRules)


@dataclass(slots=True)
class NewMessage:
    """A message as a client gives it. `properties` belongs to the sender from then on."""

    topic: str
    born_host: Host
    body: bytes = b""
    properties: dict[str, str] = field(default_factory=dict)
    queue_id: int = ANY_QUEUE
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    reconsume_times: int = 0
    repeatable: bool = False
    """Its UNIQ_KEY is of one send alone: another message with it is the same send, tried again."""


@dataclass(slots=True)
class NewBatch:
    """Messages of one queue in the client batch form."""

    topic: str
    born_host: Host
    blob: bytes = b""
    queue_id: int = ANY_QUEUE
    count: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    reconsume_times: int = 0


class Ready(NamedTuple):
    """A checked message, ready to be appended.

    `watched`: a copy of it would be recognized. `copy`: it is one, and was not stored; the place is that of the first.
    """

    message: Message
    unique_key: str
    wait: bool
    watched: bool = False
    copy: bool = False
    half_of: int = -1
    """Of a half message: the queue that it is to be delivered to."""
    postponed: Postponed | None = None
    """Where it is stored, it waits."""

    @property
    def transaction(self) -> bool:
        """Whether it is a half message: `unique_key` is its transaction's id."""
        return self.half_of >= 0

    @property
    def queue_id(self) -> int:
        """The queue that consumers will find it in."""
        if self.half_of >= 0:
            return self.half_of
        return self.message.queue_id if self.postponed is None else self.postponed.real_queue


class SendOutcome(NamedTuple):
    """What became of a message: its place, or why it has none."""

    ready: Ready
    place: Appended | None
    failure: TandemError | None = None


class SentBatch(NamedTuple):
    """What became of an encoded batch."""

    batch: EncodedBatch
    place: AppendedBatch | None
    failure: TandemError | None = None
    copy: bool = False
    """It was not stored; the place is that of the first."""


class SentAll(NamedTuple):
    """What became of a request of many messages.

    `end_offset`: log offset to wait for; 0 if nothing was stored. `wait`: whether to wait for disk and replicas.
    """

    messages: list[SendOutcome]
    batches: list[SentBatch]
    end_offset: int
    wait: bool


class Sender:
    """Checks messages, finds them a queue, and appends them."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        acknowledgement: Acknowledgement,
        send_rules: SendRules,
        clock: Clock,
        new_id: Callable[[int], str],
        duplicates: DuplicateWindow | None = None,
    ) -> None:
        """`new_id` makes the UNIQ_KEY of a message that has none, from the time in ms. No `duplicates`: no window."""
        self.duplicates = duplicates
        self._store = store
        self._acknowledgement = acknowledgement
        self.topics = topics
        self._rules = send_rules
        self.clock = clock
        self.new_id = new_id
        self.store_host = send_rules.store_host
        self.max_body = send_rules.max_message_size
        self.max_properties = MAX_PROPERTIES - (_CRC_ROOM if send_rules.append_crc else 0)
        self.turns: dict[str, int] = {}

    # -- the calls --------------------------------------------------------------------------------------------------

    def store(self, ready: Ready) -> tuple[Ready, Appended]:
        """Store one message that was checked, or find its first copy. Raises StoreError: the store cannot take it."""
        if ready.watched:
            return self._append_watched(ready)
        return ready, self._store.append(ready.message)

    async def send_all(self, messages: Sequence[NewMessage], batches: Sequence[NewBatch], wait: bool = True) -> SentAll:
        """Store many messages, in order, `messages` first. They `wait` unless all say no themselves.

        Raises:
            IllegalMessage, InSyncReplicasNotEnough, StoreError: as for one; nothing was stored. Once something is
            stored, failures are in the result.
        """
        if not messages and not batches:
            raise IllegalMessage("The request has no messages.")
        missing: dict[str, TopicConfig] = {}

        def check(given: NewMessage) -> Ready:
            one = self._check(given, missing)
            self.check_size(one)
            return one

        slices = Slices(self._store.timers)
        ready = await each(check, messages, slices) if messages else []
        encoded = [self._check_batch(given, missing) for given in batches]
        wait = wait and (bool(encoded) or True in [one.wait for one in ready])
        if wait and self._acknowledgement.refuses:
            self._acknowledgement.check()
        if missing:
            await self.create(missing)
        sent = await self._append_all(ready, slices) if ready else []
        end_offset = max([one.place.end_offset for one in sent if one.place is not None], default=0)
        sent_batches: list[SentBatch] = []
        for batch in encoded:
            try:
                one = self._append_batch(batch)
            except TandemError as error:
                if not end_offset:
                    raise
                one = SentBatch(batch, None, error)
            if one.place is not None:
                end_offset = max(end_offset, one.place.end_offset)
            sent_batches.append(one)
        return SentAll(sent, sent_batches, end_offset, wait)

    # -- checks -----------------------------------------------------------------------------------------------------

    def check(self, given: NewMessage, missing: dict[str, TopicConfig], wait: bool) -> Ready:
        """The message as it is to be stored; topics to be created are added to `missing`.

        It is to `wait` for disk and replicas unless it says no itself.

        Raises:
            IllegalMessage and its kinds: the message is refused. InSyncReplicasNotEnough: it would wait for too few
            replicas.
        """
        ready = self._check(given, missing)
        acknowledgement = self._acknowledgement
        if acknowledgement.waits and acknowledgement.refuses and wait and ready.wait:
            acknowledgement.check()
        return ready

    def _check(self, given: NewMessage, missing: dict[str, TopicConfig]) -> Ready:
        """The message as it is to be stored; topics to be created are added to `missing`."""
        # Each single send goes through here: what most messages do not have is passed over with one test.
        topic, given_properties, body = given.topic, given.properties, given.body
        config = self.topics.get(topic)
        if config is None or topic in BROKER_WRITES or not config.perm & PERM_WRITE:
            config = self._config(topic, missing)
        if len(body) > self.max_body:
            rules.check_body(len(body), self.max_body)
        sys_flag, born, reconsume_times = given.sys_flag, given.born_timestamp, given.reconsume_times
        special = bool(given_properties) and not rules.SPECIAL.isdisjoint(given_properties)
        half = special and preparing.is_half(given_properties, reconsume_times)
        if half:
            sys_flag &= ~sysflag.TRANSACTION_MASK
        if sys_flag or born or reconsume_times:
            rules.check_numbers(sys_flag, born, reconsume_times)
        born = born or self.clock.now_ms()
        wait, watched, half_of, postponed = True, False, -1, None
        queue_id = given.queue_id
        if special:
            queue_id = rules.queue_by_properties(given_properties, config.write_queues, queue_id)
        queue_id = self._choose_queue(config, queue_id)
        if not given_properties:
            unique_key = self.new_id(born)
            encoded = b"UNIQ_KEY\x01%b\x02" % unique_key.encode()
        else:
            if special:
                if not half:
                    postponed = postpone(topic, queue_id, given_properties, self.clock.now_ms(), self._rules.delays)
                wait = rules.take_wait(given_properties)
                rules.remove_own(given_properties)
            unique_key = given_properties.get(properties.UNIQ_KEY) or ""
            if self.duplicates is not None:
                watched = self.duplicates.watches(topic, unique_key, reconsume_times, repeatable=given.repeatable)
            if not unique_key:
                unique_key = given_properties[properties.UNIQ_KEY] = self.new_id(born)
            if half:
                preparing.make_half(given_properties, topic, queue_id, unique_key)
                half_of, topic, queue_id = queue_id, preparing.HALF_TOPIC, preparing.HALF_QUEUE
            encoded = rules.encode_properties(given_properties, self.max_properties)
            if postponed is not None:
                topic, queue_id = postponed.topic, postponed.queue_id
                if self.topics.get(topic) is None:
                    missing[topic] = TopicConfig(topic, postponed.queues, postponed.queues)
        message = Message(
            topic,
            queue_id,
            body,
            encoded,
            given.flag,
            sys_flag,
            born,
            given.born_host,
            self.store_host,
            reconsume_times,
        )
        return new_tuple(Ready, (message, unique_key, wait, watched, False, half_of, postponed))

    def _check_batch(self, given: NewBatch, missing: dict[str, TopicConfig]) -> EncodedBatch:
        """The batch as it is to be stored, measured."""
        topic = given.topic
        config = self._config(topic, missing)
        if len(topic) > LONGEST_TOPIC or topic.startswith(RETRY):
            raise IllegalMessage(
                f"Topic {topic[:40]} takes no encoded batches: it is a retry topic or its name is long."
            )
        sys_flag, born, reconsume_times = given.sys_flag, given.born_timestamp, given.reconsume_times
        if sys_flag or born or reconsume_times:
            rules.check_numbers(sys_flag, born, reconsume_times)
        if given.count < 0:
            raise IllegalMessage(f"count is {given.count}: it cannot be negative.")
        if not given.blob:
            raise IllegalMessage("The batch has no messages.")
        measured = self._measure(given)
        if given.count and measured[0] != given.count:
            raise IllegalMessage(f"The batch says it has {given.count} messages, and has {measured[0]}.")
        queue_id = self._choose_queue(config, given.queue_id)
        born = born or self.clock.now_ms()
        return EncodedBatch(
            topic, queue_id, given.blob, given.born_host, self.store_host, born, sys_flag, reconsume_times, measured
        )

    def _measure(self, given: NewBatch) -> tuple[int, int]:
        """Number and total size of the records.

        Refuses what must not be in a batch, and what the log would refuse later, when other parts of the request were
        stored already. The compiled writer does both in a few microseconds for a batch that has nothing special.
        """
        blob, topic_size = given.blob, len(given.topic.encode())
        append_crc = self._store.commit_log.append_crc
        flags = sysflag.with_hosts(given.sys_flag, born_v6=given.born_host.is_v6, store_v6=self.store_host.is_v6)
        writer = self._store.batch_writer
        measured = writer.measure_plain(blob, topic_size, flags, append_crc, self.max_body)
        if measured is None:
            rules.check_batch(blob, self.max_body)
            try:
                measured = writer.measure(blob, topic_size, flags, append_crc)
            except FormatError as error:
                raise _malformed(error) from None
        if measured[1] + BLANK_SIZE > self._rules.file_size:
            self._check_record_size("The batch", measured[1])
        return measured

    def check_size(self, ready: Ready) -> None:
        """Refuse a message that no log file has room for. Raises RecordTooLarge."""
        if len(ready.message.body) + _MOST_BESIDE_BODY > self._rules.file_size:
            self._check_record_size("The message", record_size(ready.message, self._rules.append_crc))

    def _check_record_size(self, what: str, size: int) -> None:
        if size + BLANK_SIZE > self._rules.file_size:
            raise RecordTooLarge(
                f"{what} takes {size:,} bytes: a log file has room for {self._rules.file_size - BLANK_SIZE:,}.",
                remedy="Send less at once, or raise mappedFileSizeCommitLog.",
            )

    # -- topics and queues ------------------------------------------------------------------------------------------

    def _config(self, topic: str, missing: dict[str, TopicConfig]) -> TopicConfig:
        config = self.topics.get(topic) or missing.get(topic)
        rules.check_not_system(topic)
        if config is None:
            rules.check_topic_name(topic)
            if not self._may_create(topic):
                raise UnknownTopic(
                    f"Topic {topic} does not exist.", remedy="Create it first, or set autoCreateTopicEnable=true."
                )
            queues = self._rules.queues_of_new_topics
            config = missing[topic] = TopicConfig(topic, queues, queues)
        elif not config.perm & PERM_WRITE:
            raise ForbiddenTopic(f"Topic {topic} does not allow sending (its permission is {config.perm}).")
        return config

    def _may_create(self, topic: str) -> bool:
        return self._rules.auto_create_topics or (self._rules.trace_topic and topic == TRACES)

    def _choose_queue(self, config: TopicConfig, queue_id: int) -> int:
        queues = config.write_queues
        if queue_id == ANY_QUEUE and queues:
            turn = self.turns.get(config.name, 0)
            self.turns[config.name] = turn + 1
            return turn % queues
        if not 0 <= queue_id < queues:
            raise UnknownQueue(f"Topic {config.name} has {queues} write queues: there is no queue {queue_id}.")
        return queue_id

    async def create(self, missing: dict[str, TopicConfig]) -> None:
        """Create the topics that `check` has found missing. Raises NotWritable, and as `TopicTable.add`."""
        if not self._store.writable:
            refused = NotWritable(f"The store takes no messages: {self._store.why_not_writable}.")
            refused.master_address = self._store.replica.elsewhere
            raise refused
        await self.topics.add(missing.values())

    # -- append -----------------------------------------------------------------------------------------------------

    def _append_watched(self, ready: Ready) -> tuple[Ready, Appended]:
        """Append, unless it is a copy; then the place is that of the first."""
        known = self._find(ready.message.topic, ready.unique_key)
        if known is not None:
            return self._copy(ready, known)
        place = self._store.append(ready.message)
        self._remember(ready, place)
        return ready, place

    def _find(self, topic: str, unique_key: str) -> FirstCopy | None:
        return self.duplicates.find(topic, unique_key) if self.duplicates is not None else None

    def _copy(self, ready: Ready, known: FirstCopy) -> tuple[Ready, Appended]:
        if self.duplicates is not None:
            self.duplicates.recognized += 1
        return ready._replace(message=replace(ready.message, queue_id=known.queue_id), copy=True), known.place

    def _remember(self, ready: Ready, place: Appended) -> None:
        if self.duplicates is not None:
            message = ready.message
            self.duplicates.add(message.topic, ready.unique_key, FirstCopy(message.queue_id, place))

    async def _append_all(self, ready: list[Ready], slices: Slices) -> list[SendOutcome]:
        """As `append`, but others may append between some of them. Raises StoreError: nothing was stored."""
        sent: list[SendOutcome] = []
        for at in range(0, len(ready), _APPENDED_AT_ONCE):
            if at:
                await slices.pause()
            try:
                sent += self.append(ready[at : at + _APPENDED_AT_ONCE])
            except StoreError as error:
                if not sent:
                    raise
                return sent + [SendOutcome(one, None, error) for one in ready[at:]]
        return sent

    def append(self, ready: list[Ready]) -> list[SendOutcome]:
        """Append checked messages in order, all at once where that can be. Raises StoreError: nothing was stored."""
        if self.duplicates is None or True not in [one.watched for one in ready]:
            return self._append_messages(ready)
        sent: list[SendOutcome] = []
        run: list[Ready] = []
        keys: set[tuple[str, str]] = set()
        for one in ready:
            key = (one.message.topic, one.unique_key)
            if one.watched and key in keys:  # what it is a copy of has no place yet
                sent += self._append_run(run, sent)
                run, keys = [], set()
            known = self._find(*key) if one.watched else None
            if known is None:
                run.append(one)
                keys.add(key)
            else:
                sent += self._append_run(run, sent)
                run, keys = [], set()
                sent.append(SendOutcome(*self._copy(one, known)))
        return sent + self._append_run(run, sent)

    def _append_run(self, run: list[Ready], before: list[SendOutcome]) -> list[SendOutcome]:
        """Append messages that are no copies; a failure is raised only if nothing stands before them."""
        try:
            sent = self._append_messages(run) if run else []
        except StoreError as error:
            if not before:
                raise
            return [SendOutcome(one, None, error) for one in run]
        for ready, place, _ in sent:
            if ready.watched and place is not None:
                self._remember(ready, place)
        return sent

    def _append_messages(self, ready: list[Ready]) -> list[SendOutcome]:
        """All or none where they fit into one file; else one by one, and the result says how far the store came."""
        messages = [one.message for one in ready]
        # The exact sizes matter only where a file might be too small.
        if sum([len(message.body) for message in messages]) + len(messages) * _MOST_BESIDE_BODY > self._rules.file_size:
            sizes = [record_size(message, self._rules.append_crc) for message in messages]
            self._check_record_size("The largest message", max(sizes))
            if sum(sizes) + BLANK_SIZE > self._rules.file_size:
                return self._append_one_by_one(ready)
        places = self._store.append_messages(messages)
        return [new_tuple(SendOutcome, (one, place, None)) for one, place in zip(ready, places, strict=True)]

    def _append_one_by_one(self, ready: list[Ready]) -> list[SendOutcome]:
        """As far as it goes; raises only if not even the first could be stored."""
        sent: list[SendOutcome] = []
        for one in ready:
            try:
                sent.append(SendOutcome(one, self._store.append(one.message)))
            except TandemError as error:
                if not any(before.place for before in sent):
                    raise
                sent.append(SendOutcome(one, None, error))
        return sent

    def _append_batch(self, batch: EncodedBatch) -> SentBatch:
        keys = self._watched_keys(batch)
        known = [found for found in (self._find(batch.topic, key) for key in keys) if found is not None]
        if keys and len(known) == len(keys) and _is_one_batch(known):
            return self._copy_of_batch(batch, known)
        try:
            place = self._store.append_batch(batch)
        except FormatError as error:
            raise _malformed(error) from None
        if keys and self.duplicates is not None:
            starts = [*place.physical_offsets, place.end_offset]
            for at, key in enumerate(keys):
                size, number = starts[at + 1] - starts[at], place.first_queue_offset + at
                one = Appended(starts[at], size, number, place.store_timestamp, place.end_offset)
                self.duplicates.add(batch.topic, key, FirstCopy(batch.queue_id, one))
        return SentBatch(batch, place)

    def _watched_keys(self, batch: EncodedBatch) -> list[str]:
        """The UNIQ_KEY of each message, if a copy of the batch can be recognized by them."""
        if self.duplicates is None or not self.duplicates.watches(batch.topic, "any", batch.reconsume_times):
            return []  # to read all properties costs as much as the rest of the send
        each = [properties.decode(one.properties) for one in decode_client_batch(batch.blob)]
        keys = [found.get(properties.UNIQ_KEY, "") for found in each]
        return keys if all(keys) else []

    def _copy_of_batch(self, batch: EncodedBatch, known: list[FirstCopy]) -> SentBatch:
        assert self.duplicates is not None
        self.duplicates.recognized += len(known)
        first, places = known[0], [one.place for one in known]
        place = AppendedBatch(
            [one.physical_offset for one in places],
            len(places),
            first.place.queue_offset,
            first.place.store_timestamp,
            max(one.end_offset for one in places),
        )
        return SentBatch(batch._replace(queue_id=first.queue_id), place, copy=True)


def _is_one_batch(known: list[FirstCopy]) -> bool:
    """Whether these are neighbours in one queue, as messages of one batch are."""
    first = known[0]
    wanted = [(first.queue_id, first.place.queue_offset + number) for number in range(len(known))]
    return [(one.queue_id, one.place.queue_offset) for one in known] == wanted


def _malformed(error: FormatError) -> IllegalMessage:
    return IllegalMessage(f"The encoded batch cannot be stored: {error}.", remedy="See EncodedBatch for its layout.")
