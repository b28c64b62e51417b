"""Timers that a test moves on: what is due is called in its order, and nobody waits."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

from tandemmq.common.timers import Timer, TimerLine

_TURNS = 20
"""Turns of the loop after each call, so that what it has started comes to where it waits again."""


class _Due:
    """One call."""

    def __init__(self, when: float, order: int, call: Callable[[], object]) -> None:
        self.when, self.order = when, order
        self.call: Callable[[], object] | None = call

    def __lt__(self, other: "_Due") -> bool:
        return (self.when, self.order) < (other.when, other.order)

    def cancel(self) -> None:
        self.call = None


class ManualTimers:
    """`Timers` whose clock stands still but for `advance`."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.each_look = 0.0
        """So much time seems to pass within a turn, each time that `elapsed` is asked."""
        self._elapsed = 0.0
        self._order = itertools.count()
        self._due: list[_Due] = []
        self._line = TimerLine(self.call_soon)

    def time(self) -> float:
        return self.now

    @property
    def coming(self) -> int:
        """Calls that are to come."""
        return sum(due.call is not None for due in self._due)

    def spend(self, seconds: float) -> None:
        """Let so much time pass within a turn, as `elapsed` shows it."""
        self._elapsed += seconds

    def elapsed(self) -> float:
        self._elapsed += self.each_look
        return self._elapsed

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> Timer:
        return asyncio.get_running_loop().call_soon(callback, *arguments)

    def call_later(self, seconds: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        return self.call_at(self.now + seconds, callback, *arguments)

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        due = _Due(when, next(self._order), lambda: callback(*arguments))
        heapq.heappush(self._due, due)
        return due

    def call_in_line(self, callback: Callable[[], object]) -> None:
        self._line.call(callback)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        awake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_later(seconds, _wake, awake)
        await awake

    async def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        await turns()  # what was just started comes to where it waits
        end = self.now + seconds
        while self._due and self._due[0].when <= end:
            due = heapq.heappop(self._due)
            if due.call is None:  # cancelled
                continue
            self.now = max(self.now, due.when)
            due.call()
            await turns()
        self.now = max(self.now, end)
        await turns()


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)


async def turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
