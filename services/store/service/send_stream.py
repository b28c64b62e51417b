"""SendStream: requests are appended as they arrive, while earlier ones wait for the disk; answers go out in order."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.send import SentAll
from tandemmq.store.format.host import Host
from tandemmq.store.service import answers
from tandemmq.store.v1 import store_pb2


class Appender(Protocol):
    """What a stream needs of the servicer."""

    def append(self, request: store_pb2.SendBatchRequest, peer: Host) -> SentAll:
        """Append all of a request."""
        ...

    async def receipts(self, request: store_pb2.SendBatchRequest, sent: SentAll) -> store_pb2.SendBatchResponse:
        """Wait for the disk where it must be, and answer."""
        ...


_Appended = tuple[store_pb2.SendBatchRequest, SentAll] | TandemError
_Event = _Appended | Exception | None
"""An appended request, a refused one, a failure of the stream itself, or its end."""


class SendStream:
    """One call. A task reads and appends; the generator waits for the disk and answers."""

    def __init__(self, appender: Appender, window: int) -> None:
        """`window`: requests that may be unanswered before reading stops."""
        self._appender = appender
        self._events: asyncio.Queue[_Event] = asyncio.Queue(window)

    async def run(
        self, requests: AsyncIterator[store_pb2.SendBatchRequest], peer: Host
    ) -> AsyncIterator[store_pb2.SendStreamResponse]:
        """The answers, one for each request."""
        reader = asyncio.create_task(self._read(requests, peer), name="send stream")
        sequence = 0
        try:
            while (event := await self._events.get()) is not None:
                yield await self._answer(sequence, event)
                sequence += 1
        finally:
            reader.cancel()

    async def _read(self, requests: AsyncIterator[store_pb2.SendBatchRequest], peer: Host) -> None:
        try:
            async for request in requests:
                await self._events.put(self._append(request, peer))
        except Exception as error:  # noqa: BLE001 - it is raised again where the call can fail with it
            await self._events.put(error)
        else:
            await self._events.put(None)

    def _append(self, request: store_pb2.SendBatchRequest, peer: Host) -> _Appended:
        try:
            return request, self._appender.append(request, peer)
        except TandemError as refused:
            return refused

    async def _answer(self, sequence: int, event: _Appended | Exception) -> store_pb2.SendStreamResponse:
        if isinstance(event, TandemError):
            return store_pb2.SendStreamResponse(sequence=sequence, refusal=answers.refusal(event))
        if isinstance(event, Exception):
            raise event
        return store_pb2.SendStreamResponse(sequence=sequence, receipts=await self._appender.receipts(*event))
