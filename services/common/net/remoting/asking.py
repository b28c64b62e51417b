"""Asking: the requests of ours that a peer has not answered yet."""

import asyncio

from tandemmq.common.net.remoting.errors import PeerGone, TooMuchAsked
from tandemmq.common.wire.remoting.command import Command


class Asking:
    """Numbers requests and finds who waits for a response. The numbers wrap below zero, as Java's."""

    def __init__(self, most: int) -> None:
        """`most` requests may wait at the same time."""
        self._most = most
        self._last = 0
        self._waiting: dict[int, asyncio.Future[Command]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def number(self) -> int:
        """The next request's `opaque`."""
        self._last = self._last + 1 if self._last < 2**31 - 1 else -(2**31)
        return self._last

    def begin(self, command: Command) -> "asyncio.Future[Command]":
        """What the answer will be set to; gives the command its number. Raises TooMuchAsked."""
        if len(self._waiting) >= self._most:
            raise TooMuchAsked(f"{self._most} requests wait for this peer's answers already")
        command.opaque = self.number()
        waiting = self._waiting[command.opaque] = asyncio.get_running_loop().create_future()
        return waiting

    def forget(self, command: Command) -> None:
        """Nobody waits for its answer any more."""
        self._waiting.pop(command.opaque, None)

    def answered(self, response: Command) -> None:
        """A response came; one that nobody waits for is dropped."""
        waiting = self._waiting.pop(response.opaque, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def fail(self, reason: str) -> None:
        """No answers will come."""
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            if not one.done():
                one.set_exception(PeerGone(reason))
