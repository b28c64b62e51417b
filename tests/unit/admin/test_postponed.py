"""Messages that wait for their time, found by key in the broker's own topics."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, cast

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import CallRefused
from tandemmq.admin.messages.postponed import with_postponed
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import SCHEDULE_TOPIC
from tandemmq.store.format import properties as names
from tandemmq.store.v1 import message_pb2, store_pb2

NOW = time.time_ns() // 1_000_000


class Node:
    """A node whose store has some messages, by topic."""

    def __init__(self, **by_topic: list[message_pb2.StoredMessage]) -> None:
        self.by_topic = by_topic
        self.store = self

    async def ask(self, _service: str, call: Awaitable[Any]) -> Any:
        return await call

    async def QueryMessage(self, request: store_pb2.QueryMessageRequest) -> store_pb2.QueryMessageResponse:
        """As a store: an empty key is refused."""
        unique = request.WhichOneof("by") == "unique_key"
        if not (request.unique_key if unique else request.key):
            raise CallRefused("Neither key nor unique_key is given.", "INVALID_ARGUMENT")
        found = self.by_topic.get(request.topic, [])
        if unique:
            found = [one for one in found if one.unique_key == request.unique_key]
        return store_pb2.QueryMessageResponse(messages=found, count=len(found))


def waiting(offset: int, due_ms: int, unique_key: str = "") -> message_pb2.StoredMessage:
    properties = {names.REAL_TOPIC: "orders"} | ({names.TIMER_OUT_MS: str(due_ms)} if due_ms else {})
    return message_pb2.StoredMessage(
        topic="rmq_sys_wheel_timer", physical_offset=offset, unique_key=unique_key, properties=properties
    )


def found_in(node: Node) -> list[int]:
    request = admin_pb2.FindMessagesRequest(topic="orders", key="k")
    messages, _ = asyncio.run(with_postponed(cast("KnownNode", node), request, 33))
    return [one.physical_offset for one in messages]


def test_what_has_come_waits_no_more() -> None:
    there = message_pb2.StoredMessage(topic="orders", physical_offset=9, unique_key="b")
    node = Node(orders=[there], rmq_sys_wheel_timer=[waiting(2, NOW + 3_600_000, "a"), waiting(1, NOW - 1, "b")])
    assert found_in(node) == [9, 2]


def test_messages_without_a_unique_key_as_producers_of_other_makes_send_them() -> None:
    """Nothing says of those which copy is theirs: they wait while their time is to come. Each counts for itself."""
    due = NOW + 3_600_000
    node = Node(
        rmq_sys_wheel_timer=[waiting(4, due), waiting(3, due), waiting(2, NOW - 1)], **{SCHEDULE_TOPIC: [waiting(1, 0)]}
    )
    assert found_in(node) == [4, 3]
