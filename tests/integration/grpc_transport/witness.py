"""Handlers that wait for ever, and what they see of their end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from tests.integration.grpc_transport.hosting import Hosted, until

KINDS = ["unary", "into", "out", "both"]


class Witness:
    """Handlers that wait for ever in every way there is, and what became of them."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended: list[str] = []
        """For each handler that ended: `cancelled`, `closed` (a generator in its yield), or `end of requests`.

        The last happens with grpcio only: there a handler that waits for a request cannot tell a caller that is gone
        from one that has sent all.
        """
        self.called_back: list[Any] = []
        self.contexts: list[Any] = []

    def _meet(self, context: Any) -> None:
        context.add_done_callback(self.called_back.append)
        self.contexts.append(context)

    def _begin(self, context: Any) -> None:
        self._meet(context)
        self.begun.set()

    async def _wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise

    async def unary(self, _request: bytes, context: Any) -> bytes:
        self._begin(context)
        await self._wait()
        return b"never"

    async def into(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        """Waits for a request that does not come."""
        self._begin(context)
        try:
            whole = b"".join([request async for request in requests])
            self.ended.append("end of requests")
            return whole
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise

    async def out(self, _request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Answers until nobody takes it."""
        self._begin(context)
        try:
            while True:
                yield b"a" * 1024
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        except GeneratorExit:
            self.ended.append("closed")
            raise

    async def both(self, _requests: Any, context: Any) -> None:
        """Waits in a read, after an answer.

        Only then has it begun: grpcio's write of an answer fails, and says nothing, where the caller goes in between.
        """
        self._meet(context)
        try:
            await context.write(b"hello")
            self.begun.set()
            await context.read()
            self.ended.append("end of requests")
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise

    async def judge(self, transport: str) -> None:
        """Waits until the only call's handler and callback are through; a handler must know that it was cut off."""
        await until(lambda: len(self.ended) == 1 and len(self.called_back) == 1)
        assert self.ended[0] in ("cancelled", "closed") or transport == "grpcio"

    @property
    def behaviors(self) -> dict[str, Any]:
        return {"unary": self.unary, "into": self.into, "out": self.out, "both": self.both}


def begin(server: Hosted, kind: str, **options: Any) -> Any:
    """A call of a witness that goes on for ever."""
    return server.own(kind)(b"", **options) if kind in ("unary", "out") else server.own(kind)(**options)
