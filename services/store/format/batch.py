"""The client's batch body, and the records it becomes.

    size       int    22 + body + properties        one after the other, nothing around them
    magic      int    0
    bodyCRC    int    0
    flag       int
    bodyLen    int    and the body
    propLen    short  and the properties

The broker stores a batch as ordinary records, one after the other in one file, with consecutive queue offsets and one
store time. Magic and bodyCRC are not looked at. Source: MessageDecoder.encodeMessages, MessageExtEncoder.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple, Protocol

from tandemmq.store.format.buffers import WriteBuffer
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import V4_SIZE, V6_SIZE, Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import (
    MAX_PROPERTIES,
    PROPERTIES_LENGTH_SIZE,
    PropertiesOverflow,
    encode_record,
    head_size,
    stored_properties_size,
    topic_field_size,
)
from tandemmq.store.format.record_encoder import reserve_crc, seal_crc
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6

_HEAD = Struct(">5i")  # size, magic, bodyCRC, flag, bodyLen
_GLANCE = Struct(">i12xi")  # size, bodyLen
LEAST_SIZE = _HEAD.size + PROPERTIES_LENGTH_SIZE
LOOKED_INTO = (b"DELAY\x01", b"TRAN_MSG\x01", b"WAIT\x01", b"TIMER_D")
"""How properties begin for which a broker must look into a batch."""


class MalformedBatch(FormatError):
    """The body of a batch cannot be taken apart."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(f"malformed batch at byte {at}: {reason}")
        self.reason = reason
        self.at = at


class ClientMessage(NamedTuple):
    """One message of a batch body."""

    flag: int
    body: bytes
    properties: bytes
    """Encoded, see the module ``properties``."""


def encode_client_batch(items: Iterable[ClientMessage | tuple[int, bytes, bytes]]) -> bytes:
    """The batch body of ``items`` (flag, body, encoded properties). Raises PropertiesOverflow."""
    parts: list[bytes] = []
    for flag, body, properties in items:
        if len(properties) > MAX_PROPERTIES:
            raise PropertiesOverflow(f"properties have at most {MAX_PROPERTIES:,} bytes, these {len(properties):,}")
        size = LEAST_SIZE + len(body) + len(properties)
        parts += (_HEAD.pack(size, 0, 0, flag, len(body)), body, len(properties).to_bytes(2, "big"), properties)
    return b"".join(parts)


def decode_client_batch(data: bytes | memoryview) -> list[ClientMessage]:
    """The messages of a batch body; MalformedBatch if it does not consist of whole ones. No bytes are no messages."""
    return list(_messages(data))


def _messages(data: bytes | memoryview) -> Iterator[ClientMessage]:
    at, end = 0, len(data)
    while at < end:
        if end - at < LEAST_SIZE:
            raise MalformedBatch(f"{end - at} bytes are fewer than any message has", at)
        size, _, _, flag, body_size = _HEAD.unpack_from(data, at)
        if not LEAST_SIZE <= size <= end - at:
            raise MalformedBatch(f"size {size} with {end - at} bytes left", at)
        if not 0 <= body_size <= size - LEAST_SIZE:
            raise MalformedBatch(f"body length {body_size} in a message of {size}", at)
        body_at = at + _HEAD.size
        properties_at = body_at + body_size + PROPERTIES_LENGTH_SIZE
        properties_size = int.from_bytes(data[properties_at - PROPERTIES_LENGTH_SIZE : properties_at], "big")
        if properties_size > MAX_PROPERTIES or LEAST_SIZE + body_size + properties_size != size:
            raise MalformedBatch(f"properties length {properties_size} does not fit a message of {size}", at)
        yield ClientMessage(
            flag,
            bytes(data[body_at : body_at + body_size]),
            bytes(data[properties_at : at + size]),
        )
        at += size


class BatchGlance(NamedTuple):
    """What a broker looks at in a batch body before it lays it out."""

    properties: list[bytes]
    """Of each message."""
    too_long: int = 0
    """Length of the first body that is longer than allowed, where the glance ended; 0 if there is none."""
    whole: bool = True
    """The body consists of whole messages, as far as a glance can tell."""


def glance_at_batch(blob: bytes, longest_body: int) -> BatchGlance:
    """The properties of all messages of a batch body. Costs a third of a microsecond a message."""
    at, end, found = 0, len(blob), list[bytes]()
    head = _GLANCE.unpack_from
    while at <= end - LEAST_SIZE:
        size, body_size = head(blob, at)
        if not 0 <= body_size <= size - LEAST_SIZE or size > end - at:
            return BatchGlance([], whole=False)
        if body_size > longest_body:
            return BatchGlance([], too_long=body_size)
        properties_at = at + LEAST_SIZE + body_size
        at += size
        found.append(blob[properties_at:at])
    return BatchGlance(found, whole=at == end)


