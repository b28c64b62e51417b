"""The clock that is handed to the store, so that tests can set it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Source of wall-clock time."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's own wall clock."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000
