"""A message of a producer as the broker wants it.

RocketMQ: ``SendMessageActivity.buildMessage`` and ``GrpcValidator``, whose limits these are.
"""

import time
import unicodedata
from collections.abc import Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.send import ANY_QUEUE, NewMessage
from tandemmq.store.format import properties as names
from tandemmq.store.format import sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

MOST_PROPERTIES = 128
MOST_PROPERTY_BYTES = 16 << 10
LONGEST_GROUP = 64
LONGEST_ID = 128
LONGEST_HOST = 255
MOST_RECOVERY_SECONDS = 3_600

TRACE_CONTEXT = "TRACE_CONTEXT"
BORN_HOST = "__BORNHOST"
PRODUCER_GROUP = names.PGROUP

INTERNAL = frozenset(
    value
    for name, value in vars(names).items()
    if name.isupper() and isinstance(value, str) and name not in ("KEY_SEPARATOR",)
) | {TRACE_CONTEXT, BORN_HOST, "BUYER_ID", "EAGLEEYE_TRACE", "TRANSFER_FLAG", "CORRELATION_ID", "TTL"}
"""Names of properties that mean something to brokers: nobody's own property can be called so."""

_KINDS = frozenset(pb.MessageType.values())


def new_message(
    message: message_pb2.Message, topic: str, kind: pb.MessageType.ValueType, peer: Host, most_body: int
) -> NewMessage:
    """A message to send; its queue is chosen by the broker. Not compared with its digest. Raises ProtocolRefusal."""
    system, body = message.system_properties, message.body
    _check_body(len(body), most_body)
    own = dict(message.user_properties)
    given = _special(system, topic, kind)
    _check_own(own, given)
    given.update(own)
    compressed = system.body_encoding == message_pb2.GZIP
    return NewMessage(
        topic=topic,
        born_host=peer,
        body=body,
        properties=given,
        queue_id=ANY_QUEUE,
        sys_flag=sysflag.COMPRESSED if compressed else 0,
        born_timestamp=max(_milliseconds(system.born_timestamp), 0) if system.HasField("born_timestamp") else 0,
        repeatable=True,
    )


def type_of(message: message_pb2.Message) -> pb.MessageType.ValueType:
    """The type that a message says it is of, checked against what it has. Raises ProtocolRefusal."""
    system = message.system_properties
    kind = system.message_type
    if kind not in _KINDS:
        raise ProtocolRefusal(pb.BAD_REQUEST, f"Message type {int(kind)} is none.")
    if kind == pb.LITE or system.HasField("lite_topic"):
        raise ProtocolRefusal(pb.UNSUPPORTED, "Lite topics are not supported.")
    if kind == pb.FIFO and not system.message_group:
        raise ProtocolRefusal(pb.ILLEGAL_MESSAGE_GROUP, "A message of type FIFO needs a message group.")
    if kind == pb.DELAY and not system.HasField("delivery_timestamp"):
        raise ProtocolRefusal(pb.ILLEGAL_DELIVERY_TIME, "A message of type DELAY needs a delivery timestamp.")
    if kind == pb.PRIORITY and not system.HasField("priority"):
        raise ProtocolRefusal(pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, "A message of type PRIORITY needs a priority.")
    return kind


def check_delay(system: message_pb2.SystemProperties, longest_ms: int) -> None:
    """Whether a message may be delivered so late. Raises ProtocolRefusal."""
    if not system.HasField("delivery_timestamp"):
        return
    ahead = _milliseconds(system.delivery_timestamp) - time.time_ns() // 1_000_000
    if ahead > longest_ms:
        raise ProtocolRefusal(
            pb.ILLEGAL_DELIVERY_TIME,
            f"The delivery time is {ahead:,} ms ahead: maxDelayTimeMills is {longest_ms:,}.",
        )


def _special(system: message_pb2.SystemProperties, topic: str, kind: pb.MessageType.ValueType) -> dict[str, str]:
    """The properties that the protocol has fields for. Raises ProtocolRefusal."""
    given = {names.UNIQ_KEY: _message_id(system.message_id)}
    if system.tag:
        given[names.TAGS] = _tag(system.tag)
    if system.keys:
        given[names.KEYS] = _keys(list(system.keys))
    if system.message_group:
        given[names.SHARDING_KEY] = _message_group(system.message_group)
    if system.trace_context:
        given[TRACE_CONTEXT] = system.trace_context
    if system.HasField("priority"):
        if system.priority < 0:
            raise ProtocolRefusal(pb.BAD_REQUEST, f"The priority is {system.priority}: it cannot be negative.")
        given[names.PRIORITY] = str(system.priority)
    if system.born_host:
        given[BORN_HOST] = _born_host(system.born_host)
    if kind == pb.TRANSACTION:
        given[names.TRAN_MSG] = "true"
        given[PRODUCER_GROUP] = topic  # whoever sends to the topic may be asked
        if system.HasField("orphaned_transaction_recovery_duration"):
            given[names.CHECK_IMMUNITY_TIME] = str(_recovery(system.orphaned_transaction_recovery_duration))
    elif system.HasField("delivery_timestamp"):
        given[names.TIMER_DELIVER_MS] = str(_milliseconds(system.delivery_timestamp))
    return given


