"""A stretch of time and the file of its timers: an hour, a minute, a second, or a millisecond. No I/O.

The file's name is the time in UTC: ``2026112405`` for an hour, ``202611240530`` for a minute, and so on.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tandemmq.store.delivery.delays.timer_entry import HOUR_MS

LENGTHS = (HOUR_MS, 60_000, 1_000, 1)
"""Lengths of slots, in ms; each is split into slots of the next."""

_DIGITS = {10: HOUR_MS, 12: 60_000, 14: 1_000, 17: 1}
_PARTS = (4, 6, 8, 10, 12, 14, 17)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Slot(NamedTuple):
    """Times from `start` on, in ms since the epoch; they sort by time, the longer before what it is split into."""

    start: int
    level: int
    """0 for an hour, 1 for a minute, 2 for a second, 3 for a millisecond."""

    @property
    def length(self) -> int:
        """How long it is, in ms."""
        return LENGTHS[self.level]

    @property
    def end(self) -> int:
        """The first ms after it."""
        return self.start + self.length

    @property
    def hour(self) -> int:
        """When its hour begins: its entries are relative to that."""
        return self.start - self.start % HOUR_MS

    @property
    def name(self) -> str:
        """The file's name."""
        time = _EPOCH + timedelta(milliseconds=self.start)
        text = f"{time:%Y%m%d%H%M%S}{time.microsecond // 1_000:03}"
        return text[: (10, 12, 14, 17)[self.level]]

    def within(self, when: int) -> "Slot":
        """The slot of the next level in which a time lies."""
        length = LENGTHS[self.level + 1]
        return Slot(when - when % length, self.level + 1)


def hour_of(when: int) -> Slot:
    """The hour in which a time lies."""
    return Slot(when - when % HOUR_MS, 0)


def parents_of(slot: Slot) -> Iterator[Slot]:
    """The longer slots in which a slot lies, the longest first."""
    parent = hour_of(slot.start)
    while parent.level < slot.level:
        yield parent
        parent = parent.within(slot.start)


def slot_of_name(name: str) -> Slot | None:
    """The slot whose file has that name; None if no slot has."""
    length = _DIGITS.get(len(name))
    if length is None or not (name.isascii() and name.isdigit()):
        return None
    numbers = [int(name[begin:end]) for begin, end in zip((0, *_PARTS), _PARTS, strict=False) if end <= len(name)]
    try:
        time = datetime(*numbers[:6], tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    milliseconds = numbers[6] if len(numbers) > 6 else 0
    return Slot(round((time - _EPOCH).total_seconds()) * 1_000 + milliseconds, LENGTHS.index(length))
