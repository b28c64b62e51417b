"""One record of the commit log: a message with its place and time.

    offset   field                       type    b, s: 8 for an IPv4 host, 20 for IPv6; t: 1 in v1, 2 in v2
    0        TOTALSIZE                   int     length of the record, this field included
    4        MAGICCODE                   int     v1 DAA320A7, v2 DAA320AB (topics above 127 bytes)
    8        BODYCRC                     int     crc31 of the body
    12       QUEUEID                     int
    16       FLAG                        int
    20       QUEUEOFFSET                 long
    28       PHYSICALOFFSET              long
    36       SYSFLAG                     int
    40       BORNTIMESTAMP               long    ms
    48       BORNHOST                    b       address, port as int
    48+b     STORETIMESTAMP              long    ms
    56+b     STOREHOST                   s
    56+b+s   RECONSUMETIMES              int
    60+b+s   PREPAREDTRANSACTIONOFFSET   long
    68+b+s   BODYLENGTH, BODY            int, n
             TOPICLENGTH, TOPIC          t, m
             PROPERTIESLENGTH, PROPERTIES short, p

The widths b and s follow the values 16 and 32 of SYSFLAG and nothing else. Source: MessageExtEncoder, MessageDecoder.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct

from tandemmq.store.format import properties as props
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host
from tandemmq.store.format.java import decode_utf8
from tandemmq.store.format.message import Message
from tandemmq.store.format.record_encoder import (
    BLANK_SIZE,
    CRC_PROPERTY_SIZE,
    HEADS,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC,
    MAX_V1_TOPIC,
    MIN_RECORD_SIZE,
    PROPERTIES_LENGTH_SIZE,
    PropertiesOverflow,
    TopicTooLong,
    encode_blank,
    encode_record,
    head_size,
    meant_crc_property,
    record_size,
    stored_properties_size,
    topic_field_size,
    verify_crc_property,
)
from tandemmq.store.format.record_fields import size_at
from tandemmq.store.format.sysflag import HOSTS_V6

__all__ = [
    "BLANK_SIZE",
    "CRC_PROPERTY_SIZE",
    "HEADS",
    "MAGIC_BLANK",
    "MAGIC_V1",
    "MAGIC_V2",
    "MAX_PROPERTIES",
    "MAX_TOPIC",
    "MAX_V1_TOPIC",
    "MIN_RECORD_SIZE",
    "PROPERTIES_LENGTH_SIZE",
    "CorruptRecord",
    "Message",
    "PropertiesOverflow",
    "Record",
    "TopicTooLong",
    "decode_record",
    "encode_blank",
    "encode_record",
    "head_size",
    "meant_crc_property",
    "record_size",
    "stored_properties_size",
    "topic_field_size",
    "verify_crc_property",
]

_PREFIX = Struct(">iI28xi")  # TOTALSIZE, MAGICCODE, SYSFLAG


class CorruptRecord(FormatError):
    """The bytes are not a whole, intact record."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"no record at {at}: {reason}")
        self.reason = reason
        self.at = at


@lru_cache(maxsize=16384)
def _topic_text(data: bytes) -> str:
    return decode_utf8(data)


