"""Background: one event loop in a thread, on which the plain clients run."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Got = TypeVar("Got")


class Background:
    """The loop of this process, begun when it is first needed; a forked child gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, which runs."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="tandemmq client", daemon=True).start()
            return self._loop

    def begin(self, work: Coroutine[Any, Any, Got]) -> "Future[Got]":
        """Do something on the loop; what becomes of it is in the future."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, Got]) -> Got:
        """Do something on the loop and wait for it; who is interrupted while waiting calls it off."""
        doing = self.begin(work)
        try:
            return doing.result()
        except BaseException:
            doing.cancel()
            raise


BACKGROUND = Background()
"""That of this process."""
