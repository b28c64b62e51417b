"""The headers of pop and its family: what is wanted, and which receipt is meant."""

from typing import NamedTuple

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.common.wire.remoting.header_scan import FieldKind, HeaderScan, TypedField


class PopHeader(NamedTuple):
    """Of POP_MESSAGE (RocketMQ: ``PopMessageRequestHeader``)."""

    group: str
    topic: str
    queue_id: int
    most: int
    invisible_ms: int
    poll_ms: int
    kind: str
    expression: str
    order: bool

    @classmethod
    def of(cls, command: Command) -> "PopHeader":
        """Raises BadField."""
        if command.scanned is not None:
            group, topic, queue, most, invisible, poll, kind, expression, order = command.scanned
            return cls(group, topic, queue, most, invisible, poll, kind or "TAG", expression or "*", order or False)
        fields = Fields(command.fields)
        return cls(
            fields.text("consumerGroup"),
            fields.text("topic"),
            fields.int32("queueId"),
            fields.int32("maxMsgNums"),
            fields.int64("invisibleTime"),
            fields.int64("pollTime"),
            fields.text_or("expType", "TAG"),
            fields.text_or("exp", "*"),
            fields.flag_or("order", False),
        )


class ReceiptHeader(NamedTuple):
    """Of ACK_MESSAGE and CHANGE_MESSAGE_INVISIBLETIME: the group, the topic, the receipt; how long from now on."""

    group: str
    topic: str
    receipt: str
    invisible_ms: int = 0

    @classmethod
    def of(cls, command: Command) -> "ReceiptHeader":
        """Raises BadField."""
        if command.scanned is not None:
            return cls(*command.scanned)
        fields = Fields(command.fields)
        named = fields.text("consumerGroup"), fields.text("topic"), fields.text("extraInfo")
        return cls(*named, fields.int64("invisibleTime") if command.code != RequestCode.ACK_MESSAGE else 0)


_RECEIPT = tuple(TypedField(name, FieldKind.TEXT) for name in ("consumerGroup", "topic", "extraInfo"))
POP_SCANS = (
    HeaderScan(
        RequestCode.POP_MESSAGE,
        (
            TypedField("consumerGroup", FieldKind.TEXT),
            TypedField("topic", FieldKind.TEXT),
            TypedField("queueId", FieldKind.INT),
            TypedField("maxMsgNums", FieldKind.INT),
            TypedField("invisibleTime", FieldKind.LONG),
            TypedField("pollTime", FieldKind.LONG),
            TypedField("expType", FieldKind.TEXT, demanded=False),
            TypedField("exp", FieldKind.TEXT, demanded=False),
            TypedField("order", FieldKind.FLAG, demanded=False),
        ),
        "pollTime invisibleTime queueId bornTime maxMsgNums bname topic expType exp consumerGroup initMode order",
    ),
    HeaderScan(RequestCode.ACK_MESSAGE, _RECEIPT, "queueId offset bname topic consumerGroup extraInfo"),
    HeaderScan(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        (*_RECEIPT, TypedField("invisibleTime", FieldKind.LONG)),
        "invisibleTime queueId offset bname topic consumerGroup extraInfo",
    ),
)
"""As push consumers of 5.x write them. The codes do not fit the binary form."""
