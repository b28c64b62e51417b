"""Messages to send: as protobuf, and as RocketMQ's client batch."""

import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tandemmq.store.format import properties as names
from tandemmq.store.format.batch import ClientMessage, encode_client_batch
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.v1 import message_pb2


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send. `queue_id` None: the store chooses; see the contract (`message.proto`) for limits.

    `keys`: what the message can be found by; a text is one key. `repeatable`: the UNIQ_KEY among the properties is of
    this send alone, so that the store keeps one copy where it is sent again (setting repeatedSendWindow). A producer
    says so itself of keys that it makes.
    """

    topic: str
    body: bytes
    tag: str = ""
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    queue_id: int | None = None
    flag: int = 0
    repeatable: bool = False

    def __post_init__(self) -> None:
        """A text would be taken for a sequence of its letters."""
        if isinstance(self.keys, str):
            object.__setattr__(self, "keys", (self.keys,) if self.keys else ())

    def to_proto(self) -> message_pb2.Message:
        """The message of the contract."""
        return message_pb2.Message(
            topic=self.topic,
            queue_id=self.queue_id,
            body=self.body,
            tag=self.tag,
            keys=self.keys,
            properties=self.properties,
            flag=self.flag,
            repeatable=self.repeatable,
        )

    def all_properties(self, now_ms: int) -> dict[str, str]:
        """The properties as they are stored: tag, keys and a UNIQ_KEY among them."""
        given = {names.UNIQ_KEY: unique_ids.next(now_ms), **self.properties}
        if self.tag:
            given[names.TAGS] = self.tag
        if self.keys:
            given[names.KEYS] = names.KEY_SEPARATOR.join(self.keys)
        return given


def encode_batch(
    messages: Iterable[Outgoing], topic: str | None = None, queue_id: int | None = None
) -> message_pb2.EncodedBatch:
    """Messages of one topic in RocketMQ's client batch form, each with a UNIQ_KEY; all go to one queue.

    `topic` is that of the first message unless given; topics and queue ids of the messages themselves are not looked
    at.

    Raises:
        ValueError: there are no messages, or the properties of one cannot be encoded.
    """
    messages = list(messages)
    if not messages:
        raise ValueError("a batch needs at least one message")
    now_ms = time.time_ns() // 1_000_000
    blob = encode_client_batch(
        ClientMessage(one.flag, one.body, names.encode(one.all_properties(now_ms))) for one in messages
    )
    return message_pb2.EncodedBatch(
        topic=topic or messages[0].topic,
        queue_id=queue_id,
        messages=blob,
        count=len(messages),
        born_timestamp=now_ms,
    )


def _own_address() -> bytes:
    """Four bytes that stand for this machine in unique ids; random ones where it has no address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only asks which address would be used
            return socket.inet_aton(probe.getsockname()[0])
        except OSError:
            return os.urandom(4)


class _Ids:
    """The unique ids of this process; made anew in a forked child, whose ids would else be those of its parent."""

    def __init__(self) -> None:
        self._generator: UniqueIdGenerator | None = None
        self._pid = 0

    def next(self, now_ms: int) -> str:
        if self._generator is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._generator = UniqueIdGenerator(_own_address(), self._pid, int.from_bytes(os.urandom(4), "big"))
        return self._generator.next(now_ms)


unique_ids = _Ids()
"""Makes the UNIQ_KEYs of this process."""
