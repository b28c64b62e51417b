"""Throttle: the same thing is told once in a while only."""

import time
from collections.abc import Callable, Hashable

_MOST_KEPT = 1_000


class Throttle:
    """Remembers when a thing was told last."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._told: dict[Hashable, float] = {}

    def now(self, thing: Hashable) -> bool:
        """Whether it is time to tell it; if so, it counts as told."""
        now = self._clock()
        before = self._told.get(thing)
        if before is not None and now - before < self._seconds:
            return False
        self._told.pop(thing, None)
        if len(self._told) >= _MOST_KEPT:
            del self._told[next(iter(self._told))]
        self._told[thing] = now
        return True