@dataclass(frozen=True, slots=True)
class Record:
    """A record as read; ``encode`` gives back its exact bytes."""

    size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host_bytes: bytes
    store_timestamp: int
    store_host_bytes: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body: bytes
    topic_bytes: bytes
    properties_bytes: bytes
    _parsed: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def topic(self) -> str:
        """The topic as text."""
        return _topic_text(self.topic_bytes)

    @property
    def born_host(self) -> Host:
        """The producer."""
        return Host.unpack(self.born_host_bytes)

    @property
    def store_host(self) -> Host:
        """The broker."""
        return Host.unpack(self.store_host_bytes)

    @property
    def is_v2(self) -> bool:
        """Whether it is the version for long topics."""
        return self.magic == MAGIC_V2

    @property
    def properties(self) -> dict[str, str]:
        """The properties by Java's parser rules, parsed once. Do not change the dictionary."""
        if not self._parsed and self.properties_bytes:
            self._parsed.update(props.decode(self.properties_bytes))
        return self._parsed

    @property
    def tags(self) -> str | None:
        """TAGS, None if it has none."""
        return self.properties.get(props.TAGS)

    @property
    def keys(self) -> list[str]:
        """The non-empty pieces of KEYS between blanks."""
        return [key for key in self.properties.get(props.KEYS, "").split(props.KEY_SEPARATOR) if key]

    @property
    def unique_key(self) -> str | None:
        """UNIQ_KEY, the producer's id; None if it has none."""
        return self.properties.get(props.UNIQ_KEY)

    def encode(self) -> bytes:
        """The bytes of the record, each field as it was read."""
        length_size = 2 if self.is_v2 else 1
        fields = HEADS[self.sys_flag & HOSTS_V6].pack(
            self.size,
            self.magic,
            self.body_crc,
            self.queue_id,
            self.flag,
            self.queue_offset,
            self.physical_offset,
            self.sys_flag,
            self.born_timestamp,
            self.born_host_bytes,
            self.store_timestamp,
            self.store_host_bytes,
            self.reconsume_times,
            self.prepared_transaction_offset,
            len(self.body),
        )
        topic = len(self.topic_bytes).to_bytes(length_size, "big") + self.topic_bytes
        return b"".join(
            (fields, self.body, topic, len(self.properties_bytes).to_bytes(2, "big"), self.properties_bytes)
        )


def decode_record(buffer: ReadBuffer, at: int = 0, verify: bool = True) -> Record:
    """The record at index ``at`` of ``buffer``; the bytes are copied.

    Checks magic and lengths, with ``verify`` also the body checksum and, as the walkers do, that its last text, the
    properties or else the topic, does not end in a zero byte, as that of a record does whose last page was lost; not
    that PHYSICALOFFSET is right, for which the caller has to know where the buffer comes from. Raises CorruptRecord.
    """
    left = len(buffer) - at
    if left < MIN_RECORD_SIZE:
        raise CorruptRecord(f"{left} bytes are fewer than any record has", at)
    size, magic, sys_flag = _PREFIX.unpack_from(buffer, at)
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        raise CorruptRecord(f"magic code {magic:08X}", at)
    head = HEADS[sys_flag & HOSTS_V6]
    if not head.size < size <= left:
        raise CorruptRecord(f"TOTALSIZE {size} with {left} bytes left", at)
    end = at + size
    fields = head.unpack_from(buffer, at)
    body_at = at + head.size
    topic_at = body_at + fields[14] + (1 if magic == MAGIC_V1 else 2)
    if fields[14] < 0 or topic_at > end:
        raise CorruptRecord(f"BODYLENGTH {fields[14]} in a record of {size}", at)
    body = bytes(buffer[body_at : body_at + fields[14]])
    topic_size = int.from_bytes(buffer[body_at + len(body) : topic_at], "big")
    properties_at = topic_at + topic_size + PROPERTIES_LENGTH_SIZE
    if properties_at > end or topic_size > MAX_TOPIC:
        raise CorruptRecord(f"TOPICLENGTH {topic_size} in a record of {size}", at)
    properties_size = int.from_bytes(buffer[properties_at - PROPERTIES_LENGTH_SIZE : properties_at], "big")
    if properties_at + properties_size != end or properties_size > MAX_PROPERTIES:
        raise CorruptRecord(f"PROPERTIESLENGTH {properties_size} does not fit a record of {size}", at)
    if verify and body and crc31(body) != fields[2]:
        raise CorruptRecord(f"the body has checksum {crc31(body):08X}, not {fields[2]:08X}", at)
    last = end - 1 if properties_size else topic_at + topic_size - 1
    if verify and last >= topic_at and buffer[last] == 0:
        text = "properties" if properties_size else "topic"
        raise CorruptRecord(f"the {text} ends in a zero byte: the end of the record never reached the disk", at)
    topic = bytes(buffer[topic_at : topic_at + topic_size])
    return Record(*(*fields[:14], body, topic, bytes(buffer[properties_at:end])))


def split_records(data: bytes) -> Iterator[bytes]:
    """The bytes of each of the records that follow one another in ``data``, as a pull has found them."""
    at = 0
    while at < len(data):
        size = size_at(data, at)
        yield data[at : at + size]
        at += size
