"""How messages of the stores are read: what a stretch is, what several of them are as one, and when a search ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import CallRefused, ServiceAway
from tandemmq.admin.messages import reading
from tandemmq.admin.messages.message_filter import MessageFilter
from tandemmq.admin.messages.reading import (
    QueueSpan,
    Sieve,
    gather_page,
    merge_by_time,
    query_by_key,
    read_span,
    read_span_backwards,
    spans_between,
)
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.slices import Slices
from tandemmq.common.timers import LoopTimers
from tandemmq.store.v1 import message_pb2, store_pb2

TOPIC = "orders"
LARGEST_ANSWER = 1_000
"""Bytes, of a store's answer to a query."""


def message(offset: int, body: bytes = b"x") -> message_pb2.StoredMessage:
    """Stored in the millisecond of its offset."""
    return message_pb2.StoredMessage(
        topic=TOPIC, queue_offset=offset, physical_offset=offset, store_timestamp=1000 + offset, body=body
    )


class Node:
    """A node whose store has one queue, and answers what is asked."""

    def __init__(self, messages: Sequence[message_pb2.StoredMessage] = (), *, away_after: float | None = None) -> None:
        self.messages = messages
        self.store = self
        self._away_after = away_after

    @property
    def known(self) -> KnownNode:
        return cast("KnownNode", self)

    async def ask(self, _service: str, call: Awaitable[Any]) -> Any:
        return await call

    async def Pull(self, request: store_pb2.PullRequest) -> store_pb2.PullResponse:
        """As a store: units whose records are lost are passed over, and do not count among the messages."""
        await asyncio.sleep(0.01 if self._away_after is None else self._away_after)
        if self._away_after is not None:
            raise ServiceAway("store", "one", "one:1", "it is gone")
        found = [one for one in self.messages if one.queue_offset >= request.offset][: request.max_messages]
        return store_pb2.PullResponse(messages=found, next_begin_offset=found[-1].queue_offset + 1 if found else 0)

    async def QueryMessage(self, request: store_pb2.QueryMessageRequest) -> store_pb2.QueryMessageResponse:
        end = request.end_timestamp or 1 << 62
        found = [one for one in reversed(self.messages) if one.store_timestamp <= end][: request.max_messages]
        if sum(len(one.body) for one in found) > LARGEST_ANSWER:
            raise CallRefused("sent message larger than max", "RESOURCE_EXHAUSTED")
        return store_pb2.QueryMessageResponse(messages=found, count=len(found))

    async def GetOffsets(self, request: store_pb2.GetOffsetsRequest) -> store_pb2.GetOffsetsResponse:
        at = sum(one.store_timestamp < request.timestamp for one in self.messages)
        return store_pb2.GetOffsetsResponse(
            queues=[store_pb2.QueueOffsets(queue_id=0, max_offset=len(self.messages), offset_at_time=at)]
        )


def span(node: Node, begin: int, end: int) -> QueueSpan:
    return QueueSpan("alpha", node.known, 0, begin, end)


def sieve(text: str = "", where: str = "") -> Sieve:
    return Sieve(MessageFilter(text, where), Slices(LoopTimers()))


def test_a_stretch_ends_where_it_ends_though_some_of_it_is_lost() -> None:
    node = Node([message(offset) for offset in range(40) if offset not in (3, 30, 37)])

    async def read(way: Callable[[str, QueueSpan], AsyncGenerator[message_pb2.StoredMessage, None]]) -> list[int]:
        return [one.queue_offset async for one in way(TOPIC, span(node, 1, 38))]

    there = [offset for offset in range(1, 38) if offset not in (3, 30, 37)]
    assert asyncio.run(read(read_span)) == there
    assert asyncio.run(read(read_span_backwards)) == there[::-1]


def test_a_store_that_is_away_is_said_to_be_away_though_others_are_slower() -> None:
    nodes = [Node([message(1)]), Node(away_after=0.0), Node([message(2)])]

    async def read() -> None:
        async for _ in merge_by_time(TOPIC, [span(node, 0, 10) for node in nodes]):
            pass

    with pytest.raises(ServiceAway, match="it is gone"):
        asyncio.run(read())


def test_the_end_of_all_times_is_a_time_too() -> None:
    node = Node([message(0), message(1)])
    spans = asyncio.run(spans_between([("alpha", node.known)], TOPIC, 1001, (1 << 63) - 1))
    assert [(one.begin, one.end) for one in spans] == [(1, 2)]


def test_of_a_key_with_more_messages_than_are_read_it_is_said_that_there_may_be_more() -> None:
    node = Node([message(offset) for offset in range(200)])
    request = admin_pb2.FindMessagesRequest(topic=TOPIC, key="k")
    found, more = asyncio.run(query_by_key(node.known, request, 100))
    assert (len(found) >= 100, more) == (True, True)
    found, more = asyncio.run(query_by_key(node.known, request, 1000))
    assert (len(found), more) == (200, False)


def test_large_messages_of_a_key_are_asked_for_a_few_at_a_time_and_not_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node([message(offset, b"x" * 300) for offset in range(100)])
    request = admin_pb2.FindMessagesRequest(topic=TOPIC, key="k")
    found, more = asyncio.run(query_by_key(node.known, request, 1000))
    assert ([one.queue_offset for one in found], more) == (list(range(99, -1, -1)), False)
    monkeypatch.setattr(reading, "MOST_READ_BYTES", 6_000)
    found, more = asyncio.run(query_by_key(node.known, request, 1000))
    assert (20 <= len(found) <= 23, more) == (True, True)


def test_what_is_read_already_is_looked_at_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_READ_BYTES", 50)
    many = [message(offset, b"no" * 10) for offset in range(20)] + [message(20, b"yes")]

    async def page(*, at_hand: bool) -> admin_pb2.FindMessagesResponse:
        async def each() -> AsyncGenerator[tuple[str, message_pb2.StoredMessage], None]:
            for one in many:
                yield "alpha", one

        return await gather_page(each(), 10, with_bodies=True, wanted=sieve("yes"), at_hand=at_hand)

    by_time = asyncio.run(page(at_hand=False))
    assert (len(by_time.messages), by_time.more, by_time.read_to_ms, by_time.looked_at) == (0, True, 1003, 3)
    by_key = asyncio.run(page(at_hand=True))
    assert (len(by_key.messages), by_key.more, by_key.read_to_ms, by_key.looked_at) == (1, False, 0, 21)


def test_others_have_the_loop_while_many_messages_are_looked_at() -> None:
    body = b'{"a":[' + b"{}," * 4000 + b"{}]}"

    async def look() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def each() -> AsyncGenerator[tuple[str, message_pb2.StoredMessage], None]:
            for offset in range(40):
                yield "alpha", message(offset, body)

        task = asyncio.create_task(others())
        page = await gather_page(each(), 10, with_bodies=True, wanted=sieve(where="body.a ~ no"))
        task.cancel()
        assert page.looked_at == 40
        return turns

    assert asyncio.run(look()) >= 10
