"""What a message must be like to be stored. Every function raises the refusal, or gives what is to be stored.

Sources: RocketMQ's TopicValidator, HookUtils, MessageExtEncoder and SendMessageProcessor.
"""

import zlib

from tandemmq.common.topic_names import BROKER_WRITES, is_name, longest_topic
from tandemmq.store.broker import preparing
from tandemmq.store.broker.errors import BadRequest, ForbiddenTopic, IllegalMessage, NotSupported, PropertiesTooLong
from tandemmq.store.broker.postponing import TIMERS, delay_level
from tandemmq.store.format import properties, sysflag
from tandemmq.store.format.batch import LOOKED_INTO, glance_at_batch

CLIENT_FLAGS = sysflag.COMPRESSED | sysflag.MULTI_TAGS | sysflag.COMPRESSION_MASK
COMPRESSION_TYPES = (0, 0x100, 0x200, 0x300)
_LATEST_BORN = (1 << 63) - 1
SPECIAL = frozenset(
    {
        properties.DELAY,
        properties.TRAN_MSG,
        properties.TIMER_DELIVER_MS,
        properties.TIMER_DELAY_MS,
        properties.TIMER_DELAY_SEC,
        properties.TIMER_OUT_MS,
        properties.WAIT,
        properties.POP_CK,
        properties.CRC32,
        properties.PRIORITY,
        properties.SHARDING_KEY,
    }
)
"""Properties that mean something to the broker when a message is sent. One look tells that most messages have none."""

_OWN = (properties.POP_CK, properties.CRC32)
_LONGEST_NUMBER = 10


def check_not_system(topic: str) -> None:
    """Whether a client may send to a topic of this name."""
    if topic in BROKER_WRITES:
        raise ForbiddenTopic(f"Topic {topic} is a system topic: only the broker writes to it.")


def check_topic_name(topic: str) -> None:
    """Length and characters of a topic's name."""
    if not topic:
        raise IllegalMessage("The topic is empty.")
    longest = longest_topic(topic)
    if len(topic) > longest:
        raise IllegalMessage(f"The topic {topic[:40]}... has {len(topic)} characters: at most {longest} are allowed.")
    if not is_name(topic):
        raise IllegalMessage(f"The topic {topic!r} has other characters than a-z, A-Z, 0-9, %, |, - and _.")


def check_body(size: int, limit: int) -> None:
    """Size of a body, in bytes."""
    if size > limit:
        raise IllegalMessage(
            f"The body has {size:,} bytes: maxMessageSize is {limit:,}.",
            remedy="Compress or split it, or store it elsewhere and send where it is.",
        )


def check_numbers(sys_flag: int, born_timestamp: int, reconsume_times: int) -> None:
    """The numbers that a producer may set."""
    if sys_flag & ~CLIENT_FLAGS or sys_flag & 0x700 not in COMPRESSION_TYPES:
        raise IllegalMessage(
            f"sys_flag {sys_flag:#x} has bits that a producer may not set: allowed are 1, 2, 0x100, 0x200, 0x300."
        )
    if born_timestamp < 0 or reconsume_times < 0:
        raise IllegalMessage(f"born_timestamp {born_timestamp} or reconsume_times {reconsume_times} is negative.")
    if born_timestamp > _LATEST_BORN:
        raise IllegalMessage(f"born_timestamp {born_timestamp} has no room in 64 bits.")


def take_wait(given: dict[str, str]) -> bool:
    """Remove WAIT, which says how to send and is not stored; whether to wait for disk and replicas."""
    return says_wait(given.pop(properties.WAIT, None))


def says_wait(value: str | None) -> bool:
    """Whether to wait, by the property WAIT, if there is one."""
    return value is None or value.strip().lower() != "false"


def check_kind_in_batch(given: dict[str, str]) -> None:
    """Refuse in a batch what is not to be delivered at once: a batch lies in one queue, all of it."""
    if delay_level(given) > 0:
        raise NotSupported(
            f"Delayed messages are not supported in a batch (property DELAY={given[properties.DELAY]}).",
            remedy="Send it message by message.",
        )
    for name in TIMERS:
        if name in given:
            raise NotSupported(
                f"Timed messages are not supported in a batch (property {name}).", remedy="Send it message by message."
            )


