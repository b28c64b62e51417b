"""What comes later, handed in beside the clock, so that tests need not wait for it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """Let it not come; nothing where it has come."""
        ...


class Timers(Protocol):
    """Calls that come later, by a clock in seconds that never goes back. All of it on the event loop."""

    def time(self) -> float:
        """What that clock shows; only differences mean something. It may stand still within a turn of the loop."""
        ...

    def elapsed(self) -> float:
        """What a clock shows that goes on within a turn, in seconds; only differences mean something."""
        ...

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call at the end of this turn of the loop."""
        ...

    def call_later(self, seconds: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call in so many seconds."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call when the clock shows `when`."""
        ...

    def call_in_line(self, callback: Callable[[], object]) -> None:
        """Call in a later turn of the loop, one call in each: for work that is long, so that together it is not."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Go on in so many seconds; with 0 after a turn of the loop."""
        ...


class TimerLine:
    """Calls of which each turn of the loop has one at most, in the order in which they came."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon
        self._calls: deque[Callable[[], object]] = deque()
        self._idle = True

    def call(self, callback: Callable[[], object]) -> None:
        """See `Timers.call_in_line`."""
        self._calls.append(callback)
        if self._idle:
            self._idle = False
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._call_soon(self._next)
        self._calls.popleft()()

    def _next(self) -> None:
        """The turn after a call is left to the task that it may have woken."""
        self._idle = not self._calls
        if self._calls:
            self._call_soon(self._turn)


async def my_turn(timers: Timers) -> None:
    """Go on when it is the turn of this one, by `call_in_line`."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timers.call_in_line(lambda: _settle(turn))
    await turn


class LoopTimers:
    """The timers of the event loop on which they are first used."""

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @cached_property
    def time(self) -> Callable[[], float]:
        """See `Timers`."""
        return self._loop.time

    elapsed = staticmethod(perf_counter)
    """See `Timers`."""

    @cached_property
    def call_soon(self) -> Callable[..., Timer]:
        """See `Timers`."""
        return self._loop.call_soon

    @cached_property
    def call_later(self) -> Callable[..., Timer]:
        """See `Timers`."""
        return self._loop.call_later

    @cached_property
    def call_at(self) -> Callable[..., Timer]:
        """See `Timers`."""
        return self._loop.call_at

    @cached_property
    def call_in_line(self) -> Callable[[Callable[[], object]], None]:
        """See `Timers`."""
        return TimerLine(self._loop.call_soon).call

    async def sleep(self, seconds: float) -> None:
        """See `Timers`."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def time_limit(timers: Timers, seconds: float | None) -> AsyncIterator[None]:
    """`asyncio.timeout` by these timers: what is in the block ends in so many seconds, by TimeoutError; None: never."""
    if seconds is None:
        yield
        return
    async with asyncio.timeout(None) as limit:
        timer = timers.call_later(max(seconds, 0), limit.reschedule, 0)  # of the loop's own clock: now
        try:
            yield
        finally:
            timer.cancel()


async def first_of(timers: Timers, futures: Iterable["asyncio.Future[Any]"], seconds: float | None = None) -> None:
    """Wait until one of the futures is done, or for so many seconds; none of them is cancelled then."""
    if seconds is None:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        return
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = timers.call_later(max(seconds, 0), _settle, over)
    try:
        await asyncio.wait((*futures, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        over.cancel()


def _settle(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)
