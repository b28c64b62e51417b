"""What comes later, handed in beside the clock, so that tests need not wait for it."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol


class Timers(Protocol):
    """Calls that come later, by a clock in seconds that never goes back. All of it on the event loop."""

    def time(self) -> float:
        """What that clock shows; only differences mean something."""
        ...

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> object:
        """Call at the end of this turn of the loop."""
        ...

    def call_later(self, seconds: float, callback: Callable[..., object], *arguments: Any) -> object:
        """Call in so many seconds."""
        ...

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> object:
        """Call when the clock shows `when`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Go on in so many seconds; with 0 after a turn of the loop."""
        ...


class LoopTimers:
    """The timers of the event loop on which they are first used."""

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @cached_property
    def time(self) -> Callable[[], float]:
        """See `Timers`."""
        return self._loop.time

    @cached_property
    def call_soon(self) -> Callable[..., object]:
        """See `Timers`."""
        return self._loop.call_soon

    @cached_property
    def call_later(self) -> Callable[..., object]:
        """See `Timers`."""
        return self._loop.call_later

    @cached_property
    def call_at(self) -> Callable[..., object]:
        """See `Timers`."""
        return self._loop.call_at

    async def sleep(self, seconds: float) -> None:
        """See `Timers`."""
        await asyncio.sleep(seconds)
