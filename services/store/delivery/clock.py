"""The delivery clock: milliseconds since the Unix epoch that steps of the wall clock do not move."""

import time
from typing import Protocol

from tandemmq.store.log.edges.clock import Clock, SystemClock


class DeliveryClock(Protocol):
    """Source of the times at which given messages are due again."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, as they were known at the start; never goes back while the store runs."""
        ...


class BootClock:
    """Begins at the wall clock's time, and runs on with CLOCK_BOOTTIME, which also counts while the machine sleeps.

    So an invisible time is as long as it was asked to be, whatever is done to the wall clock meanwhile.
    """

    def __init__(self, wall: Clock | None = None) -> None:
        self._begin_ms = (wall or SystemClock()).now_ms()
        self._begin_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def now_ms(self) -> int:
        """See `DeliveryClock`."""
        return self._begin_ms + (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._begin_ns) // 1_000_000
