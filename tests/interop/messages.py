"""The messages of the tests, what was acknowledged of them, and how the answers of two brokers are compared."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from tandemmq.client import Outgoing, Record, StoreClient, decode_records
from tandemmq.store.format import properties as names
from tandemmq.store.format.batch import ClientMessage, encode_client_batch
from tandemmq.store.format.message_id import decode_offset_id, encode_offset_id
from tandemmq.store.v1.store_pb2 import SendReceipt, SendStatus
from tests.interop.remoting import Remoting

FOREVER = 4_102_444_800_000
TOPICS = ["orders", "bills-and_more", "%pipes|", "T" * 127]
"""The last is the longest that RocketMQ allows."""

TAGS = ["", "A", "Aa", "BB", "polygenelubricants", "größe", "🚲"]
KEYS = ["Aa", "BB", "AaAa", "BBBB", "AaBB", "schlüssel", "🔑", "key#with#hashes", "x" * 60]
"""With equal hashes among them, and the tag whose hash is -2^31."""


@dataclass(frozen=True)
class Sent:
    """An acknowledged message. `unique_key` is empty where none was given."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    body: bytes
    tag: str
    keys: tuple[str, ...]
    unique_key: str

    @property
    def all_keys(self) -> tuple[str, ...]:
        """Everything it can be found by."""
        return (self.unique_key, *self.keys) if self.unique_key else self.keys


@dataclass(frozen=True)
class Queue:
    """A queue as a consumer sees it."""

    min_offset: int
    max_offset: int
    records: dict[int, Record]


@dataclass(frozen=True)
class Contents:
    """What consumers see of a store: its queues, without those that were never written to."""

    queues: dict[tuple[str, int], Queue]

    def hold_all(self, sent: Sequence[Sent]) -> None:
        """Proves that every one of `sent` is in its queue, at its offset, with all it had."""
        for one in sent:
            record = self.queues[one.topic, one.queue_id].records[one.queue_offset]
            assert (record.topic, record.queue_id, record.queue_offset) == (one.topic, one.queue_id, one.queue_offset)
            assert (record.physical_offset, record.body) == (one.physical_offset, one.body)
            assert (record.tags or "", tuple(record.keys)) == (one.tag, one.keys)
            assert (record.unique_key or "") == one.unique_key

    def be_whole(self) -> None:
        """Proves that every queue is without holes, in order, and starts at 0."""
        for name, queue in self.queues.items():
            assert queue.min_offset == 0, name
            assert list(queue.records) == list(range(queue.max_offset)), name
            places = [record.physical_offset for record in queue.records.values()]
            assert places == sorted(set(places)), name

    def be_the_same_as(self, other: "Contents") -> None:
        """Proves that two brokers show the same: queues, offsets, and records byte for byte."""
        assert self.queues.keys() == other.queues.keys()
        for name, queue in self.queues.items():
            theirs = other.queues[name]
            assert (queue.min_offset, queue.max_offset) == (theirs.min_offset, theirs.max_offset), name
            assert queue.records.keys() == theirs.records.keys(), name
            for offset, record in queue.records.items():
                assert record.encode() == theirs.records[offset].encode(), (name, offset)

    @property
    def count(self) -> int:
        """Number of messages."""
        return sum(len(queue.records) for queue in self.queues.values())


class Source:
    """Makes messages that never repeat; the same ones for the same seed."""

    def __init__(self, seed: int, topics: Sequence[str] = TOPICS) -> None:
        self._random = random.Random(seed)
        self._numbers = count()
        self._seed = seed
        self._topics = topics

    def one(self, topic: str | None = None) -> Outgoing:
        """A message."""
        number, choose = next(self._numbers), self._random
        keys = [f"{self._seed}-{number}", *choose.sample(KEYS, choose.choice([0, 0, 1, 3]))]
        size = choose.choice([0, 10, 200, 200, 500, 1_500]) if number % 200 else 30_000
        body = f"{self._seed}/{number}/".encode() + choose.randbytes(size)
        properties = {"größe": "x" * (29_000 if number % 150 == 7 else 12), "empty-not": "ø"}
        topic = topic or choose.choice(self._topics)
        return Outgoing(topic, body, choose.choice(TAGS), keys[: choose.choice([0, 1, 4, 4])], properties)

    def many(self, number: int, topic: str | None = None) -> list[Outgoing]:
        """So many messages."""
        return [self.one(topic) for _ in range(number)]


# -- to our store -----------------------------------------------------------------------------------------------------


