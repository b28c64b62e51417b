"""Making records: the constants of the layout, and from a message to bytes. The layout is in ``record``."""

from functools import lru_cache
from struct import Struct
from typing import Final

from tandemmq.store.format import properties as props
from tandemmq.store.format.crc import CRC_MASK, crc31, crc32
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import V4_SIZE, V6_SIZE
from tandemmq.store.format.message import Message
from tandemmq.store.format.sysflag import BORN_HOST_V6, HOSTS_V6, STORE_HOST_V6

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BLANK: Final = 0xCBD43194
BLANK_SIZE: Final = 8
MIN_RECORD_SIZE: Final = 91
"""A v1 record with IPv4 hosts and neither body, topic nor properties."""
MAX_PROPERTIES: Final = 0x7FFF
MAX_TOPIC: Final = 0x7FFF
MAX_V1_TOPIC: Final = 127
"""Longest topic of a v1 record as written. Java reads the length signed; up to 255 are read here (trap T16)."""

CRC_PROPERTY_SIZE: Final = 20
"""``__CRC32#`` 01, ten digits, 02: the tail of PROPERTIES if the store appends whole-record checksums."""
_CRC_NAME = props.CRC32.encode() + b"\x01"

_BLANK = Struct(">iI")
PROPERTIES_LENGTH_SIZE = 2


def _head(born: int, store: int) -> Struct:
    return Struct(f">iIIiiqqiq{born}sq{store}siqi")


HEADS = {
    0: _head(V4_SIZE, V4_SIZE),
    BORN_HOST_V6: _head(V6_SIZE, V4_SIZE),
    STORE_HOST_V6: _head(V4_SIZE, V6_SIZE),
    HOSTS_V6: _head(V6_SIZE, V6_SIZE),
}
"""TOTALSIZE to BODYLENGTH, by the IPv6 bits of SYSFLAG."""
_V4_HEAD = HEADS[0]


class PropertiesOverflow(FormatError):
    """More than 32,767 bytes of properties. RocketMQ: PROPERTIES_SIZE_EXCEEDED."""


class TopicTooLong(FormatError):
    """More than 32,767 bytes of topic."""


@lru_cache(maxsize=16384)
def _topic_field(topic: str) -> tuple[int, bytes]:
    """MAGICCODE, and TOPICLENGTH with TOPIC: v2 above 127 bytes."""
    data = topic.encode()
    if len(data) <= MAX_V1_TOPIC:
        return MAGIC_V1, len(data).to_bytes(1, "big") + data
    if len(data) > MAX_TOPIC:
        raise TopicTooLong(f"a topic has at most {MAX_TOPIC:,} bytes, this one {len(data):,}")
    return MAGIC_V2, len(data).to_bytes(2, "big") + data


def encode_record(
    message: Message, queue_offset: int, physical_offset: int, store_timestamp: int, append_crc: bool = False
) -> bytes:
    """The record of ``message``.

    The IPv6 bits of SYSFLAG are made to agree with the hosts (Java only ever sets them, trap T13). ``append_crc``: end
    PROPERTIES with the whole-record checksum, which takes the place of one that came with the message; properties not
    ended by 02 get it first, or the two would merge (trap T28). Raises PropertiesOverflow, TopicTooLong.
    """
    body = message.body
    magic, topic = _topic_field(message.topic)
    properties = message.properties
    if append_crc:
        properties = reserve_crc(props.remove(properties, props.CRC32))
    born, store = message.born_host, message.store_host
    if born.is_v6 or store.is_v6:
        hosts = (BORN_HOST_V6 if born.is_v6 else 0) | (STORE_HOST_V6 if store.is_v6 else 0)
        head = HEADS[hosts]
    else:
        hosts = 0
        head = _V4_HEAD
    body_size = len(body)
    properties_size = len(properties)
    if properties_size > MAX_PROPERTIES:
        raise PropertiesOverflow(f"properties have at most {MAX_PROPERTIES:,} bytes, these {properties_size:,}")
    fields = head.pack(
        head.size + body_size + len(topic) + PROPERTIES_LENGTH_SIZE + properties_size,
        magic,
        crc32(body) & CRC_MASK,
        message.queue_id,
        message.flag,
        queue_offset,
        physical_offset,
        message.sys_flag & ~HOSTS_V6 | hosts,
        message.born_timestamp,
        born.packed,
        store_timestamp,
        store.packed,
        message.reconsume_times,
        message.prepared_transaction_offset,
        body_size,
    )
    record = b"".join((fields, body, topic, properties_size.to_bytes(2, "big"), properties))
    return seal_crc(record) if append_crc else record


