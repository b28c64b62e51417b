"""Those who wait until the log is somewhere up to an offset: on disk, or on replicas. All on the event loop."""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from tandemmq.common.timers import Timers

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

Told = Callable[[bool], None]
"""Called once: True when the log is there, False when it will not be, or not in time."""

_TIMER_ROUNDING = 0.001
"""Seconds: a loop's clock and timers are as fine as a millisecond."""


class _Waiter:
    __slots__ = ("deadline", "offset", "told")

    def __init__(self, offset: int, told: Told, deadline: float) -> None:
        self.offset = offset
        self.told: Told | None = told
        self.deadline = deadline


class OffsetWaiters:
    """In the order in which they came, which is nearly that of their offsets: one comparison serves all of them.

    Those who have a deadline must all have the same patience, so one timer serves them: that of the oldest.
    """

    def __init__(self, timers: Timers) -> None:
        """Nobody waits yet."""
        self._timers = timers
        self._waiters: deque[_Waiter] = deque()
        self._watching = False

    def __len__(self) -> int:
        return sum(waiter.told is not None for waiter in self._waiters)

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def add(self, offset: int, told: Told, seconds: float = math.inf) -> None:
        """Tell whoever waits for ``offset``; False after so many seconds."""
        if seconds == math.inf:
            self._waiters.append(_Waiter(offset, told, math.inf))
            return
        self._waiters.append(_Waiter(offset, told, self._timers.time() + seconds))
        if not self._watching:
            self._watching = True
            self._timers.call_later(seconds, self._give_up)

    def reached(self, offset: int) -> None:
        """The log is there up to ``offset``."""
        waiters = self._waiters
        while waiters and waiters[0].offset <= offset:
            told = waiters.popleft().told
            if told is not None:
                told(True)

    def fail(self) -> None:
        """The log will never be there."""
        while self._waiters:
            _tell_failure(self._waiters.popleft())

    def _give_up(self) -> None:
        """Tell those who have waited long enough. After one who waits for ever they stay, and are passed over."""
        now, waiters = self._timers.time() + _TIMER_ROUNDING, self._waiters
        self._watching = False
        for waiter in tuple(waiters):
            if waiter.told is None or waiter.deadline == math.inf:
                continue
            if waiter.deadline > now:
                self._watching = True
                self._timers.call_at(waiter.deadline, self._give_up)
                break
            _tell_failure(waiter)
        while waiters and waiters[0].told is None:
            waiters.popleft()


def _tell_failure(waiter: _Waiter) -> None:
    """Tell that the log will not be there, or not in time; the others are told too, whatever comes of it."""
    told, waiter.told = waiter.told, None
    if told is None:
        return
    try:
        told(False)
    except Exception:  # nobody else would tell them
        log.exception("One who waited for the log was not told that it failed")


def settling(future: "asyncio.Future[Answer]") -> Callable[[Answer], None]:
    """Tells a future, unless whoever waited for it has gone."""

    def told(answer: Answer) -> None:
        if not future.done():
            future.set_result(answer)

    return told
