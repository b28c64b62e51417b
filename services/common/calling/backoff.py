"""Pauses between attempts: each about twice the last, and never the same for two who failed together."""

import random
from collections.abc import Callable


class Backoff:
    """The pauses of one series of attempts. No clock: whoever asks does the waiting."""

    __slots__ = ("_high", "_low", "_next", "_uniform", "fresh")

    def __init__(self, low: float, high: float, uniform: Callable[[float, float], float] = random.uniform) -> None:
        """`low` and `high` bound the pauses, in seconds, before chance takes up to half of each away."""
        self._low = low
        self._high = high
        self._next = low
        self._uniform = uniform
        self.fresh = True
        """Whether no attempt of the series has failed yet."""

    def pause(self) -> float:
        """Seconds to wait now."""
        self.fresh = False
        pause, self._next = self._next, min(self._next * 2, self._high)
        return self._uniform(pause / 2, pause)

    def reset(self) -> None:
        """An attempt succeeded: the next pause is the first of a new series."""
        self._next, self.fresh = self._low, True
