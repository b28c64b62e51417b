"""WaitingReaders: how many wait for messages, in all queues together; where nobody does, dispatch need not hurry."""

import asyncio
from collections.abc import Callable


class WaitingReaders:
    """See the module. The broker's own services, which have time, do not count."""

    def __init__(self) -> None:
        self.count = 0
        self.first_came: Callable[[], None] = lambda: None
        """Called when one waits, and nobody did before."""

    def add(self, future: "asyncio.Future[None]") -> None:
        """One waits, until this future is done."""
        self.count += 1
        future.add_done_callback(self._went)
        if self.count == 1:
            self.first_came()

    def _went(self, _future: "asyncio.Future[None]") -> None:
        self.count -= 1
