"""The batch writer in machine code."""

from array import array
from collections.abc import Sequence
from struct import Struct

from tandemmq.store.format.batch import MalformedBatch, check_hosts, check_room, decode_client_batch
from tandemmq.store.format.buffers import WriteBuffer
from tandemmq.store.format.compiled import batch_kernel
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.record import (
    HEADS,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_V1_TOPIC,
    PROPERTIES_LENGTH_SIZE,
    PropertiesOverflow,
    head_size,
    topic_field_size,
)
from tandemmq.store.format.sysflag import HOSTS_V6

_TOO_LONG = -2
_CRC_NAME = b"__CRC32#\x01"
_LENGTH = Struct(">h")


class CompiledBatchWriter:
    """See batch.BatchWriter."""

    def measure(
        self, blob: bytes | memoryview, topic_size: int, sys_flag: int, append_crc: bool = False
    ) -> tuple[int, int]:
        """See the protocol."""
        fixed = head_size(sys_flag) + topic_field_size(topic_size) + PROPERTIES_LENGTH_SIZE
        address, _keep = address_of(blob)
        count, total = batch_kernel.measure(address, len(blob), fixed, append_crc)
        if count < 0:
            _explain(blob, count)
        return count, total

    def measure_plain(
        self, blob: bytes, topic_size: int, sys_flag: int, append_crc: bool, longest_body: int
    ) -> tuple[int, int] | None:
        """See the protocol."""
        if topic_size > MAX_V1_TOPIC:
            return None
        fixed = head_size(sys_flag) + topic_field_size(topic_size) + PROPERTIES_LENGTH_SIZE
        address, _keep = address_of(blob)
        measured = batch_kernel.measure_plain(address, len(blob), fixed, append_crc, longest_body)
        return measured if measured[0] > 0 else None

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
        """See the protocol."""
        check_hosts(sys_flag, born_host, store_host)
        count, total = measured or self.measure(blob, len(topic), sys_flag, append_crc)
        check_room(dst, at, total)
        if not count:
            return []
        short = len(topic) <= MAX_V1_TOPIC
        # The head of every record; size, checksum, flag, offsets and body length are filled in for each.
        head = HEADS[sys_flag & HOSTS_V6].pack(
            0,
            MAGIC_V1 if short else MAGIC_V2,
            0,
            queue_id,
            0,
            0,
            0,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            0,
            0,
        )
        # One buffer for what all records share: head, topic with its length, name of the checksum.
        shared = head + (bytes((len(topic),)) if short else _LENGTH.pack(len(topic))) + topic + _CRC_NAME
        source, _keep_blob = address_of(blob)
        target, _keep_target = address_of(dst)  # not remembered: a file that is full would be kept with it
        offsets = array("q", bytes(8 * count))
        batch_kernel.write(
            source, len(blob), target + at, shared, len(head), queue_offset, physical_offset, append_crc, offsets
        )
        return offsets.tolist()


def _explain(blob: bytes | memoryview, fault: int) -> None:
    """Raise what is wrong with ``blob``: the readable decoder knows the words."""
    if fault == _TOO_LONG:
        raise PropertiesOverflow(f"properties have at most {MAX_PROPERTIES:,} bytes")
    decode_client_batch(blob)
    raise MalformedBatch("it does not consist of whole messages", 0)
