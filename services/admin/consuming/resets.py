"""Moving a group's offsets: planned for all brokers first, then made."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tandemmq.admin.books.books import Books
from tandemmq.admin.books.tables import Tables
from tandemmq.admin.catalogue.groups import group_config
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import BadAdminRequest, CallRefused, NotFound, NotPossible
from tandemmq.admin.v1 import admin_pb2
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.store.v1 import store_pb2

_AT_ONCE = 5_000
"""Commits of one call; metasync takes 10,000."""

_NO_TOPIC = frozenset({"NOT_FOUND"})

Target = Callable[[store_pb2.QueueOffsets, int | None], int | None]
"""Where a queue's offset goes, given where it is; None: it stays."""


class _Plan(NamedTuple):
    """For one broker."""

    topic: bool
    """Whether it has the topic."""
    group: bool
    """Whether it has the group, or offsets of it."""
    moves: list[admin_pb2.OffsetMove]


class Resets:
    """Plans moves, and makes them."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._brokers = books.brokers

    async def reset(self, request: admin_pb2.ResetOffsetsRequest) -> admin_pb2.ResetOffsetsResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotPossible, CallRefused, ServiceAway."""
        target = _target(request)
        masters = await self._brokers.masters(request.broker)
        plans = await asyncio.gather(*(_plan(broker, node, request, target) for broker, node in masters))
        if not any(plan.topic for plan in plans):
            raise NotFound(f"there is no topic {request.topic}")
        if not any(plan.group for plan in plans):
            raise NotFound(f"there is no group {request.group}", remedy="create it first, if it is to begin there")
        moves = [move for plan in plans for move in plan.moves]
        _check_queues(request, moves)
        if request.WhichOneof("to") == "shift" and not moves:
            raise NotPossible(
                f"group {request.group} has no offset in {request.topic} to shift",
                remedy="use an offset, a time, earliest or latest",
            )
        if not request.dry_run:
            for (_, node), plan in zip(masters, plans, strict=True):
                await self._commit(node, request, plan.moves)
        return admin_pb2.ResetOffsetsResponse(moves=moves)

    async def _commit(
        self, node: KnownNode, request: admin_pb2.ResetOffsetsRequest, moves: list[admin_pb2.OffsetMove]
    ) -> None:
        for at in range(0, len(moves), _AT_ONCE):
            some = moves[at : at + _AT_ONCE]
            commits = [
                metadata_pb2.OffsetCommit(
                    topic=request.topic, group=request.group, queue_id=move.queue_id, offset=move.after
                )
                for move in some
            ]
            commit = metadata_pb2.CommitOffsetsRequest(commits=commits, reset=True)
            answer = await node.ask("metasync", node.metasync.CommitOffsets(commit))
            for move, result in zip(some, answer.results, strict=True):
                if result.status != metadata_pb2.COMMITTED:
                    why = metadata_pb2.CommitStatus.Name(result.status)
                    raise NotPossible(f"queue {move.queue_id} of {request.topic} on {move.broker} was not reset: {why}")
        before = {move.queue_id: move.before if move.HasField("before") else None for move in moves}
        after = {move.queue_id: move.after for move in moves}

        def seen(tables: Tables) -> bool:
            offsets = tables.offsets.get(request.group, {}).get(request.topic, {})
            return all(offsets.get(queue) == after[queue] or offsets.get(queue) != before[queue] for queue in after)

        await self._books.see(node, seen)


def _target(request: admin_pb2.ResetOffsetsRequest) -> Target:
    """What the request wants of a queue. Raises BadAdminRequest."""
    if not request.group or not request.topic:
        raise BadAdminRequest(f"the request names no {'topic' if request.group else 'group'}")
    to = request.WhichOneof("to")
    if to == "offset":
        return lambda queue, _: _inside(request.topic, queue, request.offset)
    if to == "timestamp_ms":
        if request.timestamp_ms < 0:
            raise BadAdminRequest(f"timestamp_ms is {request.timestamp_ms}: it is 0 or more")
        return lambda queue, _: queue.offset_at_time
    if to == "latest" and request.latest:
        return lambda queue, _: queue.max_offset
    if to == "earliest" and request.earliest:
        return lambda queue, _: queue.min_offset
    if to == "shift":
        return lambda queue, before: (
            None if before is None else max(queue.min_offset, min(queue.max_offset, before + request.shift))
        )
    raise BadAdminRequest("the request does not say where to: offset, timestamp_ms, latest, earliest or shift")


def _inside(topic: str, queue: store_pb2.QueueOffsets, offset: int) -> int:
    """Raises BadAdminRequest for an offset that the queue does not have."""
    if not queue.min_offset <= offset <= queue.max_offset:
        raise BadAdminRequest(
            f"queue {queue.queue_id} of {topic} has offsets {queue.min_offset} to {queue.max_offset}, not {offset}",
            remedy="name queues by queue_ids, or use earliest, latest or a time",
        )
    return offset


async def _plan(broker: str, node: KnownNode, request: admin_pb2.ResetOffsetsRequest, target: Target) -> _Plan:
    """What is to be done on one broker. Raises as `Resets.reset`."""
    timestamp = request.timestamp_ms if request.HasField("timestamp_ms") else None
    ends = store_pb2.GetOffsetsRequest(topic=request.topic, timestamp=timestamp)
    befores = await _offsets(node, request.group, request.topic)
    group = bool(befores) or await group_config(node, request.group) is not None
    try:
        queues = (await node.ask("store", node.store.GetOffsets(ends))).queues
    except CallRefused as refusal:
        if refusal.code in _NO_TOPIC:
            return _Plan(topic=False, group=group, moves=[])
        raise
    moves = []
    for queue in queues if group else ():
        if request.queue_ids and queue.queue_id not in request.queue_ids:
            continue
        if queue.rebuilding:
            where = f"queue {queue.queue_id} of {request.topic} on {broker}"
            raise NotPossible(f"{where} is being rebuilt: its end is not known")
        before = befores.get(queue.queue_id)
        after = target(queue, before)
        if after is not None:
            move = admin_pb2.OffsetMove(broker=broker, queue_id=queue.queue_id, before=before, after=after)
            move.min_offset, move.max_offset = queue.min_offset, queue.max_offset
            moves.append(move)
    return _Plan(topic=True, group=group, moves=moves)


async def _offsets(node: KnownNode, group: str, topic: str) -> Mapping[int, int]:
    """Raises ServiceAway, CallRefused."""
    query = metadata_pb2.QueryOffsetsRequest(queries=[metadata_pb2.OffsetQuery(group=group, topic=topic)])
    answer = await node.ask("metasync", node.metasync.QueryOffsets(query))
    return answer.offsets[0].offsets if answer.offsets else {}


def _check_queues(request: admin_pb2.ResetOffsetsRequest, moves: list[admin_pb2.OffsetMove]) -> None:
    """Raises BadAdminRequest for a queue that no broker has (or that a shift finds no offset in)."""
    missing = sorted(set(request.queue_ids) - {move.queue_id for move in moves})
    if missing and not (request.WhichOneof("to") == "shift" and not moves):
        names = ", ".join(map(str, missing))
        shifted = " with an offset to shift" if request.WhichOneof("to") == "shift" else ""
        raise BadAdminRequest(f"{request.topic} has no queue {names}{shifted}")