def _message_id(given: str) -> str:
    if not given.strip() or len(given) > LONGEST_ID or not given.isprintable():
        raise ProtocolRefusal(
            pb.ILLEGAL_MESSAGE_ID, f"The message id is blank, or has over {LONGEST_ID} or unprintable characters."
        )
    return given


def _tag(given: str) -> str:
    if not given.strip() or "|" in given or _has_control(given):
        raise ProtocolRefusal(pb.ILLEGAL_MESSAGE_TAG, "The tag is blank, or has | or control characters in it.")
    return given


def _keys(given: list[str]) -> str:
    if any(not key.strip() or _has_control(key) for key in given):
        raise ProtocolRefusal(pb.ILLEGAL_MESSAGE_KEY, "A key is blank, or has control characters in it.")
    return names.KEY_SEPARATOR.join(given)


def _born_host(given: str) -> str:
    if len(given) > LONGEST_HOST or not given.isprintable():
        raise ProtocolRefusal(
            pb.BAD_REQUEST, f"The born host has over {LONGEST_HOST} characters, or some that cannot be printed."
        )
    return given


def _message_group(given: str) -> str:
    if not given.strip() or len(given.encode()) > LONGEST_GROUP or _has_control(given):
        raise ProtocolRefusal(
            pb.ILLEGAL_MESSAGE_GROUP,
            f"The message group is blank, over {LONGEST_GROUP} bytes, or has control characters.",
        )
    return given


def _recovery(given: Duration) -> int:
    """Whole seconds after which a producer is asked first."""
    seconds = given.seconds + (given.nanos > 0)
    if not 0 <= seconds <= MOST_RECOVERY_SECONDS:
        raise ProtocolRefusal(
            pb.BAD_REQUEST, f"The recovery duration is {seconds} s: allowed is 0 to {MOST_RECOVERY_SECONDS:,} s."
        )
    return seconds


def _milliseconds(given: Timestamp) -> int:
    """Since 1970, also of what is no proper timestamp."""
    return given.seconds * 1_000 + given.nanos // 1_000_000


def _check_body(size: int, most: int) -> None:
    if not size:
        raise ProtocolRefusal(pb.MESSAGE_BODY_EMPTY, "The body is empty.")
    if size > most:
        raise ProtocolRefusal(
            pb.MESSAGE_BODY_TOO_LARGE,
            f"The body has {size:,} bytes: maxMessageSize is {most:,}.",
            remedy="Compress or split it, or store it elsewhere and send where it is.",
        )


def _check_own(own: Mapping[str, str], special: Mapping[str, str]) -> None:
    """What a user calls their own properties, and how much it is."""
    if len(own) > MOST_PROPERTIES:
        raise ProtocolRefusal(
            pb.MESSAGE_PROPERTIES_TOO_LARGE,
            f"The message has {len(own)} properties: at most {MOST_PROPERTIES} are allowed.",
        )
    size = len(special.get(names.TAGS, "").encode()) + len(special.get(names.KEYS, "").encode())
    for name, value in own.items():
        if name in INTERNAL:
            raise ProtocolRefusal(
                pb.ILLEGAL_MESSAGE_PROPERTY_KEY, f"A property cannot be called {name}: brokers use it."
            )
        if not name.strip() or _has_control(name) or "\1" in value or "\2" in value:
            raise ProtocolRefusal(
                pb.ILLEGAL_MESSAGE_PROPERTY_KEY,
                f"The property {name[:60]!r} is blank, or has characters in it that separate properties.",
            )
        size += len(name.encode()) + len(value.encode())
    if size > MOST_PROPERTY_BYTES:
        raise ProtocolRefusal(
            pb.MESSAGE_PROPERTIES_TOO_LARGE,
            f"The properties, tag and keys have {size:,} bytes: at most {MOST_PROPERTY_BYTES:,} are allowed.",
        )


def _has_control(text: str) -> bool:
    return not text.isprintable() and any(unicodedata.category(one) == "Cc" for one in text)
