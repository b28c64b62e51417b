"""Messages as they arrive: one task a queue asks its store, all of them fill one short queue, the caller empties it.

A task knows the next offset of its queue, and asks whoever is the broker's master, or reads for it: a store that is
restarted, or another that takes its place, goes on there.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError, AdminStopping, BadAdminRequest, NotFound, NotPossible
from tandemmq.admin.messages.reading import ask_each, found_message
from tandemmq.admin.v1 import admin_pb2
from tandemmq.store.v1 import message_pb2, store_pb2

_MOST_LAST = 10_000

_WAIT_SECONDS = 10.0
"""How long a store holds an ask for news."""

_LOOK_SECONDS = 2.0
"""How often it is looked for new queues."""

_PAUSE_SECONDS = 0.3
"""Between two tries while a store is away."""

_AHEAD = 32
"""Answers that wait for a slow caller; then nothing more is asked for."""

_PULL_BYTES = 128 << 10


class _Place(NamedTuple):
    broker: str
    queue_id: int


class Tails:
    """Follows topics."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._followed: set[_Tail] = set()

    def stop(self) -> None:
        """Admin stops: nobody is kept waiting."""
        for tail in self._followed:
            tail.fail(AdminStopping("admin is stopped"))

    async def follow(self, request: admin_pb2.TailRequest) -> AsyncGenerator[admin_pb2.FoundMessage, None]:
        """See admin.proto; ends when it is closed.

        In order within a queue, and each message once. Raises AdminError at the start; later who is away is
        waited for.
        """
        if not request.topic:
            raise BadAdminRequest("topic is missing")
        if not 0 <= request.last <= _MOST_LAST:
            raise BadAdminRequest(f"last {request.last}: 0 to {_MOST_LAST}")
        tail = _Tail(self._brokers, request)
        self._followed.add(tail)
        try:
            await tail.begin()
            while True:
                for message in await tail.next():
                    yield message
        finally:
            self._followed.discard(tail)
            await tail.close()


class _Tail:
    """One topic that is followed."""

    def __init__(self, brokers: Brokers, request: admin_pb2.TailRequest) -> None:
        self._brokers, self._request = brokers, request
        self._answers: asyncio.Queue[list[admin_pb2.FoundMessage]] = asyncio.Queue(_AHEAD)
        self._failure: BaseException | None = None
        self._begun_ms = time.time_ns() // 1_000_000
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: set[_Place] = set()
        self._rebuilding: set[_Place] = set()
        """Queues that were being rebuilt at the start: their ends were not known."""

    async def next(self) -> list[admin_pb2.FoundMessage]:
        """What has arrived; waits for it."""
        if self._failure is not None:
            raise self._failure
        messages = await self._answers.get()
        if self._failure is not None:
            raise self._failure
        return messages

    def fail(self, error: BaseException) -> None:
        """End it with an error."""
        self._failure = self._failure or error
        with suppress(asyncio.QueueFull):  # then the caller is awake anyway
            self._answers.put_nowait([])

    async def begin(self) -> None:
        """Find the queues, and follow them. Raises AdminError."""
        wanted = set(self._request.queue_ids)
        for place, queue in await self._queues():
            if queue.rebuilding:
                self._rebuilding.add(place)
            else:
                self._follow(place, max(queue.min_offset, queue.max_offset - self._request.last))
        there = {place.queue_id for place in self._followed | self._rebuilding}
        if wanted and not wanted & there:
            raise NotFound(f"topic {self._request.topic} has no queue {', '.join(map(str, sorted(wanted)))}")
        self._start(self._watch())

    async def close(self) -> None:
        """End all of it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _queues(self) -> list[tuple[_Place, store_pb2.QueueOffsets]]:
        request = store_pb2.GetOffsetsRequest(topic=self._request.topic, timestamp=self._begun_ms)

        async def ask(_broker: str, node: KnownNode) -> store_pb2.GetOffsetsResponse:
            return await node.ask("store", node.store.GetOffsets(request))

        wanted = set(self._request.queue_ids)
        answers = await ask_each(await self._brokers.readers(self._request.broker), ask)
        return [
            (_Place(broker, queue.queue_id), queue)
            for broker, _, answer in answers
            for queue in answer.queues
            if not wanted or queue.queue_id in wanted
        ]

    async def _watch(self) -> None:
        """Follow the queues too that come into being, from their beginning."""
        while True:
            await self._brokers.timers.sleep(_LOOK_SECONDS)
            try:
                queues = await self._queues()
            except AdminError:  # somebody is away: it is looked again
                continue
            for place, queue in queues:
                if place in self._followed or queue.rebuilding:
                    continue
                if place in self._rebuilding:
                    self._follow(place, max(queue.min_offset, queue.offset_at_time - self._request.last))
                else:
                    self._follow(place, queue.min_offset)

    def _follow(self, place: _Place, offset: int) -> None:
        self._followed.add(place)
        self._start(self._read(place, offset))

    async def _read(self, place: _Place, offset: int) -> None:
        """Read a queue from an offset on; who is away, or does not know the topic at present, is asked again."""
        seen_ms = self._begun_ms
        while True:
            try:
                node, is_master = await self._reader(place.broker)
                answer = await self._pull(node, place.queue_id, offset)
                if is_master and answer.max_offset < offset:
                    # Its power failed, or it was a slave that lacked the last messages: these offsets are given again.
                    offset = await self._offset_behind(node, place.queue_id, seen_ms)
                    continue
            except AdminError:
                await self._brokers.timers.sleep(_PAUSE_SECONDS)
                continue
            if answer.max_offset < offset:  # a slave that is behind
                await self._brokers.timers.sleep(_PAUSE_SECONDS)
                continue
            if answer.messages:
                seen_ms = answer.messages[-1].store_timestamp
                await self._answers.put(self._found(place.broker, answer.messages))
            offset = max(offset, answer.next_begin_offset)

    async def _offset_behind(self, node: KnownNode, queue_id: int, time_ms: int) -> int:
        """Of the first message stored after a time. Raises AdminError."""
        request = store_pb2.GetOffsetsRequest(topic=self._request.topic, queue_id=queue_id, timestamp=time_ms + 1)
        return (await node.ask("store", node.store.GetOffsets(request))).queues[0].offset_at_time

    async def _reader(self, broker: str) -> tuple[KnownNode, bool]:
        """Who reads for a broker, and whether that is its master."""
        _, node = (await self._brokers.readers(broker))[0]
        try:
            masters = await self._brokers.masters(broker)
        except NotPossible:
            return node, False
        return node, masters[0][1] is node

    async def _pull(self, node: KnownNode, queue_id: int, offset: int) -> store_pb2.PullResponse:
        request = store_pb2.PullRequest(
            topic=self._request.topic,
            queue_id=queue_id,
            offset=offset,
            max_bytes=_PULL_BYTES,
            tags=self._request.tags,
            wait_ms=int(_WAIT_SECONDS * 1000),
            form=message_pb2.DECODED,
        )
        return await node.ask("store", node.store.Pull(request), node.timeout + _WAIT_SECONDS)

    def _found(self, broker: str, messages: Iterable[message_pb2.StoredMessage]) -> list[admin_pb2.FoundMessage]:
        return [found_message(broker, one, with_body=self._request.with_bodies) for one in messages]

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
