"""Reading records of the log by where they begin: the one way for all who have a log offset, and want what lies there.

What is read is compared with what the reader knows of it: its own offset, its size, or the queue and number whose unit
named it. Whole stretches of the log are read by `scan.LogScan`.
"""

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.record import MIN_RECORD_SIZE, CorruptRecord, Record, decode_record
from tandemmq.store.format.record_fields import physical_offset_at, size_at
from tandemmq.store.format.record_identity import behind_topic
from tandemmq.store.format.unit import Unit
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.recovery.damage import KnownDamage
from tandemmq.store.log.segments.scan import LogFiles


def named_record(data: ReadBuffer, queue: QueueKey, number: int, at: int = 0, *, verify: bool = False) -> Record | None:
    """What can be decoded at index `at` of `data` if it is number `number` of a queue."""
    try:
        record = decode_record(data, at, verify=verify)
    except CorruptRecord:
        return None
    return record if (record.topic, record.queue_id, record.queue_offset) == (*queue, number) else None


class RecordReader:
    """Reads records from the mapped files of a log."""

    def __init__(self, files: LogFiles, damage: KnownDamage) -> None:
        """Records in ``damage`` count as there for `decoded` and `placed` only, which say what can be read now."""
        self._files = files
        self._damage = damage

    def decoded(self, offset: int, *, verify: bool = False) -> Record | None:
        """What can be decoded at a log offset, wherever it says that it is; with ``verify`` checksums are compared."""
        file = self._files.find(offset)
        if file is None:
            return None
        try:
            return decode_record(file.map, offset - file.start, verify=verify)
        except CorruptRecord:
            return None

    def placed(self, offset: int) -> Record | None:
        """The record at a log offset that says so itself; its checksum is not looked at."""
        record = self.decoded(offset)
        return record if record is not None and record.physical_offset == offset else None

    def named(self, offset: int, queue: QueueKey, number: int, *, verify: bool = False) -> Record | None:
        """What can be decoded at a log offset if it is number ``number`` of a queue."""
        file = self._files.find(offset)
        return None if file is None else named_record(file.map, queue, number, offset - file.start, verify=verify)

    def read(self, offset: int, size: int | None, log_end: int) -> bytes | None:
        """The bytes of one record below ``log_end``, of ``size`` if that is known.

        None where there is none: expired, damaged, another.
        """
        file = self._files.find(offset)
        if file is None or offset + MIN_RECORD_SIZE > log_end or self._is_damaged(offset):
            return None
        at = offset - file.start
        actual = size_at(file.map, at)
        if physical_offset_at(file.map, at) != offset or actual < MIN_RECORD_SIZE:
            return None
        if (size is not None and actual != size) or offset + actual > min(file.end, log_end):
            return None
        return file.map[at : at + actual]

    def end_of(self, unit: Unit, topic: bytes, queue_id: int, number: int, log_end: int) -> int:
        """Log offset after the record that a unit names; -1 if that is not the record of this queue and number."""
        offset, size, _ = unit
        if size < MIN_RECORD_SIZE or offset < 0 or offset + size > log_end:
            return -1
        file = self._files.find(offset)
        if file is None or offset + size > file.end:
            return -1
        if behind_topic(file.map, offset - file.start, topic, queue_id, number, offset, size) < 0:
            return -1
        return -1 if self._is_damaged(offset) else offset + size

    def _is_damaged(self, offset: int) -> bool:
        return bool(self._damage.ranges) and self._damage.covering(offset) is not None
