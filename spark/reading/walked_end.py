"""Where the records of a log end, found by walking its files: nobody tells.

A store that runs may just be writing. It puts a group of records into the mapped file with the first bytes last, or in
no order at all, so valid records may stand after a place that holds none yet. That looks like damage, and is a message
that will be there in a moment, or when the store has its next turn on the processor. So damage near the end is looked
at again, until it is gone or has stood longer than any write takes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tandemmq.spark.reading.log_files import LogFile
from tandemmq.spark.reading.ranges import LogRange

if TYPE_CHECKING:
    from tandemmq.spark.reading.walking import RangeResult

# What walks is compiled; a process of Spark's that only asks the store does without.

PAUSES = (0.001, 0.004, 0.015, 0.06, 0.25, 0.7)
"""Seconds between looks at the same damage, about one in all: a write takes less than the first, a stall more."""

NEWEST = 16 << 20
"""Bytes at the end of a log that may be in writing: more than a store takes in one call (``grpcMaxMessageSize``)."""

_ROWS = 1 << 16


class WalkedEnd:
    """Finds the end of a log again and again. What was walked is not walked again, so damage costs its pauses once."""

    def __init__(self, pause: Callable[[float], None] = time.sleep) -> None:
        """``pause``: waits so many seconds."""
        self._pause = pause
        self._walked = 0

    def find(self, files: Sequence[LogFile]) -> int:
        """Log offset after the last valid record. Raises OSError."""
        if files[-1].end < self._walked:  # another log
            self._walked = 0
        for file in reversed(files):
            if file.end <= self._walked:
                break
            log_range = LogRange(0, file, max(file.start, self._walked), file.end, exact=True)
            result = walk_through(log_range, check_crc=True)
            if result.records or result.next == file.end:
                self._walked = self._settled(log_range, result)
                break
        return max(self._walked, files[0].start)

    def _settled(self, log_range: LogRange, result: "RangeResult") -> int:
        """Where records end, once what looks damaged near the end has become records or has stood."""
        stood = -1
        while (at := _maybe_in_writing(result, behind=stood)) is not None:
            for seconds in PAUSES:
                self._pause(seconds)
                result = walk_through(replace(log_range, begin=at), check_crc=True)
                if all(damage.begin != at for damage in result.damage):
                    break
            else:
                stood = at
        return _end_of(result)


def walk_through(log_range: LogRange, *, check_crc: bool) -> "RangeResult":
    """What a walk of a range found, without its records. Raises OSError."""
    from tandemmq.spark.reading.walking import RangeWalker

    with RangeWalker(log_range, check_crc=check_crc, rows=_ROWS) as walking:
        for _ in walking.walks():
            pass
        return walking.result


def _maybe_in_writing(result: "RangeResult", behind: int) -> int | None:
    """Where the first damage near the end begins, after log offset ``behind``."""
    near = _end_of(result) - NEWEST
    return next((damage.begin for damage in result.damage if behind < damage.begin and near <= damage.begin), None)


def _end_of(result: "RangeResult") -> int:
    return result.torn_at if result.torn_at >= 0 else result.next
