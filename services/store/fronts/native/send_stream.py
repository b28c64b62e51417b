"""SendStream: requests are appended as they arrive, while earlier ones wait for the disk; answers go out in order.

Where nothing waits, neither earlier requests nor this one, the core's answer leaves in the turn of the event loop that
brought the request (`answer_at_once`), without a task.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import encoded_field
from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import SentAll
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.native import answers
from tandemmq.store.fronts.native.direct_send import less_safe_batch
from tandemmq.store.v1 import store_pb2

PATH = "/tandemmq.store.v1.Store/SendStream"

Request = store_pb2.SendBatchRequest | bytes
"""As bytes where there is a core to take them."""


class StoredBatch(NamedTuple):
    """A request that the core has appended."""

    answer: bytes
    """A SendBatchResponse with PUT_OK."""
    end_offset: int
    wait: bool
    """Whether it waits for disk and replicas, where sends do."""


class Appender(Protocol):
    """What a stream needs of the servicer."""

    @property
    def waits(self) -> bool:
        """Whether sends wait for the disk or for replicas, if they do not say otherwise."""
        ...

    def store_at_once(self, request: bytes, peer: Host) -> StoredBatch | None:
        """Append all of a request by the core, if it takes it."""
        ...

    async def status(self, stored: StoredBatch) -> PutStatus:
        """Wait for the disk where it must be."""
        ...

    async def append(self, request: store_pb2.SendBatchRequest, peer: Host) -> SentAll:
        """Append all of a request."""
        ...

    async def receipts(self, sent: SentAll) -> store_pb2.SendBatchResponse:
        """Wait for the disk where it must be, and answer."""
        ...


class _Failed(NamedTuple):
    """The stream cannot go on."""

    error: Exception


_Appended = SentAll | StoredBatch | TandemError
_Event = _Appended | _Failed | None
"""An appended request, a refused one, a failure of the stream itself, or its end."""


class SendStream:
    """One call. A task reads and appends; the generator waits for the disk and answers."""

    _unanswered = 0
    """Requests that were read and are not answered: no later one may be before them."""
    _sequence = 0

    def __init__(self, appender: Appender, window: int, append: answers.Append) -> None:
        """`window`: requests that may be unanswered before reading stops. `append` is that of its call."""
        self._append_field = append
        self._appender = appender
        self._events: asyncio.Queue[_Event] = asyncio.Queue()
        self._room = asyncio.Semaphore(window)
        self._reader: asyncio.Task[None] | None = None
        self._appending = False
        self._stopping = False

    def stop(self) -> None:
        """Read no more; what was appended is still answered, then the call ends with StoreStopping."""
        self._stopping = True
        if self._reader is not None and not self._appending:  # else it ends when it has appended
            self._reader.cancel()

    def answer_at_once(self, request: bytes, peer: Host) -> bytes | None:
        """The answer to a request that need not be read; None: it is to be, and nothing is stored."""
        if self._unanswered or self._stopping or self._appender.waits:
            return None
        stored = self._appender.store_at_once(request, peer)
        if stored is None:
            return None
        receipts = encoded_field(store_pb2.SendStreamResponse.RECEIPTS_FIELD_NUMBER, stored.answer)
        answer = store_pb2.SendStreamResponse(sequence=self._sequence).SerializeToString() + receipts
        self._sequence += 1
        return answer

    async def run(
        self, requests: AsyncIterator[Request], peer: Host
    ) -> AsyncGenerator[store_pb2.SendStreamResponse, None]:
        """The answers, one for each request."""
        self._reader = asyncio.create_task(self._read(requests, peer), name="send stream")
        try:
            while (event := await self._events.get()) is not None:
                self._room.release()
                answer = await self._answer(self._sequence, event)
                self._sequence += 1
                yield answer
                self._unanswered -= 1
        finally:
            self._reader.cancel()

    async def _read(self, requests: AsyncIterator[Request], peer: Host) -> None:
        try:
            async for request in requests:
                await self._take(request, peer)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            self._events.put_nowait(_Failed(_stopped()))
        except Exception as error:  # noqa: BLE001 - it is raised again where the call can fail with it
            self._unanswered += 1  # it may be of a request that could not be read: a later one would get its sequence
            self._events.put_nowait(_Failed(error))
        else:
            self._events.put_nowait(None)

    async def _take(self, request: Request, peer: Host) -> None:
        """Append a request when there is room for its answer: from then on nothing keeps it from being answered."""
        self._unanswered += 1
        await self._room.acquire()
        self._appending = True
        try:
            self._events.put_nowait(await self._append(request, peer))
        finally:
            self._appending = False
        if self._stopping:
            raise _stopped()

    async def _append(self, request: Request, peer: Host) -> _Appended:
        if isinstance(request, bytes):
            stored = self._appender.store_at_once(request, peer)
            if stored is not None:
                return stored
            request = store_pb2.SendBatchRequest.FromString(request)
        try:
            return await self._appender.append(request, peer)
        except TandemError as refused:
            return refused

    async def _answer(self, sequence: int, event: _Appended | _Failed) -> store_pb2.SendStreamResponse:
        if isinstance(event, TandemError):
            return store_pb2.SendStreamResponse(sequence=sequence, refusal=answers.refusal(event))
        if isinstance(event, _Failed):
            raise event.error
        if isinstance(event, StoredBatch):
            return await self._answer_stored(sequence, event)
        return store_pb2.SendStreamResponse(sequence=sequence, receipts=await self._appender.receipts(event))

    async def _answer_stored(self, sequence: int, stored: StoredBatch) -> store_pb2.SendStreamResponse:
        """The receipts follow the answer as the field that they are: nothing is made of their bytes."""
        answer, status = stored.answer, await self._appender.status(stored)
        if status is not PutStatus.PUT_OK:
            answer, _ = less_safe_batch(answer, status)
        response = store_pb2.SendStreamResponse(sequence=sequence)
        if not self._append_field(store_pb2.SendStreamResponse.RECEIPTS_FIELD_NUMBER, answer):
            response.receipts.ParseFromString(answer)
        return response


def _stopped() -> StoreStopping:
    return StoreStopping("The store stops.", remedy="Send again when it is back.")
