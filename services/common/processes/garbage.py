"""Garbage collection in a process that answers others: no pause grows with what is alive.

A full collection of CPython looks at everything that is alive. In a store for which callers have left 30,000 streams
open that is a quarter of a second for each, and every caller waits for it. So what a long collection has left alive is
frozen: taken out of the collector's sight, so that the next looks at what has come since. Most of it goes all the same,
by its counts of references; cycles among it do not, so now and then everything is looked at once.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

from tandemmq.common.timers import Timer, Timers

_LONG_SECONDS = 0.005
"""A full collection that takes longer is not made over the same objects again."""
_THAW_SECONDS = 600.0
"""Between two looks at everything, at least; none comes while nothing is frozen."""


class ShortCollections:
    """Freezes what long collections leave, while it is in force: from `start` to `stop`."""

    def __init__(
        self,
        timers: Timers,
        *,
        long_seconds: float = _LONG_SECONDS,
        thaw_seconds: float = _THAW_SECONDS,
    ) -> None:
        """`long_seconds`: of a full collection that freezes; `thaw_seconds`: between two looks at everything."""
        self._timers = timers
        self._long_seconds = long_seconds
        self._thaw_seconds = thaw_seconds
        self._began = 0.0
        self._thawing: Timer | None = None
        self.frozen = 0
        """How often something was frozen since everything was last looked at."""

    def start(self) -> None:
        """On the event loop, once the process is ready: what is alive by then is frozen at once."""
        gc.collect()
        gc.freeze()
        gc.callbacks.append(self._collected)
        self._thawing = self._timers.call_later(self._thaw_seconds, self._thaw)

    def stop(self) -> None:
        """Everything is in the collector's sight again."""
        if self._thawing is None:
            return
        self._thawing.cancel()
        self._thawing = None
        gc.callbacks.remove(self._collected)
        gc.unfreeze()

    def _collected(self, phase: str, told: Mapping[str, int]) -> None:
        """The collector's call, before and after each collection, in whichever thread makes it."""
        if told["generation"] < 2:
            return
        if phase == "start":
            self._began = perf_counter()
        elif perf_counter() - self._began > self._long_seconds:
            gc.freeze()
            self.frozen += 1

    def _thaw(self) -> None:
        self._thawing = self._timers.call_later(self._thaw_seconds, self._thaw)
        if self.frozen:
            gc.unfreeze()
            gc.collect()  # which freezes what is left, unless that is little
            self.frozen = 0


@contextmanager
def no_collections() -> Iterator[None]:
    """While a service is imported: 70,000 objects are made, and stay; collections would look at them again and again.

    They are out of the collector's sight from then on.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
