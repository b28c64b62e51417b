"""Turns: how long one turn of the event loop may last, so that a caller's small request does not wait for others' work.

Two things are cut into pieces. What a connection has sent is read for a slice of time: frames, the requests in them and
their handlers' first steps. Connections that have sent more stand in a line, and in each turn those in front go on, for
as long as a turn may last: few long slices cost less than many short ones, as each ends with a write. And answers that
are large are made while the turn has time left; the others wait in a line of their own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic

from tandemmq.common.grpc_transport.http2.budget import Account

_SHORTEST = 0.0003
"""Seconds of a slice, however many want one."""

GoOn = Callable[[float], float]
"""Works until a time, by `monotonic`; gives the seconds that what it has begun will take in the next turn."""


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
        self._lagging: OrderedDict[object, GoOn] = OrderedDict()
        """Connections that have sent more than was read in their slice, in the order in which they go on."""
        self._going_on = False

    def slice_ends(self) -> float:
        """When a connection that begins to be read now should stop, by `monotonic`."""
        return monotonic() + max(_SHORTEST, self._seconds / (1 + len(self._lagging)))

    def lag(self, connection: object, go_on: GoOn) -> bool:
        """Put a connection at the end of the line, where it is not in it; whether it was not.

        `go_on` is called when it is its turn, and it is in the line no more.
        """
        if connection in self._lagging:
            return False
        self._lagging[connection] = go_on
        if not self._going_on:
            self._going_on = True
            self._loop.call_soon(self._go_on)
        return True

    def lags(self, connection: object) -> bool:
        """Whether a connection is in the line."""
        return connection in self._lagging

    def leave(self, connection: object) -> None:
        """A connection is gone."""
        self._lagging.pop(connection, None)

    def _go_on(self) -> None:
        """A turn for those in front, each once."""
        ends = monotonic() + self._seconds
        try:
            for _ in range(len(self._lagging)):
                _, go_on = self._lagging.popitem(last=False)
                ends -= go_on(max(ends, monotonic() + _SHORTEST))
                if not self._lagging or monotonic() > ends:
                    return
        finally:
            self._going_on = bool(self._lagging)
            if self._going_on:
                self._loop.call_soon(self._go_on)

    async def large(self, account: Account) -> None:
        """Wait until a large answer may be made for the caller whose account this is."""
        if self._line or self._over():
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
        self._ends = 0.0
        while self._line:
            *_, first = heappop(self._line)
            if not first.done():
                first.set_result(None)
                if self._line and not self._ends:
                    self._ends = monotonic() + self._seconds
                    self._loop.call_soon(self._next)
                return
