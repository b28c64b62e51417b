"""A message of a producer, as a request has it: long names (SEND_MESSAGE) or letters (V2), batches too."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.header_scan import FieldKind, HeaderScan, TypedField
from tandemmq.store.broker.errors import IllegalMessage
from tandemmq.store.broker.rules import says_wait
from tandemmq.store.broker.send import ANY_QUEUE, NewBatch, NewMessage
from tandemmq.store.format import properties as names
from tandemmq.store.format import sysflag
from tandemmq.store.format.batch import decode_client_batch, encode_client_batch
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host

REGION = "DefaultRegion"
_TRANSACTION_BITS = sysflag.TRANSACTION_MASK


class SendHeader(NamedTuple):
    """The header of a send (RocketMQ: ``SendMessageRequestHeader``)."""

    group: str
    topic: str
    default_topic: str
    default_queues: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str
    reconsume_times: int
    unit_mode: bool
    most_reconsume_times: int | None
    """None where the client leaves it to the group."""

    @property
    def given(self) -> dict[str, str]:
        """The properties."""
        return names.decode(self.properties.encode("utf-8", "replace"))

    @property
    def waits(self) -> bool:
        """Whether a batch is to be waited for, by the properties of the whole."""
        return says_wait(self.given.get(names.WAIT))

    @classmethod
    def long(cls, fields: Fields) -> "SendHeader":
        """Of SEND_MESSAGE and SEND_REPLY_MESSAGE. Raises BadField."""
        return cls._read(fields, _LONG)

    @classmethod
    def short(cls, command: Command) -> "SendHeader":
        """Of the codes that have letters. Raises BadField."""
        if command.scanned is None:
            return cls._read(Fields(command.fields), "abcdefghijkl")
        group, topic, default, queues, queue_id, sys_flag, born, flag, given, times, unit, most = command.scanned
        return cls(
            group, topic, default or "", queues or 0, queue_id, sys_flag, born, flag, given or "", times or 0,
            unit or False, most,
        )  # fmt: skip

    @classmethod
    def _read(cls, fields: Fields, name: "tuple[str, ...] | str") -> "SendHeader":
        return cls(
            fields.text(name[0]),
            fields.text(name[1]),
            fields.text_or(name[2], ""),
            fields.int32_or(name[3], 0),
            fields.int32(name[4]),
            fields.int32(name[5]),
            fields.int64(name[6]),
            fields.int32(name[7]),
            fields.text_or(name[8], ""),
            fields.int32_or(name[9], 0),
            fields.flag_or(name[10], False),
            fields.int32_or(name[11], None),
        )


_LONG = (
    "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
    "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes",
)  # fmt: skip


_LETTERS = (
    TypedField("a", FieldKind.TEXT), TypedField("b", FieldKind.TEXT), TypedField("c", FieldKind.TEXT, False),
    TypedField("d", FieldKind.INT, False), TypedField("e", FieldKind.INT), TypedField("f", FieldKind.INT),
    TypedField("g", FieldKind.LONG), TypedField("h", FieldKind.INT), TypedField("i", FieldKind.PROPERTIES, False),
    TypedField("j", FieldKind.INT, False), TypedField("k", FieldKind.FLAG, False),
    TypedField("l", FieldKind.INT, False),
)  # fmt: skip
_ORDER = "a b c? d? e f g h i? j? k? l? m? n?"
SEND_SCANS = tuple(
    HeaderScan(code, _LETTERS, _ORDER) for code in (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
)
"""As Java clients of 4.x and 5.x write them."""


def new_message(header: SendHeader, body: bytes, born_host: Host, cluster: str) -> NewMessage:
    """The message for the broker; what RocketMQ's broker adds to every message is added."""
    given = header.given
    given.update(_added(cluster))
    sys_flag = header.sys_flag & ~_TRANSACTION_BITS  # a half message says so in its properties
    return NewMessage(
        header.topic,
        born_host,
        body,
        given,
        max(header.queue_id, ANY_QUEUE),
        header.flag,
        sys_flag,
        max(header.born_timestamp, 0),
        max(header.reconsume_times, 0),
    )


@lru_cache(1)
def _added(cluster: str) -> dict[str, str]:
    """The properties that the broker adds."""
    return {names.MSG_REGION: REGION, names.TRACE_ON: "true", names.CLUSTER: cluster}


def new_batch(header: SendHeader, body: bytes, born_host: Host, cluster: str) -> NewBatch:
    """A batch for the broker; each message as by `new_message`. Raises IllegalMessage."""
    return NewBatch(
        header.topic,
        born_host,
        _as_stored(body, _added(cluster)),
        max(header.queue_id, ANY_QUEUE),
        sys_flag=header.sys_flag & ~_TRANSACTION_BITS,
        born_timestamp=max(header.born_timestamp, 0),
        reconsume_times=max(header.reconsume_times, 0),
    )


def _as_stored(body: bytes, added: Mapping[str, str]) -> bytes:
    """The messages of a batch with what the broker adds, and without WAIT.

    Java clients write WAIT=true into every message of a batch; how to send is said for all of it.
    """
    try:
        return encode_client_batch(
            one._replace(properties=names.append(names.remove(one.properties, names.WAIT), added))
            for one in decode_client_batch(body)
        )
    except FormatError as error:
        raise IllegalMessage(f"The batch cannot be stored: {error}.") from None