class BatchWriter(Protocol):
    """Makes the records of a batch body. Both methods check the whole body first, so that nothing is half-written."""

    def measure(
        self, blob: bytes | memoryview, topic_size: int, sys_flag: int, append_crc: bool = False
    ) -> tuple[int, int]:
        """Number and total size of the records under a topic of ``topic_size`` bytes.

        The IPv6 bits of ``sys_flag`` give the widths of the hosts. ``append_crc``: each record ends with the
        whole-record checksum, and 02 goes before it where it is missing (trap T28).
        Raises MalformedBatch, PropertiesOverflow, TopicTooLong.
        """
        ...

    def measure_plain(
        self, blob: bytes, topic_size: int, sys_flag: int, append_crc: bool, longest_body: int
    ) -> tuple[int, int] | None:
        """As ``measure``, for a batch that a broker need not look into; None where it must, or where measure raises.

        Plain is a batch without a body above ``longest_body`` and without the properties WAIT, DELAY, TRAN_MSG and
        TIMER_D…. None may come for a plain batch too: it only means that looking costs nothing less.
        """
        ...

    def write(
        self,
        blob: bytes | memoryview,
        dst: WriteBuffer,
        at: int,
        *,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        physical_offset: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_timestamp: int,
        store_host: bytes,
        reconsume_times: int,
        append_crc: bool = False,
        measured: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        """Put the records into ``dst`` from ``at`` on; the first has ``queue_offset`` and ``physical_offset``.

        Hosts are packed (Host.packed), as wide as ``sys_flag`` says. ``measured``: what ``measure`` has just given for
        the same arguments, so that it is not done twice. Returns the physical offset of each record. Raises
        as ``measure`` does, and ValueError if they do not fit; then nothing has been written.
        """
        ...


class PythonBatchWriter:
    """The writer to read: a message and encode_record for each."""

    def measure(
        self, blob: bytes | memoryview, topic_size: int, sys_flag: int, append_crc: bool = False
    ) -> tuple[int, int]:
        """See BatchWriter."""
        fixed = head_size(sys_flag) + topic_field_size(topic_size) + PROPERTIES_LENGTH_SIZE
        count = total = 0
        for item in _messages(blob):
            count += 1
            total += fixed + len(item.body) + stored_properties_size(item.properties, append_crc)
        return count, total

    def measure_plain(
        self, blob: bytes, topic_size: int, sys_flag: int, append_crc: bool, longest_body: int
    ) -> tuple[int, int] | None:
        """Always None: see BatchWriter."""
        return None

    def write(
        self,
        blob: bytes | memoryview,
        dst: WriteBuffer,
        at: int,
        *,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        physical_offset: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_timestamp: int,
        store_host: bytes,
        reconsume_times: int,
        append_crc: bool = False,
        measured: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        """See BatchWriter."""
        check_hosts(sys_flag, born_host, store_host)
        _, total = measured or self.measure(blob, len(topic), sys_flag, append_crc)
        check_room(dst, at, total)
        born, store = Host.unpack(born_host), Host.unpack(store_host)
        offsets: list[int] = []
        records: list[bytes] = []
        for number, (flag, body, properties) in enumerate(_messages(blob)):
            if append_crc:
                properties = reserve_crc(properties)
            message = Message(topic.decode(), queue_id, body, properties, flag, sys_flag, born_timestamp, born, store)
            message.reconsume_times = reconsume_times
            record = encode_record(message, queue_offset + number, physical_offset, store_timestamp)
            if append_crc:
                record = seal_crc(record)
            offsets.append(physical_offset)
            records.append(record)
            physical_offset += len(record)
        dst[at : at + total] = b"".join(records)
        return offsets


def check_hosts(sys_flag: int, born_host: bytes, store_host: bytes) -> None:
    """ValueError unless the hosts are as wide as SYSFLAG says: such a record could not be read (trap T13)."""
    born_size = V6_SIZE if sys_flag & BORN_HOST_V6 else V4_SIZE
    store_size = V6_SIZE if sys_flag & STORE_HOST_V6 else V4_SIZE
    if len(born_host) != born_size or len(store_host) != store_size:
        raise ValueError(f"SYSFLAG {sys_flag:#x} does not fit hosts of {len(born_host)} and {len(store_host)} bytes")


def check_room(dst: WriteBuffer, at: int, size: int) -> None:
    """ValueError unless ``size`` bytes fit into ``dst`` from ``at`` on."""
    if at < 0 or at + size > len(dst):
        raise ValueError(f"{size} bytes do not fit at {at} of {len(dst)}")


def python_batch_writer() -> BatchWriter:
    """The readable writer."""
    return PythonBatchWriter()


def compiled_batch_writer() -> BatchWriter:
    """The fast writer, 5-10 times the speed. ImportError if the compiled core or ISA-L's CRC function are not here."""
    from tandemmq.store.format.compiled.batch import CompiledBatchWriter

    return CompiledBatchWriter()
