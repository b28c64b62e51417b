"""RocketMQ's DataVersion: which of two tables is the newer, and whether they are the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LATEST_MS = 1 << 43
"""The year 2248. A table from then would count as the newest for ever."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The version of a table. Equal versions mean equal content; no version is given twice."""

    state_version: int = 0
    """The epoch of the mastership in which the table was changed."""
    timestamp: int = 0
    """Of the last change, in milliseconds since 1970; never goes back with the clock."""
    counter: int = 0
    """Number of changes."""

    def next(self, now_ms: int, state_version: int) -> "DataVersion":
        """The version after one more change, in a mastership of that epoch (or the table's own, if that is greater)."""
        return DataVersion(max(self.state_version, state_version), max(self.timestamp, now_ms), self.counter + 1)

    def older_than(self, other: "DataVersion") -> bool:
        """Whether the other is newer, in RocketMQ 5's order: state version, then counter, then timestamp."""
        return self._order() < other._order()

    def to_json(self) -> dict[str, int]:
        """As it stands in files."""
        return {"counter": self.counter, "stateVersion": self.state_version, "timestamp": self.timestamp}

    @classmethod
    def from_json(cls, found: Any) -> "DataVersion":
        """As it stands in files; RocketMQ 4.9 has no stateVersion, and no version at all for offsets.

        Raises:
            ValueError: it is something else.
        """
        if found is None:
            return cls()
        if not isinstance(found, Mapping):
            raise ValueError("dataVersion is no object")
        numbers = [found.get(name, 0) for name in ("stateVersion", "timestamp", "counter")]
        if not all(type(number) is int for number in numbers):
            raise ValueError("dataVersion holds something else than integers")
        if min(numbers) < 0 or max(numbers[0], numbers[2]) >= 1 << 62 or numbers[1] > _LATEST_MS:
            raise ValueError("dataVersion cannot be true: a number below 0, too large, or a time of the far future")
        return cls(*numbers)

    def _order(self) -> tuple[int, int, int]:
        return self.state_version, self.counter, self.timestamp
