"""The records that units of a queue name, each compared with its unit."""

from collections.abc import Callable, Iterable, Iterator

from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.format.record_identity import behind_topic, shows_tags_code
from tandemmq.store.format.unit import record_tags_code
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

Named = tuple[int, int, int, int]
"""The number of a message, and its unit: log offset, size, tags code."""


class NamedRecords:
    """Records of one queue for one reader, up to the first that does not fit its unit and is not known as lost."""

    __slots__ = ("_is_lost", "_log_end", "_parts", "_queue", "count", "expired", "hole", "wrong_tags")

    def __init__(
        self, parts: StoreParts, queue: ConsumeQueue, is_lost: Callable[[ConsumeQueue, int], bool], log_end: int
    ) -> None:
        self._parts = parts
        self._queue = queue
        self._is_lost = is_lost
        self._log_end = log_end
        self.hole = -1
        """Number of a unit that does not fit the log, before which reading stops; -1 if there is none."""
        self.wrong_tags = -1
        """Number of a unit whose tags code is not that of its record, though all else fits; -1 if there is none."""
        self.expired = False
        """Whether a record was in files that are gone."""
        self.count = 0
        """Records that were copied."""

    def doubt(self, number: int) -> bool:
        """Stop before a unit that does not fit the log, unless its message is known to be lost. True: it stops."""
        if self._is_lost(self._queue, number):
            return False
        self.hole = number
        return True

    def copy(self, named: Iterable[Named]) -> bytes:
        """The records, neighbours in one piece; without those that are lost, and up to a hole."""
        return b"".join(self._pieces(named))

    def _pieces(self, named: Iterable[Named]) -> Iterator[bytes]:
        files, log_end, damage = self._parts.files, self._log_end, self._parts.damage.lasting
        topic, queue_id = self._queue.topic.encode(), self._queue.queue_id
        file, start, stop = None, 0, 0
        begin = end = -1
        for number, offset, size, code in named:
            if not start <= offset <= stop - size:
                if file is not None:
                    yield file.map[begin - start : end - start]
                file = files.find(offset)
                begin = end = -1
                if file is None or offset + size > min(file.end, log_end):
                    file, start, stop = None, 0, 0
                    if self.doubt(number):
                        return
                    self.expired = self.expired or offset < files.files[0].start
                    continue
                start, stop = file.start, min(file.end, log_end)
            assert file is not None
            at = offset - start
            behind = behind_topic(file.map, at, topic, queue_id, number, offset, size)
            if behind < 0 or (damage and any(known.begin < offset + size and offset < known.end for known in damage)):
                if self.doubt(number):
                    break
                continue
            if not shows_tags_code(file.map, behind, at + size, code) and self.wrong_tags < 0:
                self._decode_and_compare(number, file.map[at : at + size], code)
            if offset != end:
                if end > begin:
                    yield file.map[begin - start : end - start]
                begin = offset
            end = offset + size
            self.count += 1
        if file is not None:
            yield file.map[begin - start : end - start]

    def _decode_and_compare(self, number: int, data: bytes, code: int) -> None:
        try:
            record = decode_record(data, verify=False)
        except CorruptRecord:
            return
        self.compare_tags(number, record, code)

    def compare_tags(self, number: int, record: Record, code: int) -> None:
        """Note it where the code of a record's unit is not that of its tags."""
        levels = self._parts.config.message_delay_levels
        if record_tags_code(record.topic, record.properties, record.store_timestamp, levels) != code:
            self.wrong_tags = number
