"""ReceiveStream: messages for a group as long as the client gives credit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.delivery.port import Batch, Connected, DeliveryPort, Wish
from tandemmq.store.fronts.native import delivery_answers, delivery_requests
from tandemmq.store.fronts.native.credit import StreamCredit
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.native.requests import MOST_WAIT_MS


class ReceiveStream:
    """One call. A task takes credit; the generator receives and answers."""

    def __init__(self, delivery: DeliveryPort, limits: PullLimits, room: Room, connected: Connected) -> None:
        """`room` is awaited with the most bytes that an answer may have; it may raise. `connected`: of the call."""
        self._delivery = delivery
        self._limits = limits
        self._room = room
        self._connected = connected

    async def run(
        self, stream: AsyncIterator[delivery_pb2.ReceiveStreamRequest]
    ) -> AsyncGenerator[delivery_pb2.ReceiveResponse, None]:
        """The answers. Raises BadRequest for a stream that does not begin with a subscription, and as `receive`."""
        first = await anext(stream, None)
        if first is None or first.WhichOneof("request") != "subscribe":
            raise BadRequest("The first request of a ReceiveStream must be a subscription.")
        wish = replace(delivery_requests.wish(first.subscribe, self._limits), attempt_id="")
        credit = StreamCredit(first.initial_credit)
        reader = asyncio.create_task(credit.take(stream), name="receive stream")
        try:
            while await credit.wait():
                batch = await self._receive(wish, credit)
                if batch.messages:
                    credit.spend(len(batch.messages), sum(len(one.record) for one in batch.messages))
                    try:
                        yield delivery_answers.received(batch, first.subscribe.form)
                    except BaseException:
                        batch.release()
                        raise
                batch.sent(self._connected)
                if not batch.messages and credit.closed.done():
                    credit.closed.result()  # raises where the client broke the rules
                    return
        finally:
            reader.cancel()
            credit.closed.cancel()

    async def _receive(self, wish: Wish, credit: StreamCredit) -> Batch:
        """Messages, when there are some; none where the client sends no more and there are none now."""
        now = replace(wish, most=min(wish.most, credit.messages), most_bytes=min(wish.most_bytes, credit.bytes))
        if credit.closed.done():
            return await self._delivery.receive(replace(now, wait_ms=0), self._room)
        receiving = asyncio.ensure_future(
            self._delivery.receive(replace(now, wait_ms=MOST_WAIT_MS), self._room),
        )
        try:
            await asyncio.wait((receiving, credit.closed), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _call_off(receiving)
            raise
        if receiving.done():
            return receiving.result()
        await _call_off(receiving)
        return await self._receive(wish, credit)


async def _call_off(receiving: asyncio.Future[Batch]) -> None:
    """Wait no longer; what it got meanwhile is given back."""
    receiving.cancel()
    await asyncio.wait((receiving,))
    if not receiving.cancelled() and receiving.exception() is None:
        receiving.result().release()
