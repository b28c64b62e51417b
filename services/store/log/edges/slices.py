"""Long work on the event loop, in slices: others have their turn in between."""

import asyncio
import time

_SLICE_SECONDS = 0.001


class Slices:
    """Made when the work begins; ask for a `pause` after each small step of it."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + _SLICE_SECONDS

    async def pause(self) -> None:
        """Let others have the loop, once the slice is over."""
        if time.perf_counter() >= self._until:
            await asyncio.sleep(0)
            self._until = time.perf_counter() + _SLICE_SECONDS
