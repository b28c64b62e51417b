"""A worker's message where program or store say what nobody expects: it is not kept from others for ever."""

import asyncio
from typing import Any, cast

import pytest

from tandemmq.client import DeadLetter, MessageContent, Refused, Retry
from tandemmq.client.aio_consumer import Consumer, Message
from tandemmq.client.aio_worker import BackOff, Handler, _Crew, _Tries
from tandemmq.client.cluster import Cluster
from tandemmq.client.holding import Holding
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.format.properties import SHARDING_KEY
from tandemmq.store.format.record import Record
from tests.manual_timers import ManualTimers


class Told:
    """A cluster that notes how long messages are to wait, and refuses all else."""

    def __init__(self) -> None:
        self.waits: list[int] = []
        self.timers = ManualTimers()

    async def call(self, which: object, request: Any, answer_type: type[Any], **_options: object) -> Any:
        if answer_type is not delivery_pb2.ChangeInvisibleResponse:
            raise Refused("not you", "PERMISSION_DENIED")
        self.waits += [one.invisible_ms for one in request.changes]
        return delivery_pb2.ChangeInvisibleResponse(outcomes=[delivery_pb2.Outcome() for _ in request.changes])


def crew_of(handler: Handler, back_off: BackOff, told: Any, order_key: str = "") -> tuple[_Crew, Holding, Message]:
    consumer = Consumer("a:1", group="g", topic="t")
    consumer._cluster = told
    holding = Holding(cast(Cluster, told), "g", "t", 30.0)
    record = cast(Record, RecordOfTest(order_key))
    message = Message(MessageContent("t", record, 1), holding.take("h", 30_000), holding, consumer._ready)
    return _Crew(handler, 1, back_off, _Tries(consumer, None), consumer), holding, message


class RecordOfTest:
    """As much of a record as a worker looks at."""

    unique_key = "k"

    def __init__(self, order_key: str) -> None:
        self.properties = {SHARDING_KEY: order_key} if order_key else {}


def wrong_back_off(number: int) -> float:
    raise KeyError(number)


@pytest.mark.parametrize(
    ("after", "back_off"), [(-1.0, lambda number: 0), (None, lambda number: -1), (None, wrong_back_off)]
)
async def test_a_wait_that_is_none(after: float | None, back_off: BackOff) -> None:
    async def handle(message: Message) -> None:
        raise Retry(after)

    told = Told()
    crew, holding, message = crew_of(handle, back_off, told)
    await crew.take(message)
    await crew.finish(10)
    assert (told.waits, len(holding), crew.counts.retried) == ([1_000], 0, 1)


@pytest.mark.parametrize("end", [None, DeadLetter("hopeless")])
async def test_an_end_that_the_store_refuses(end: Exception | None) -> None:
    async def handle(message: Message) -> None:
        if end is not None:
            raise end

    crew, holding, message = crew_of(handle, lambda number: 0, Told())
    await crew.take(message)
    await crew.finish(10)
    assert len(holding) == 0, "it is renewed, and comes never again while this worker lives"


async def test_who_is_not_ready_within_the_grace_is_cancelled() -> None:
    begun, told = asyncio.Event(), Told()

    async def handle(message: Message) -> None:
        begun.set()
        await asyncio.Event().wait()

    crew, holding, message = crew_of(handle, lambda number: 0, told)
    await crew.take(message)
    await begun.wait()
    finishing = asyncio.create_task(crew.finish(10))
    await told.timers.advance(9)
    assert not finishing.done()
    await told.timers.advance(1)
    await finishing
    assert (crew.counts.done, len(holding)) == (0, 1), "it comes again when its time is over"


async def test_a_message_with_an_order_key_is_tried_again_after_its_wait() -> None:
    tries, told = 0, Told()

    async def handle(message: Message) -> None:
        nonlocal tries
        tries += 1
        raise Retry(5)

    crew, _, message = crew_of(handle, lambda number: 0, told, "key")
    await crew.take(message)
    await told.timers.advance(4)
    assert tries == 1
    await told.timers.advance(1)
    assert tries == 2
    await crew.finish(10)


async def test_what_is_held_is_renewed_before_its_time_is_over() -> None:
    told = Told()
    holding = Holding(cast(Cluster, told), "g", "t", 30.0)
    held = holding.take("h", 30_000)
    keeping = asyncio.create_task(holding.keep())
    begun = told.timers.time()
    await told.timers.advance(15)
    assert told.waits == []
    await told.timers.advance(7.5)
    assert (told.waits, held.until - begun) == ([30_000], 22.5 + 30)
    keeping.cancel()
