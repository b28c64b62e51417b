"""Reading messages of the stores: one by its place, many by time; and how they go into an answer."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import BadAdminRequest, CallRefused
from tandemmq.admin.messages.message_filter import MessageFilter
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.slices import Slices
from tandemmq.store.v1 import message_pb2, store_pb2

Answer = TypeVar("Answer")
Question = TypeVar("Question")

ANSWER_BYTES = 4 << 20
"""An answer is full then: whoever wants more asks again. A gRPC message has at most 8 MiB (grpcMaxMessageSize)."""

_CHUNK = 32
"""Messages a pull."""

_CHUNK_BYTES = 256 << 10

_FIRST_CHUNK = 4
"""Messages of a pull backwards, until it is known how large they are."""

MOST_READ, MOST_READ_BYTES = 5_000, 64 << 20
"""Messages, and bytes of bodies, that one call reads to find those that fit a filter; so many bytes by key always."""

_LARGE_BODY = 64 << 10

_QUERY_MOST, _FEWEST = 64, 3
"""Messages a query by key: maxMsgsNumBatch; half of so few would not get on."""

_AT_ONCE = 16
"""Queues that are asked at the same time."""

_END_OF_TIME = (1 << 63) - 1

NOT_THERE = frozenset({"NOT_FOUND", "OUT_OF_RANGE"})
"""Codes of a store that knows nothing of what was asked for."""

Reader = tuple[str, KnownNode]
"""A broker, and the node of it that is read."""


class QueueSpan(NamedTuple):
    """A stretch of a queue: offsets begin to end, the end not among them."""

    broker: str
    node: KnownNode
    queue_id: int
    begin: int
    end: int


class Sieve(NamedTuple):
    """Which messages are wanted; others have the loop while it is found out."""

    filter: MessageFilter
    slices: Slices

    async def fits(self, message: message_pb2.StoredMessage) -> bool:
        """Whether a message is wanted. Large bodies are looked at by a thread."""
        if len(message.body) > _LARGE_BODY:
            return await asyncio.to_thread(self.filter.fits, message)
        fits = self.filter.fits(message)
        await self.slices.pause()
        return fits


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
        if isinstance(outcome, CallRefused) and outcome.code in NOT_THERE:
            missing.append(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found.append((broker, node, outcome))
    if missing and not found:
        raise missing[0]
    return found


async def ask_all(
    questions: Iterable[Question], ask: Callable[[Question], Awaitable[Answer]], most: int
) -> list[Answer]:
    """What is answered to each, in their order; so many are asked at the same time.

    Raises what the first to fail raised; the others are not asked any more.
    """
    gate = asyncio.Semaphore(most)

    async def one(question: Question) -> Answer:
        async with gate:
            return await ask(question)

    tasks = [asyncio.ensure_future(one(question)) for question in questions]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


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


async def query_by_key(
    node: KnownNode, request: admin_pb2.FindMessagesRequest, most: int
) -> tuple[list[message_pb2.StoredMessage], bool]:
    """Messages by key of one store, newest first, and whether there may be more: beyond `most`, or a query's reach."""
    asked = store_pb2.QueryMessageRequest(
        topic=request.topic,
        begin_timestamp=request.begin_ms,
        end_timestamp=request.end_ms,
        form=message_pb2.DECODED,
    )
    if request.WhichOneof("by") == "key":
        asked.key = request.key
    else:
        asked.unique_key = request.unique_key
    found: dict[int, message_pb2.StoredMessage] = {}
    asked.max_messages, read = min(most, _QUERY_MOST), 0
    while True:
        try:
            answer = await node.ask("store", node.store.QueryMessage(asked))
        except CallRefused as error:
            if error.code != "RESOURCE_EXHAUSTED" or asked.max_messages <= _FEWEST:
                raise
            asked.max_messages //= 2  # so many large ones are more than an answer holds
            continue
        new = {one.physical_offset: one for one in answer.messages if one.physical_offset not in found}
        found |= new
        read += sum(len(one.body) for one in new.values())
        if len(found) >= most or read >= MOST_READ_BYTES:
            return list(found.values()), True
        if not new:  # the end; or a whole answer of one millisecond, which hides what is after it
            return list(found.values()), answer.count >= asked.max_messages
        asked.end_timestamp = min(one.store_timestamp for one in new.values())


