"""PullStream: messages of a queue for as long as the client gives credit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Protocol

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.broker.pulled import NOTHING_YET, Pulled, PullStatus, Wanted
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.fronts.native import answers, requests
from tandemmq.store.fronts.native.limits import ServiceLimits
from tandemmq.store.v1 import store_pb2

_UNLIMITED = 1 << 62


class Parts(Protocol):
    """What a stream needs of the servicer."""

    limits: ServiceLimits

    @property
    def broker(self) -> Broker:
        """What answers."""
        ...


class PullStream:
    """One call. A task takes credit; the generator pulls, waits and answers."""

    def __init__(self, parts: Parts, room: Room) -> None:
        """`room` is awaited before each look at the queue with the most bytes that it may give; it may raise."""
        self._room = room
        self._broker = parts.broker
        self._limits = parts.limits
        self._messages = self._bytes = 0
        self._more_credit = asyncio.Event()
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(
        self, stream: AsyncIterator[store_pb2.PullStreamRequest]
    ) -> AsyncGenerator[store_pb2.PullResponse, None]:
        """The answers. Raises BadRequest for a stream that does not begin with a subscription, and as `Puller.pull`."""
        first = await anext(stream, None)
        if first is None or first.WhichOneof("request") != "subscribe":
            raise BadRequest("The first request of a PullStream must be a subscription.")
        self._begin_credit(first)
        request = first.subscribe
        wanted = requests.wanted(request, self._limits.pull)
        reader = asyncio.create_task(self._take_credit(stream), name="pull stream")
        try:
            async with aclosing(self._pull(wanted)) as parts:
                with suppress(StopAsyncIteration):
                    while True:  # no name for what was pulled: it is sent while this waits
                        yield self._answered(request, await anext(parts))
        finally:
            reader.cancel()
            self._closed.cancel()

    def _answered(self, request: store_pb2.PullRequest, pulled: Pulled) -> store_pb2.PullResponse:
        return answers.pull_response(pulled, request.form, self._broker.advice(pulled))

    async def _pull(self, wanted: Wanted) -> AsyncGenerator[Pulled, None]:
        """What the queue has, and as few empty answers as will do: when the offset was corrected, or moved on."""
        told = wanted.offset
        while await self._credit():
            now = replace(
                wanted,
                max_messages=min(wanted.max_messages, self._messages),
                max_bytes=min(wanted.max_bytes, self._bytes),
            )
            pulled = await self._broker.pull(now, room=self._room)
            if pulled.status is PullStatus.FOUND:
                self._messages -= pulled.count
                self._bytes -= len(pulled.records)
            elif pulled.status is PullStatus.NO_MATCHED_MESSAGE:
                wanted = replace(wanted, offset=pulled.next_offset)
                await asyncio.sleep(0)  # a queue full of other tags must not hold up everybody else
                continue
            elif pulled.status in NOTHING_YET:
                if pulled.next_offset != told:
                    yield replace(pulled, status=PullStatus.NO_NEW_MESSAGE)
                    told = pulled.next_offset
                if not await self._news(wanted, pulled.next_offset):
                    return
                wanted = replace(wanted, offset=pulled.next_offset)
                continue
            status, told, given = pulled.status, pulled.next_offset, [pulled]
            del pulled
            yield given.pop()
            if status is PullStatus.OFFSET_TOO_SMALL and told == wanted.offset:
                return  # a slave that does not have it, and sends the consumer to its master
            wanted = replace(wanted, offset=told)

    async def _news(self, wanted: Wanted, offset: int) -> bool:
        """Wait for a message at `offset`; False if the client closes its side before that."""
        if await self._broker.polls.wait(wanted.topic, wanted.queue_id, offset, until=self._closed):
            return True
        self._closed.result()
        return False

    # -- credit -----------------------------------------------------------------------------------------------------

    def _begin_credit(self, first: store_pb2.PullStreamRequest) -> None:
        given = first.initial_credit
        check_not_negative("credit.messages", given.messages)
        check_not_negative("credit.bytes", given.bytes)
        self._messages = given.messages or _UNLIMITED
        self._bytes = given.bytes or _UNLIMITED

    async def _credit(self) -> bool:
        """Wait until there is credit; False if there will never be any."""
        while self._messages <= 0 or self._bytes <= 0:
            if self._closed.done():
                self._closed.result()
                return False
            self._more_credit.clear()
            await self._more_credit.wait()
        if self._closed.done():
            self._closed.result()
        return True

    async def _take_credit(self, stream: AsyncIterator[store_pb2.PullStreamRequest]) -> None:
        try:
            async for request in stream:
                if request.WhichOneof("request") != "credit":
                    raise BadRequest("Only the first request of a PullStream may be a subscription.")
                check_not_negative("credit.messages", request.credit.messages)
                check_not_negative("credit.bytes", request.credit.bytes)
                self._messages += request.credit.messages
                self._bytes += request.credit.bytes
                self._more_credit.set()
        except TandemError as error:
            self._close(error)
        else:
            self._close(None)

    def _close(self, error: TandemError | None) -> None:
        """The client sends no more: what there is still goes out, as far as credit lasts. An error ends the call."""
        if not self._closed.done():
            if error is None:
                self._closed.set_result(None)
            else:
                self._closed.set_exception(error)
        self._more_credit.set()
