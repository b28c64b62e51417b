"""Messages that wait for their time, found by their keys: until then they lie in topics of the broker's own."""

import time
from collections.abc import Iterable

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import CallRefused
from tandemmq.admin.messages.reading import NOT_THERE, query_by_key
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import SCHEDULE_TOPIC
from tandemmq.store.format import properties as names
from tandemmq.store.v1 import message_pb2, store_pb2

TOPICS = (SCHEDULE_TOPIC, "rmq_sys_wheel_timer")
"""Where messages wait: of delay levels, and of times of their own."""

_MOST = 32
"""So many of one key are looked at."""

_RECALL = "TIMER_DEL_UNIQKEY"
_OVERDUE_MS = 3_600_000
"""What was due so long ago and has not come was taken back, as a rule."""


async def with_postponed(
    node: KnownNode, request: admin_pb2.FindMessagesRequest, most: int
) -> tuple[list[message_pb2.StoredMessage], bool]:
    """As `query_by_key`, and those that wait to be put into the topic. Raises AdminError."""
    if request.topic in TOPICS:
        return await query_by_key(node, request, most)
    waiting = [one for topic in TOPICS for one in await _waiting(node, request, topic)]
    try:
        messages, more = await query_by_key(node, request, most)
    except CallRefused as error:
        if error.code not in NOT_THERE or not waiting:  # nothing was ever delivered there
            raise
        return waiting, False
    return [*messages, *waiting], more


def mark_postponed(page: admin_pb2.FindMessagesResponse, topic: str) -> None:
    """Say of the messages which of them wait, and how long."""
    for one in page.messages:
        if one.message.topic in TOPICS and one.message.topic != topic:
            one.is_waiting, one.due_ms = True, _due_ms(one.message)


async def _waiting(
    node: KnownNode, request: admin_pb2.FindMessagesRequest, topic: str
) -> list[message_pb2.StoredMessage]:
    there = admin_pb2.FindMessagesRequest()
    there.CopyFrom(request)
    there.topic = topic
    try:
        messages, _ = await query_by_key(node, there, _MOST)
    except CallRefused as error:
        if error.code not in NOT_THERE:
            raise
        return []
    newest = _newest(one for one in messages if one.properties.get(names.REAL_TOPIC) == request.topic)
    return [one for one in newest if await _is_to_come(node, request.topic, one)]


def _newest(messages: Iterable[message_pb2.StoredMessage]) -> list[message_pb2.StoredMessage]:
    """Of each message the newest record: one that waits long is stored again on the way."""
    found: dict[tuple[str | int, int], message_pb2.StoredMessage] = {}
    for one in messages:
        if _RECALL not in one.properties:
            found.setdefault((one.unique_key or one.physical_offset, _due_ms(one)), one)
    return list(found.values())


async def _is_to_come(node: KnownNode, topic: str, one: message_pb2.StoredMessage) -> bool:
    """Whether it has not been put into its topic yet. Raises AdminError."""
    due, now = _due_ms(one), time.time_ns() // 1_000_000
    if due and due + _OVERDUE_MS < now:
        return False
    if not one.unique_key:  # of a producer that is not ours nor RocketMQ's: nothing finds its copy
        return due > now
    asked = store_pb2.QueryMessageRequest(
        topic=topic,
        unique_key=one.unique_key,
        begin_timestamp=one.store_timestamp,
        max_messages=_MOST,
        form=message_pb2.DECODED,
    )
    try:
        answer = await node.ask("store", node.store.QueryMessage(asked))
    except CallRefused as error:
        if error.code not in NOT_THERE:
            raise
        return True
    return all(copy.physical_offset < one.physical_offset for copy in answer.messages)


def _due_ms(one: message_pb2.StoredMessage) -> int:
    """When it is due; 0 where it does not say so itself, as at a delay level."""
    for name in (names.TIMER_DELIVER_MS, names.TIMER_OUT_MS):
        text = one.properties.get(name, "")
        if text.isascii() and text.isdecimal():
            return min(int(text), (1 << 63) - 1)
    return 0
