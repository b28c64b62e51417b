"""StreamCredit: how much more the client of a stream is ready to take."""

import asyncio
from collections.abc import AsyncIterator

from tandemmq.common.errors import TandemError
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.v1 import store_pb2

_UNLIMITED = 1 << 62

StreamRequest = store_pb2.PullStreamRequest | delivery_pb2.ReceiveStreamRequest


class StreamCredit:
    """Messages and bytes that may be sent; a task of the stream adds what the client gives."""

    def __init__(self, first: store_pb2.Credit) -> None:
        """What there is to begin with; a kind that is not named is unlimited. Raises BadRequest."""
        _check(first)
        self.messages = first.messages or _UNLIMITED
        self.bytes = first.bytes or _UNLIMITED
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the client sends no more; with an error where it broke the rules."""
        self._more = asyncio.Event()

    async def wait(self) -> bool:
        """Wait until there is credit; False if there will never be any. Raises BadRequest for a wrong request."""
        while self.messages <= 0 or self.bytes <= 0:
            if self.closed.done():
                self.closed.result()
                return False
            self._more.clear()
            await self._more.wait()
        if self.closed.done():
            self.closed.result()
        return True

    def spend(self, messages: int, size: int) -> None:
        """So much was sent."""
        self.messages -= messages
        self.bytes -= size

    async def take(self, requests: AsyncIterator[StreamRequest]) -> None:
        """Add what all later requests of the stream give, until it ends."""
        try:
            async for request in requests:
                if request.WhichOneof("request") != "credit":
                    raise BadRequest("Only the first request of a stream may be a subscription.")
                _check(request.credit)
                self.messages += request.credit.messages
                self.bytes += request.credit.bytes
                self._more.set()
        except TandemError as error:
            self._close(error)
        else:
            self._close(None)

    def _close(self, error: TandemError | None) -> None:
        if not self.closed.done():
            if error is None:
                self.closed.set_result(None)
            else:
                self.closed.set_exception(error)
        self._more.set()


def _check(given: store_pb2.Credit) -> None:
    check_not_negative("credit.messages", given.messages)
    check_not_negative("credit.bytes", given.bytes)
