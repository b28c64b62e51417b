"""Reading messages of the stores: one by its place, many by time; and how they go into an answer."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from tandemmq.admin.errors import BadAdminRequest, CallRefused
from tandemmq.admin.nodes import KnownNode
from tandemmq.admin.v1 import admin_pb2
from tandemmq.store.v1 import message_pb2, store_pb2

Answer = TypeVar("Answer")

ANSWER_BYTES = 4 << 20
"""An answer is full then: whoever wants more asks again. A gRPC message has at most 8 MiB (grpcMaxMessageSize)."""

_CHUNK = 32
"""Messages a pull."""

_CHUNK_BYTES = 256 << 10

_AT_ONCE = 16
"""Queues that are asked at the same time."""

_NOT_THERE = frozenset({"NOT_FOUND", "OUT_OF_RANGE"})

Reader = tuple[str, KnownNode]
"""A broker, and the node of it that is read."""


class QueueSpan(NamedTuple):
    """A stretch of a queue: offsets begin to end, the end not among them."""

    broker: str
    node: KnownNode
    queue_id: int
    begin: int
    end: int


async def ask_each(
    readers: Iterable[Reader], ask: Callable[[str, KnownNode], Awaitable[Answer]]
) -> list[tuple[str, KnownNode, Answer]]:
    """What every broker answers; those that know nothing of it are left out.

    Raises:
        CallRefused: all of them know nothing of it. ServiceAway: one does not answer: it could have been there.
    """
    readers = list(readers)
    outcomes = await asyncio.gather(*(ask(broker, node) for broker, node in readers), return_exceptions=True)
    found, missing = [], []
    for (broker, node), outcome in zip(readers, outcomes, strict=True):
        if isinstance(outcome, CallRefused) and outcome.code in _NOT_THERE:
            missing.append(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found.append((broker, node, outcome))
    if missing and not found:
        raise missing[0]
    return found


def found_message(broker: str, message: message_pb2.StoredMessage, *, with_body: bool) -> admin_pb2.FoundMessage:
    """The message as admin gives it; takes the body out of `message` where it is not wanted."""
    size = len(message.body)
    if not with_body:
        message.ClearField("body")
    return admin_pb2.FoundMessage(broker=broker, message=message, body_bytes=size)


async def read_place(node: KnownNode, topic: str, queue_id: int, offset: int) -> message_pb2.StoredMessage | None:
    """The message at a place, None if there is none. Raises AdminError."""
    request = store_pb2.PullRequest(
        topic=topic, queue_id=queue_id, offset=offset, max_messages=1, form=message_pb2.DECODED
    )
    answer = await node.ask("store", node.store.Pull(request))
    found = next(iter(answer.messages), None)
    return found if found is not None and found.queue_offset == offset else None


async def spans_since(
    readers: Iterable[Reader], topic: str, begin_ms: int, queue_id: int | None = None
) -> list[QueueSpan]:
    """What the queues of a topic hold from a time on. Raises AdminError."""
    request = store_pb2.GetOffsetsRequest(topic=topic, queue_id=queue_id, timestamp=begin_ms)

    async def ask(_broker: str, node: KnownNode) -> store_pb2.GetOffsetsResponse:
        return await node.ask("store", node.store.GetOffsets(request))

    return [
        QueueSpan(broker, node, queue.queue_id, queue.offset_at_time, queue.max_offset)
        for broker, node, answer in await ask_each(readers, ask)
        for queue in answer.queues
        if queue.offset_at_time < queue.max_offset
    ]


async def read_span(topic: str, span: QueueSpan) -> AsyncGenerator[message_pb2.StoredMessage, None]:
    """The messages of a stretch; parts of it that cannot be read are passed over. Raises AdminError."""
    offset = span.begin
    while offset < span.end:
        request = store_pb2.PullRequest(
            topic=topic,
            queue_id=span.queue_id,
            offset=offset,
            max_messages=min(_CHUNK, span.end - offset),
            max_bytes=_CHUNK_BYTES,
            form=message_pb2.DECODED,
        )
        answer = await span.node.ask("store", span.node.store.Pull(request))
        for message in answer.messages:
            yield message
        if answer.next_begin_offset <= offset:  # the queue ends here by now
            return
        offset = answer.next_begin_offset


async def merge_by_time(
    topic: str, spans: Iterable[QueueSpan], end_ms: int
) -> AsyncGenerator[tuple[str, message_pb2.StoredMessage], None]:
    """(broker, message) of all stretches by store time, up to `end_ms` (0: no bound). Raises AdminError."""
    sources = [(span.broker, read_span(topic, span)) for span in spans]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def step(number: int) -> tuple[int, int, int, message_pb2.StoredMessage] | None:
        async with gate:
            message = await anext(sources[number][1], None)
        if message is None or 0 < end_ms < message.store_timestamp:
            return None
        return message.store_timestamp, message.physical_offset, number, message

    try:
        # Equal times of two brokers: the number decides, messages are never compared.
        heads = [head for head in await asyncio.gather(*map(step, range(len(sources)))) if head is not None]
        heapq.heapify(heads)
        while heads:
            _, _, number, message = heads[0]
            yield sources[number][0], message
            following = await step(number)
            if following is None:
                heapq.heappop(heads)
            else:
                heapq.heapreplace(heads, following)
    finally:
        for _, source in sources:
            await source.aclose()


async def gather_page(
    messages: AsyncGenerator[tuple[str, message_pb2.StoredMessage], None], limit: int, *, with_bodies: bool
) -> admin_pb2.FindMessagesResponse:
    """As many of them as `limit` and the size of an answer allow; says if there are more. Raises AdminError."""
    page, size = admin_pb2.FindMessagesResponse(), 0
    async with aclosing(messages):
        async for broker, message in messages:
            one = found_message(broker, message, with_body=with_bodies)
            size += one.ByteSize()
            if len(page.messages) >= limit or (page.messages and size > ANSWER_BYTES):
                page.more = True
                break
            page.messages.append(one)
    return page


def checked_limit(given: int, default: int, most: int) -> int:
    """A number of messages that was asked for. Raises BadAdminRequest."""
    if not 0 <= given <= most:
        raise BadAdminRequest(f"limit {given}: 0 (for {default}) to {most}")
    return given or default