def remove_own(given: dict[str, str]) -> None:
    """Remove what only the broker itself may set."""
    for name in _OWN:
        given.pop(name, None)


def encode_properties(given: dict[str, str], limit: int) -> bytes:
    """The properties as they are stored, at most `limit` bytes: without empty values."""
    if "" in given.values():
        given = {name: value for name, value in given.items() if value}
    try:
        data = properties.encode(given)
    except properties.IllegalProperty as error:
        raise IllegalMessage(f"The properties cannot be stored: {error}.") from None
    if len(data) > limit:
        raise PropertiesTooLong(
            f"The properties take {len(data):,} bytes, separators and UNIQ_KEY included: at most {limit:,} are allowed."
        )
    return data


def check_batch(blob: bytes, body_limit: int) -> int | None:
    """The bodies and properties inside an encoded batch (`tandemmq.store.format.batch` has the layout).

    Gives the number of messages, or None for a malformed batch, which is not this function's affair: whoever lays it
    out refuses it. The properties are looked into only if one of all may have a name that is not allowed.
    """
    pieces, too_long, whole = glance_at_batch(blob, body_limit)
    if too_long:
        check_body(too_long, body_limit)
    joined = b"\2".join(pieces)
    if any(mark in joined for mark in LOOKED_INTO):
        for piece in pieces:
            _check_batch_properties(piece)
    if b"\0\2" in joined or joined.endswith(b"\0"):
        _check_batch_ends(pieces)
    return len(pieces) if whole else None


def _check_batch_properties(data: bytes) -> None:
    given = properties.decode(data)
    check_kind_in_batch(given)
    if preparing.is_half(given, 0):
        raise NotSupported(
            "A message of an encoded batch cannot begin a transaction (property TRAN_MSG=true): that is not supported.",
            remedy="Send it alone.",
        )
    if properties.WAIT in given:
        raise IllegalMessage(
            "A message of the batch has the property WAIT.", remedy="Set no_wait on the request instead."
        )


def _check_batch_ends(pieces: list[bytes]) -> None:
    """Recovery would take such a record for one whose last page never reached the disk, and leave it out."""
    if any(piece.endswith(b"\0") for piece in pieces):
        raise IllegalMessage(
            "The properties of a message of the batch end in a zero byte.", remedy="End them with the byte 02."
        )


def queue_of_group(message_group: str | None, queues: int) -> int:
    """The queue of a message group, the same as long as the topic has so many; -1, any, for a message of none."""
    return zlib.crc32(message_group.encode("utf-8", "surrogatepass")) % queues if message_group and queues else -1


_BEFORE_PRIORITY = (
    properties.TRAN_MSG,
    properties.DELAY,
    properties.TIMER_DELIVER_MS,
    properties.TIMER_DELAY_MS,
    properties.TIMER_DELAY_SEC,
    properties.SHARDING_KEY,
)
"""A message with one of these is of another type, and its priority means nothing."""


def queue_by_properties(given: dict[str, str], queues: int, queue_id: int) -> int:
    """The queue of a message: that of its priority, else `queue_id`, and where that is -1 that of its message group.

    A priority that means nothing is removed. RocketMQ 5.4: ``SendMessageProcessor``, whatever the type of the topic.
    """
    if properties.PRIORITY in given:
        queue_id = _queue_of_priority(given, queues, queue_id)
    return queue_of_group(given.get(properties.SHARDING_KEY), queues) if queue_id == -1 else queue_id


def _queue_of_priority(given: dict[str, str], queues: int, queue_id: int) -> int:
    priority = given[properties.PRIORITY]
    if not priority.isascii() or not priority.isdigit() or any(name in given for name in _BEFORE_PRIORITY):
        del given[properties.PRIORITY]
        return queue_id
    return min(int(priority[:_LONGEST_NUMBER]), queues - 1) if queues else queue_id


def check_not_negative(name: str, value: int) -> None:
    """A number of a request that counts something."""
    if value < 0:
        raise BadRequest(f"{name} is {value}: it cannot be negative.")
