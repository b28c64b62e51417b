"""GatewayCredit: what a gateway has memory for, of the messages that it asks for."""

import asyncio
from collections import deque


class GatewayCredit:
    """Bytes that may be given on one link. Receives that wait for messages hold none of it."""

    def __init__(self) -> None:
        self._whole = 0
        self._left = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def add(self, size: int) -> None:
        """The gateway has memory for so many bytes more."""
        self._whole = self._whole or size
        self._left += size
        self._wake()

    async def room(self, size: int) -> None:
        """Wait until `size` bytes may be given, or as many as the gateway takes at all.

        Who comes back from here looks for messages, and tells `taken`, before anything else runs.
        """
        while not self._whole or self._left < min(size, self._whole):
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                asyncio.get_running_loop().call_soon(self._wake)  # the next one, when this one has taken what it takes

    def times(self, size: int) -> int:
        """For how many receives of `size` bytes each there is room now, before none that waits."""
        return 0 if self._waiting or not self._whole else max(self._left // max(min(size, self._whole), 1), 0)

    def taken(self, size: int) -> None:
        """So many bytes were given."""
        self._left -= size

    def given_back(self, size: int) -> None:
        """So many bytes that were taken were not given after all."""
        self._left += size
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self._left > 0:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                break