def record_size(message: Message, append_crc: bool = False) -> int:
    """The length that encode_record will give ``message``."""
    properties = props.remove(message.properties, props.CRC32) if append_crc else message.properties
    hosts = V6_SIZE - V4_SIZE if message.born_host.is_v6 else 0
    hosts += V6_SIZE - V4_SIZE if message.store_host.is_v6 else 0
    return (
        _V4_HEAD.size
        + hosts
        + len(message.body)
        + len(_topic_field(message.topic)[1])
        + PROPERTIES_LENGTH_SIZE
        + stored_properties_size(properties, append_crc)
    )


def head_size(sys_flag: int) -> int:
    """Bytes from TOTALSIZE to BODYLENGTH."""
    return HEADS[sys_flag & HOSTS_V6].size


def topic_field_size(topic_size: int) -> int:
    """Bytes of TOPICLENGTH and TOPIC; TopicTooLong."""
    if topic_size > MAX_TOPIC:
        raise TopicTooLong(f"a topic has at most {MAX_TOPIC:,} bytes, this one {topic_size:,}")
    return topic_size + (1 if topic_size <= MAX_V1_TOPIC else 2)


def stored_properties_size(properties: bytes, append_crc: bool) -> int:
    """Bytes of PROPERTIES: with the checksum 20 more, and one for a missing 02. PropertiesOverflow."""
    size = len(properties)
    if append_crc:
        size += CRC_PROPERTY_SIZE + (1 if properties and properties[-1] != props.VALUE_END else 0)
    if size > MAX_PROPERTIES:
        raise PropertiesOverflow(f"properties have at most {MAX_PROPERTIES:,} bytes, these {size:,}")
    return size


def reserve_crc(properties: bytes) -> bytes:
    """``properties``, ended by 02, with room for the whole-record checksum after them."""
    if properties and properties[-1] != props.VALUE_END:
        properties += b"\x02"
    return properties + bytes(CRC_PROPERTY_SIZE)


def seal_crc(record: bytes) -> bytes:
    """``record`` with its checksum in the reserved room."""
    covered = record[:-CRC_PROPERTY_SIZE]
    return covered + _crc_property(crc31(covered))


def _crc_property(value: int) -> bytes:
    # Decimal, least significant digit first, filled up with 0 on the right. Source: MessageDecoder.createCrc32.
    return _CRC_NAME + (b"%010d" % value)[::-1] + b"\x02"


def verify_crc_property(record: bytes | memoryview) -> bool | None:
    """Whether the whole-record checksum at the end of ``record`` fits; None if there is none."""
    data = memoryview(record)
    tail = bytes(data[-CRC_PROPERTY_SIZE:])
    if len(tail) < CRC_PROPERTY_SIZE or not tail.startswith(_CRC_NAME):
        return None
    return tail == _crc_property(crc31(data[:-CRC_PROPERTY_SIZE]))


def meant_crc_property(record: bytes | memoryview) -> bool:
    """Whether ``record`` ends with the whole-record checksum, or did before its name changed.

    That is so where all but one byte of the name are right, or the ten digits fit: they do not cover the name.
    """
    data = memoryview(record)
    tail = bytes(data[-CRC_PROPERTY_SIZE:])
    if len(tail) < CRC_PROPERTY_SIZE:
        return False
    changed = sum(byte != right for byte, right in zip(tail, _CRC_NAME, strict=False))
    return changed <= 1 or tail[len(_CRC_NAME) :] == _crc_property(crc31(data[:-CRC_PROPERTY_SIZE]))[len(_CRC_NAME) :]


def encode_blank(free: int) -> bytes:
    """The 8 bytes that end a log file with ``free`` bytes left (themselves included): int free, int CBD43194.

    Source: CommitLog.DefaultAppendMessageCallback.
    """
    return _BLANK.pack(free, MAGIC_BLANK)
