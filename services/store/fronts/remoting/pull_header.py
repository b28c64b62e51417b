"""The header of a pull: what is wanted, and how clients write it."""

from typing import NamedTuple

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.header_scan import FieldKind, HeaderScan, TypedField
from tandemmq.store.delivery.journal.facts import Place

COMMIT, SUSPEND, SUBSCRIPTION, CLASS_FILTER = 1, 2, 4, 8
"""Bits of sysFlag."""
UNASKED_BYTES = 256 << 10
"""Of an answer to a client that names no limit (RocketMQ: ``maxTransferBytesOnMessageInMemory``)."""
MOST_FRAME = 8 << 20
"""No answer is larger, or the client would end the connection."""


class PullHeader(NamedTuple):
    """The header of a pull (RocketMQ: ``PullMessageRequestHeader``)."""

    group: str
    topic: str
    queue_id: int
    offset: int
    most: int
    sys_flag: int
    commit_offset: int
    suspend_ms: int
    expression: str
    kind: str
    most_bytes: int

    @classmethod
    def of(cls, command: Command) -> "PullHeader":
        """Raises BadField."""
        if command.scanned is not None:
            group, topic, queue, offset, most, flags, commit, suspend, expression, kind, size, _ = command.scanned
            size = UNASKED_BYTES if size is None else size
            return cls(group, topic, queue, offset, most, flags, commit, suspend, expression or "", kind or "TAG", size)
        fields = Fields(command.fields)
        fields.int64("subVersion")
        return cls(
            fields.text("consumerGroup"),
            fields.text("topic"),
            fields.int32("queueId"),
            fields.int64("queueOffset"),
            fields.int32("maxMsgNums"),
            fields.int32("sysFlag"),
            fields.int64("commitOffset"),
            fields.int64("suspendTimeoutMillis"),
            fields.text_or("subscription", ""),
            fields.text_or("expressionType", "TAG"),
            fields.int32_or("maxMsgBytes", UNASKED_BYTES),
        )

    @property
    def place(self) -> Place:
        """What is pulled from."""
        return Place(self.group, self.topic, self.queue_id)


PULL_FIELDS = (
    TypedField("consumerGroup", FieldKind.TEXT), TypedField("topic", FieldKind.TEXT),
    TypedField("queueId", FieldKind.INT), TypedField("queueOffset", FieldKind.LONG),
    TypedField("maxMsgNums", FieldKind.INT), TypedField("sysFlag", FieldKind.INT),
    TypedField("commitOffset", FieldKind.LONG), TypedField("suspendTimeoutMillis", FieldKind.LONG),
    TypedField("subscription", FieldKind.TEXT, False), TypedField("expressionType", FieldKind.TEXT, False),
    TypedField("maxMsgBytes", FieldKind.INT, False), TypedField("subVersion", FieldKind.LONG),
)  # fmt: skip
_ORDERS = (
    "queueId maxMsgBytes? maxMsgNums sysFlag suspendTimeoutMillis commitOffset bname topic queueOffset expressionType"
    " subVersion consumerGroup",
    "queueId maxMsgNums sysFlag commitOffset subscription? ReqT? suspendTimeoutMillis bname topic queueOffset"
    " expressionType subVersion consumerGroup",
    "queueId commitOffset subscription? suspendTimeoutMillis bname sysFlag expressionType ReqT? topic consumerGroup"
    " maxMsgNums queueOffset subVersion maxMsgBytes?",
    "consumerGroup topic queueId queueOffset maxMsgNums sysFlag commitOffset suspendTimeoutMillis subscription?"
    " subVersion expressionType maxMsgBytes? bname ReqT?",
)
"""Push consumers of 4.x and 5.x, pulls by hand of both, and the binary form."""
PULL_SCANS = tuple(
    HeaderScan(code, PULL_FIELDS, *_ORDERS) for code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
)
