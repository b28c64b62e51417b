"""When messages were stored: one pull of one message each, so never for many queues at once."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError
from tandemmq.store.v1 import message_pb2, store_pb2

_AT_ONCE = 8


class MessagePlace(NamedTuple):
    """One message."""

    topic: str
    queue_id: int
    offset: int


async def store_times(node: KnownNode, places: Iterable[MessagePlace]) -> dict[MessagePlace, int]:
    """Store time of each message, ms since 1970; without those that are not there or cannot be read."""
    turn = asyncio.Semaphore(_AT_ONCE)
    places = list(places)

    async def ask(place: MessagePlace) -> int | None:
        async with turn:
            return await _store_time(node, place)

    found = await asyncio.gather(*map(ask, places))
    return {place: time for place, time in zip(places, found, strict=True) if time is not None}


async def _store_time(node: KnownNode, place: MessagePlace) -> int | None:
    request = store_pb2.PullRequest(
        topic=place.topic,
        queue_id=place.queue_id,
        offset=place.offset,
        max_messages=1,
        max_bytes=1,
        form=message_pb2.DECODED,
    )
    try:
        answer = await node.ask("store", node.store.Pull(request))
    except AdminError:
        return None
    return answer.messages[0].store_timestamp if answer.messages else None
