"""PullStream: messages of a queue for as long as the client gives credit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Protocol

from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.broker.pulled import NOTHING_YET, PullAnswer, PullStatus, Wanted
from tandemmq.store.fronts.native import answers, requests
from tandemmq.store.fronts.native.credit import StreamCredit
from tandemmq.store.fronts.native.limits import ServiceLimits
from tandemmq.store.v1 import store_pb2


class PullParts(Protocol):
    """What a stream needs of the servicer."""

    limits: ServiceLimits

    @property
    def broker(self) -> Broker:
        """What answers."""
        ...


class PullStream:
    """One call. A task takes credit; the generator pulls, waits and answers."""

    def __init__(self, parts: PullParts, room: Room, append: answers.Append) -> None:
        """`room` is awaited before each look at the queue with the most bytes that it may give; it may raise.

        `append`: of the call, see `pull_response`.
        """
        self._room = room
        self._append = append
        self._broker = parts.broker
        self._limits = parts.limits

    async def run(
        self, stream: AsyncIterator[store_pb2.PullStreamRequest]
    ) -> AsyncGenerator[store_pb2.PullResponse, None]:
        """The answers. Raises BadRequest for a stream that does not begin with a subscription, and as `Puller.pull`."""
        first = await anext(stream, None)
        if first is None or first.WhichOneof("request") != "subscribe":
            raise BadRequest("The first request of a PullStream must be a subscription.")
        credit = StreamCredit(first.initial_credit)
        request = first.subscribe
        wanted = requests.wanted(request, self._limits.pull)
        reader = asyncio.create_task(credit.take(stream), name="pull stream")
        try:
            async with aclosing(self._pull(wanted, credit)) as parts:
                with suppress(StopAsyncIteration):
                    while True:  # no name for what was pulled: it is sent while this waits
                        yield self._answered(request, await anext(parts))
        finally:
            reader.cancel()
            credit.closed.cancel()

    def _answered(self, request: store_pb2.PullRequest, pulled: PullAnswer) -> store_pb2.PullResponse:
        return answers.pull_response(pulled, request.form, self._broker.advice(pulled), self._append)

    async def _pull(self, wanted: Wanted, credit: StreamCredit) -> AsyncGenerator[PullAnswer, None]:
        """What the queue has, and as few empty answers as will do: when the offset was corrected, or moved on."""
        told = offset = wanted.offset
        while await credit.wait():
            now = Wanted(
                wanted.topic,
                wanted.queue_id,
                offset,
                min(wanted.max_messages, credit.messages),
                min(wanted.max_bytes, credit.bytes),
                wanted.tag_filter,
                wanted.group,
            )
            pulled = await self._broker.pull(now, room=self._room)
            if pulled.status is PullStatus.FOUND:
                credit.spend(pulled.count, len(pulled.records))
            elif pulled.status is PullStatus.NO_MATCHED_MESSAGE:
                offset = pulled.next_offset
                await asyncio.sleep(0)  # a queue full of other tags must not hold up everybody else
                continue
            elif pulled.status in NOTHING_YET:
                if pulled.next_offset != told:
                    yield replace(pulled, status=PullStatus.NO_NEW_MESSAGE)
                    told = pulled.next_offset
                if not await self._news(wanted, pulled.next_offset, credit.closed):
                    return
                offset = pulled.next_offset
                continue
            status, told, given = pulled.status, pulled.next_offset, [pulled]
            del pulled
            yield given.pop()
            if status is PullStatus.OFFSET_TOO_SMALL and told == offset:
                return  # a slave that does not have it, and sends the consumer to its master
            offset = told

    async def _news(self, wanted: Wanted, offset: int, closed: asyncio.Future[None]) -> bool:
        """Wait for a message at `offset`; False if the client closes its side before that."""
        if await self._broker.polls.wait(wanted.topic, wanted.queue_id, offset, until=closed):
            return True
        closed.result()
        return False