def send_to_ours(client: StoreClient, source: Source, number: int) -> Iterator[Sent]:
    """Sends at least `number` messages in all the ways there are: single, decoded and raw batches, streams."""
    done = 0
    while done < number:
        for message in source.many(10):
            receipt = client.send(
                message.topic, message.body, tag=message.tag, keys=message.keys, properties=dict(message.properties)
            )
            yield acknowledged(message, receipt)
        batch = source.many(25)
        for message, receipt in zip(batch, client.send_batch(batch), strict=True):
            yield acknowledged(message, receipt)
        for topic in TOPICS[:2]:
            yield from _send_raw(client, source.many(12, topic), topic, done // 59 % 4)
        done += 59


def acknowledged(message: Outgoing, receipt: SendReceipt) -> Sent:
    """What a receipt says of a message."""
    assert receipt.status == SendStatus.PUT_OK, receipt
    assert decode_offset_id(receipt.message_id)[1] == receipt.physical_offset
    return Sent(
        message.topic, receipt.queue_id, receipt.queue_offset, receipt.physical_offset, message.body, message.tag,
        tuple(message.keys), receipt.unique_key,
    )  # fmt: skip


def _send_raw(client: StoreClient, messages: list[Outgoing], topic: str, queue_id: int) -> Iterator[Sent]:
    chosen = [
        replace_unique(message, f"{topic[:3]}-{messages[0].body[:12].hex()}-{n}") for n, message in enumerate(messages)
    ]
    parts = [chosen[:4], chosen[4:8], chosen[8:]]
    receipts = [
        *client.send_stream(topic, parts[:2], queue_id=queue_id),
        client.send_encoded(parts[2], queue_id=queue_id),
    ]
    for part, receipt in zip(parts, receipts, strict=True):
        assert (receipt.status, receipt.count, receipt.queue_id) == (SendStatus.PUT_OK, len(part), queue_id)
        for number, message in enumerate(part):
            yield Sent(
                topic, queue_id, receipt.first_queue_offset + number, receipt.physical_offsets[number], message.body,
                message.tag, tuple(message.keys), message.properties[names.UNIQ_KEY],
            )  # fmt: skip


def replace_unique(message: Outgoing, unique_key: str) -> Outgoing:
    """The message with that UNIQ_KEY."""
    properties = {**message.properties, names.UNIQ_KEY: unique_key}
    return Outgoing(message.topic, message.body, message.tag, message.keys, properties)


# -- to RocketMQ ------------------------------------------------------------------------------------------------------


def send_to_rocketmq(remoting: Remoting, source: Source, number: int) -> Iterator[Sent]:
    """Sends `number` messages: single ones and client batches."""
    for turn in range((number + 19) // 20):
        for message in source.many(12):
            message = replace_unique(message, f"J-{message.body[:10].hex()}")
            answer = remoting.send(message.topic, turn % 4, message.body, properties_of(message))
            yield next(_accepted([message], answer.fields))
        topic = TOPICS[turn % len(TOPICS)]
        batch = [
            replace_unique(one, f"J-{one.body[:10].hex()}") for one in source.many(8, topic) if len(one.body) < 3_000
        ]
        blob = encode_client_batch(ClientMessage(0, one.body, properties_of(one)) for one in batch)
        yield from _accepted(batch, remoting.send(topic, turn % 4, blob, b"", batch=True).fields)


def properties_of(message: Outgoing) -> bytes:
    """Its properties as a Java client encodes them."""
    return names.encode(message.all_properties(0))


def _accepted(messages: list[Outgoing], fields: dict[str, str]) -> Iterator[Sent]:
    ids = fields["msgId"].split(",")
    first, queue_id = int(fields["queueOffset"]), int(fields["queueId"])
    for number, (message, message_id) in enumerate(zip(messages, ids, strict=True)):
        yield Sent(
            message.topic, queue_id, first + number, decode_offset_id(message_id)[1], message.body, message.tag,
            tuple(message.keys), message.properties.get(names.UNIQ_KEY, ""),
        )  # fmt: skip


# -- what RocketMQ shows ----------------------------------------------------------------------------------------------


def contents_at(remoting: Remoting, queues: Sequence[tuple[str, int]]) -> Contents:
    """Every message of the named queues, pulled."""
    found = {}
    for topic, queue_id in queues:
        low, high = remoting.bounds(topic, queue_id)
        records = list(remoting.pull_all(topic, queue_id))
        found[topic, queue_id] = Queue(low, high, {record.queue_offset: record for record in records})
    return Contents(found)


def viewed_by_id(remoting: Remoting, sent: Sequence[Sent]) -> None:
    """Proves that each of `sent` is found by its id."""
    for one in sent:
        record = decode_records(remoting.view(one.physical_offset))[0]
        assert (record.topic, record.queue_offset, record.body) == (one.topic, one.queue_offset, one.body)
        assert decode_offset_id(encode_offset_id(record.store_host, one.physical_offset))[1] == one.physical_offset


def found_at_rocketmq(remoting: Remoting, sent: Sequence[Sent]) -> int:
    """How many of the (message, key) pairs are found; of keys that many messages have, a query gives only some."""
    found = 0
    for one in sent:
        for key in one.all_keys:
            if key not in KEYS:
                hits = remoting.query(one.topic, key, unique=key == one.unique_key)
                found += one.physical_offset in [record.physical_offset for record in hits]
    return found


def own_keys(sent: Sequence[Sent]) -> int:
    """The number of pairs that `found_at_rocketmq` looks for."""
    return sum(key not in KEYS for one in sent for key in one.all_keys)
