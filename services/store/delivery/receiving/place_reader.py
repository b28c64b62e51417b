"""Reading the messages of a place: those that were not looked at yet, in a stretch, and single ones again.

What is given out one by one is compared with its checksum first. What does not fit is noted as damage of the log, and
from then on read around, as all known damage is.
"""

from enum import Enum
from typing import NamedTuple

from tandemmq.store.broker.errors import NoSuchQueue, NotReadable
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.reading import is_whole, read_intact
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.format.intact import flaw_of, split_intact
from tandemmq.store.format.record import MIN_RECORD_SIZE, split_records
from tandemmq.store.format.record_fields import physical_offset_at
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.reading.record_reader import named_record


class Absence(Enum):
    """Why a message cannot be read."""

    GONE = "gone"
    """It expired, or is lost."""
    LATER = "later"
    """Its queue is being put right, or it may not be seen yet."""


class Stretch(NamedTuple):
    """What was read of a queue: of the messages from `begin` to `end` those that are wanted, with their offsets."""

    begin: int
    """More than was asked for where messages have expired."""
    end: int
    records: list[tuple[int, bytes]]
    more: bool = False
    """There may be more after it, and nothing keeps it from being read now."""
    later: bool = False
    """The queue is being put right."""


class PlaceReader:
    """Reads from a store."""

    def __init__(self, store: MessageStore, puller: Puller) -> None:
        self._store = store
        self._puller = puller

    @property
    def log_begin(self) -> int:
        """Log offset of the oldest file."""
        return self._store.commit_log.min_offset

    def begin(self, place: Place) -> int:
        """Offset of the first message that may be seen."""
        queue = self._store.queue(place.topic, place.queue)
        return 0 if queue is None else queue.readable_begin

    def has_beyond(self, place: Place, offset: int) -> bool:
        """Whether there is a message at an offset, or after it, that may be seen."""
        queue = self._store.queue(place.topic, place.queue)
        return queue is not None and offset < queue.max_offset and offset < queue.readable_end

    def catch_up(self) -> None:
        """Let what was appended just now be seen."""
        self._store.catch_up()

    def stretch(self, place: Place, offset: int, most: int, most_bytes: int, tags: TagFilter | None) -> Stretch:
        """Messages from an offset on: `most` of them, of so many bytes together, but one of any size."""
        wanted = Wanted(place.topic, place.queue, offset, most, most_bytes, tags)
        try:
            pulled, records = self._pull(wanted)
            begin = offset
            if pulled.status is PullStatus.OFFSET_TOO_SMALL:
                begin = pulled.next_offset
                pulled, records = self._pull(Wanted(place.topic, place.queue, begin, most, most_bytes, tags))
        except (QueueNotReady, QueueInDoubt):
            return Stretch(offset, offset, [], later=True)
        except (NoSuchQueue, NotReadable):
            return Stretch(offset, offset, [])
        if pulled.next_offset <= begin or pulled.status in _NOTHING:
            return Stretch(begin, begin, [])
        more = len(records) < most and pulled.next_offset < pulled.max_offset
        return Stretch(begin, pulled.next_offset, records, more)

    def _pull(self, wanted: Wanted) -> tuple[PullAnswer, list[tuple[int, bytes]]]:
        """An answer and its records, all of them intact: with damage that is found now it is read again, around that.

        Raises as `Puller.pull`.
        """
        while True:
            pulled = self._puller.pull(wanted)
            records = split_intact(pulled.records)
            if records is not None:
                return pulled, records
            self._note_flaws(pulled.records)

    def _note_flaws(self, data: bytes) -> None:
        """Note the records that are not intact, those that follow one another in the log as one stretch."""
        stretches: list[tuple[int, int, str]] = []
        for record in split_records(data):
            reason = flaw_of(record)
            if not reason:
                continue
            at = physical_offset_at(record)
            if stretches and stretches[-1][1] == at:
                stretches[-1] = stretches[-1][0], at + len(record), stretches[-1][2]
            else:
                stretches.append((at, at + len(record), reason))
        for begin, end, reason in stretches:
            self._store.note_rot(begin, end, reason)

    def copy_at(self, physical_offset: int) -> bytes | None:
        """The record of a copy that a fact names; None where there is none any more, or it is damaged."""
        data = self._store.read_record(physical_offset)  # also what no replica has yet
        return None if data is None or flaw_of(data) else data

    def one(self, place: Place, offset: int) -> bytes | Absence:
        """One message."""
        queue = self._store.queue(place.topic, place.queue)
        if queue is None:
            return Absence.LATER
        if offset < queue.readable_begin:
            return Absence.GONE if is_whole(self._store, queue) else Absence.LATER
        units = queue.read(offset, 1)
        if units and MIN_RECORD_SIZE <= units[0].size <= self._store.config.mapped_file_size_commit_log:
            data = read_intact(self._store, units[0].physical_offset, units[0].size)
            if data is not None and named_record(data, (place.topic, place.queue), offset) is not None:
                return data
        if self._store.repairs.is_lost(queue, offset):
            return Absence.GONE
        self._store.repairs.doubt(queue, offset)
        return Absence.LATER


_NOTHING = frozenset(
    {
        PullStatus.OFFSET_OVERFLOW_ONE,
        PullStatus.OFFSET_OVERFLOW_BADLY,
        PullStatus.NO_MATCHED_LOGIC_QUEUE,
        PullStatus.NO_MESSAGE_IN_QUEUE,
        PullStatus.OFFSET_TOO_SMALL,
    }
)