async def spans_between(
    readers: Iterable[Reader], topic: str, begin_ms: int, end_ms: int = 0, queue_id: int | None = None
) -> list[QueueSpan]:
    """What the queues of a topic hold from a time on, up to another one (0: to their ends). Raises AdminError."""
    is_bounded = 0 < end_ms < _END_OF_TIME

    async def ends(node: KnownNode, at_ms: int) -> list[store_pb2.QueueOffsets]:
        request = store_pb2.GetOffsetsRequest(topic=topic, queue_id=queue_id, timestamp=at_ms)
        return list((await node.ask("store", node.store.GetOffsets(request))).queues)

    async def ask(broker: str, node: KnownNode) -> list[QueueSpan]:
        begins = await ends(node, begin_ms)
        bounds = {one.queue_id: one.offset_at_time for one in await ends(node, end_ms + 1)} if is_bounded else {}
        return [
            QueueSpan(broker, node, one.queue_id, one.offset_at_time, bounds.get(one.queue_id, one.max_offset))
            for one in begins
        ]

    return [span for _, _, spans in await ask_each(readers, ask) for span in spans if span.begin < span.end]


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
            if message.queue_offset >= span.end:  # in place of some that are lost
                return
            yield message
        if answer.next_begin_offset <= offset:  # the queue ends here by now
            return
        offset = answer.next_begin_offset


async def read_span_backwards(topic: str, span: QueueSpan) -> AsyncGenerator[message_pb2.StoredMessage, None]:
    """The same, the last message first."""
    end, wanted = span.end, _FIRST_CHUNK
    while end > span.begin:
        begin = max(span.begin, end - wanted)
        messages = [message async for message in read_span(topic, span._replace(begin=begin, end=end))]
        size = sum(len(message.body) for message in messages)
        while messages:
            yield messages.pop()
        end = begin
        wanted = max(1, wanted // 2) if size > _CHUNK_BYTES else min(_CHUNK, wanted * 2)


async def merge_by_time(
    topic: str, spans: Iterable[QueueSpan], *, newest_first: bool = False
) -> AsyncGenerator[tuple[str, message_pb2.StoredMessage], None]:
    """(broker, message) of all stretches by store time. Raises AdminError."""
    read, sign = (read_span_backwards, -1) if newest_first else (read_span, 1)
    sources = [(span.broker, read(topic, span)) for span in spans]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def step(number: int) -> tuple[int, int, int, message_pb2.StoredMessage] | None:
        async with gate:
            message = await anext(sources[number][1], None)
        if message is None:
            return None
        return sign * message.store_timestamp, sign * message.physical_offset, number, message

    try:
        # Equal times of two brokers: the number decides, messages are never compared.
        first = await asyncio.gather(*map(step, range(len(sources))), return_exceptions=True)  # to the end of each
        heads = [head for head in map(_answered, first) if head is not None]
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


def _answered(outcome: Answer | BaseException) -> Answer:
    """What came of a call. Raises what it raised."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def gather_page(
    messages: AsyncGenerator[tuple[str, message_pb2.StoredMessage], None],
    limit: int,
    *,
    with_bodies: bool,
    wanted: Sieve | None = None,
    at_hand: bool = False,
) -> admin_pb2.FindMessagesResponse:
    """As many of them as `limit` and the size of an answer allow; says if there are more. Raises AdminError.

    With a filter it ends, too, when much was read in vain: between two milliseconds, so that nothing is told twice. Not
    where the messages are `at_hand`, read already.
    """
    page, size, read, last_ms = admin_pb2.FindMessagesResponse(), 0, 0, 0
    async with aclosing(messages):
        async for broker, message in messages:
            if wanted is not None:
                spent = page.looked_at >= MOST_READ or read >= MOST_READ_BYTES
                if spent and not at_hand and message.store_timestamp != last_ms:
                    page.more, page.read_to_ms = True, message.store_timestamp
                    break
                last_ms = message.store_timestamp
                read += len(message.body)
            page.looked_at += 1
            if wanted is not None and not await wanted.fits(message):
                continue
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
