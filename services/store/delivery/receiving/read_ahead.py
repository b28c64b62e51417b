"""Reading a few messages more than a small receive asks for: the next one of that group need not read again.

What was read ahead counts for the state that it was read for, and for as long as no file of the log has gone, and the
topic keeps the first of it.
"""

from collections.abc import Sequence

from tandemmq.store.broker.send import new_tuple
from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.delivery.receiving.place_reader import PlaceReader, Stretch

_MESSAGES, _BYTES = 32, 64 << 10
"""Read at a time. A message alone may have more bytes."""
_MOST_PLACES = 128
"""So many places have some; what was read for the others is dropped."""


class _Read:
    __slots__ = ("at", "log_begin", "progress", "records", "size")

    def __init__(self, progress: QueueProgress, log_begin: int, records: Sequence[tuple[int, bytes]]) -> None:
        self.progress = progress
        self.log_begin = log_begin
        self.records = records
        """Offsets that follow one another, and their records."""
        self.at = 0
        """How many of them are ahead no more."""
        self.size = sum([len(record) for _, record in records])


class ReadAhead:
    """Reads from a place what comes next."""

    def __init__(self, reader: PlaceReader) -> None:
        self._reader = reader
        self._read: dict[Place, _Read] = {}

    def stretch(self, progress: QueueProgress, most: int, most_bytes: int, tags: TagFilter | None) -> Stretch:
        """See `PlaceReader.stretch`: what a group has not looked at yet."""
        place, offset = progress.place, progress.given
        if tags is not None or most >= _MESSAGES:
            return self._reader.stretch(place, offset, most, most_bytes, tags)
        read = self._read.get(place)
        if read is None or not self._counts(read, progress):
            read = self._read_more(progress)
            if read is None:
                return self._reader.stretch(place, offset, most, most_bytes, tags)
        found = _taken(read, offset, most, most_bytes)
        if not found.more:
            del self._read[place]  # its records may be large
        return found

    def _counts(self, read: _Read, progress: QueueProgress) -> bool:
        return (
            read.records[read.at][0] == progress.given
            and read.progress is progress
            and read.log_begin == self._reader.log_begin
            and progress.given >= self._reader.begin(progress.place)
        )

    def _read_more(self, progress: QueueProgress) -> _Read | None:
        """None where messages are missing, or cannot be read now: that is to be found by who wants them."""
        place, offset = progress.place, progress.given
        log_begin = self._reader.log_begin
        found = self._reader.stretch(place, offset, _MESSAGES, _BYTES, None)
        self._read.pop(place, None)
        if found.begin != offset or not found.records or found.end - offset != len(found.records):
            return None
        if len(self._read) >= _MOST_PLACES:
            del self._read[next(iter(self._read))]
        read = self._read[place] = _Read(progress, log_begin, found.records)
        return read


def _taken(read: _Read, offset: int, most: int, most_bytes: int) -> Stretch:
    """The first of the records, which are ahead no more: at least one, whatever its size."""
    taken = read.records[read.at : read.at + most]
    if read.size > most_bytes:
        left = most_bytes - len(taken[0][1])
        fit = 1
        while fit < len(taken) and len(taken[fit][1]) <= left:
            left -= len(taken[fit][1])
            fit += 1
        taken = taken[:fit]
    read.at += len(taken)
    return new_tuple(Stretch, (offset, offset + len(taken), taken, read.at < len(read.records), False))
