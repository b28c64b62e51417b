"""Turns: how long one turn of the event loop may last, so that a caller's small request does not wait for others' work.

Two things are cut into pieces. What a connection has sent is read for a slice of time, and goes on in the next turn:
frames, the requests in them and their handlers' first steps. And answers that are large are made while the turn has
time left; the others wait in a line.
"""

import asyncio
from heapq import heappop, heappush
from itertools import count
from time import monotonic

from tandemmq.common.grpc_transport.http2.budget import Account

_SHORTEST = 0.0003
"""Seconds of a slice, however many want one."""


class Turns:
    """Of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """`seconds`: of a turn, for each of the two."""
        self._loop = loop
        self._seconds = seconds
        self._ends = 0.0
        """When there is no more time for large answers in this turn; 0: none was made in it yet."""
        self._line: list[tuple[int, int, int, asyncio.Future[None]]] = []
        """A heap: whose owner holds least comes first, then who holds least, then who came first."""
        self._numbers = count()
        self._called = False
        """Somebody from the line goes on in the next turn."""
        self.lagging: set[object] = set()
        """Connections that have sent more than was read in their slice."""

    def slice_ends(self) -> float:
        """When a connection that begins to be read now should stop, by `monotonic`."""
        return monotonic() + max(_SHORTEST, self._seconds / (1 + len(self.lagging)))

    async def large(self, account: Account) -> None:
        """Wait until a large answer may be made for the caller whose account this is."""
        if self._line or self._called or self._over():
            future: asyncio.Future[None] = self._loop.create_future()
            heappush(self._line, (account.owner.used, account.used, next(self._numbers), future))
            await future

    def _over(self) -> bool:
        if not self._ends:
            self._ends = monotonic() + self._seconds
            self._loop.call_soon(self._next)
            return False
        return monotonic() > self._ends

    def _next(self) -> None:
        """A turn later: the first in the line may go on, however long the turn before has taken."""
        called, self._called = self._called, False
        while self._line:
            *_, first = heappop(self._line)
            if not first.done():
                first.set_result(None)
                self._called, self._ends = True, monotonic() + self._seconds
                self._loop.call_soon(self._next)
                return
        if called:  # this turn is that one's, to its end
            self._loop.call_soon(self._next)
        else:
            self._ends = 0.0
