"""The link to a store that says what the test wants: what is heard, what is told, and when."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from tandemmq.common.timers import LoopTimers
from tandemmq.replicator.channels import store_channel
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.store_link import StoreLink
from tandemmq.store.v1 import replica_log_pb2_grpc
from tandemmq.store.v1.replica_log_pb2 import SYNC_MASTER, LogIdentity, LogProgress, ReplicationProgress
from tests.integration.replicator.master_kit import until

Context = grpc.aio.ServicerContext[Any, Any]


class TalkingStore(replica_log_pb2_grpc.ReplicaLogServicer):
    """Says what is put into `words`; `None` ends the link."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[LogProgress | None] = asyncio.Queue()
        self.heard: list[ReplicationProgress] = []
        self.links = 0
        self.refuses = False

    def say(self, end: int) -> None:
        identity = LogIdentity(role=SYNC_MASTER, file_size=4_096, epoch=1)
        self.words.put_nowait(LogProgress(max_offset=end, identity=identity))

    async def Link(
        self, request_iterator: AsyncIterator[ReplicationProgress], context: Context
    ) -> AsyncIterator[LogProgress]:
        self.links += 1
        if self.refuses:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, "another one has it")

        async def listen() -> None:
            async for progress in request_iterator:
                self.heard.append(progress)

        listening = asyncio.create_task(listen())
        try:
            while (word := await self.words.get()) is not None:
                yield word
        finally:
            listening.cancel()


def talking_store() -> TalkingStore:
    return TalkingStore()  # type: ignore[abstract]  # the other calls answer UNIMPLEMENTED


class Linked:
    """A link whose answers to the store the test gives."""

    def __init__(self, channel: grpc.aio.Channel, store: TalkingStore) -> None:
        self.store = store
        self.view = LogView()
        self.metrics = ReplicatorMetrics("c", "n")
        self.to_tell: list[ReplicationProgress] = []
        self.begun = 0
        self.link = StoreLink(channel, "h:1", self.view, self.metrics, self._next, self._begin, LoopTimers())

    def _next(self) -> ReplicationProgress | None:
        return self.to_tell.pop(0) if self.to_tell else None

    def _begin(self) -> None:
        self.begun += 1

    def tell(self, offset: int) -> None:
        self.to_tell.append(ReplicationProgress(enough=True, replicated_offset=offset))
        self.link.wake()


@asynccontextmanager
async def linked() -> AsyncIterator[Linked]:
    store, server = talking_store(), grpc.aio.server()
    replica_log_pb2_grpc.add_ReplicaLogServicer_to_server(store, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = store_channel(ReplicatorSettings(store_address=f"127.0.0.1:{port}"))
    found = Linked(channel, store)
    found.link.start()
    try:
        yield found
    finally:
        await found.link.stop()
        await channel.close()
        await server.stop(None)


async def test_nothing_is_told_before_the_store_has_spoken() -> None:
    async with linked() as it:
        it.tell(5)
        await until(lambda: it.store.links == 1)
        await asyncio.sleep(0.05)
        assert it.store.heard == []
        assert not it.view.known
        it.store.say(10)
        await until(lambda: len(it.store.heard) == 1)
        assert (it.view.max_offset, it.view.linked, it.begun) == (10, True, 1)


async def test_observers_act_in_the_turn_of_the_word_and_answers_leave_at_once() -> None:
    async with linked() as it:
        it.view.observe(lambda: it.tell(it.view.max_offset))
        for end in range(1, 200):
            it.store.say(end)
        await until(lambda: len(it.store.heard) == 199)
        assert [progress.replicated_offset for progress in it.store.heard] == list(range(1, 200))


async def test_an_observer_that_fails_does_not_end_the_link() -> None:
    async with linked() as it:
        ends: list[int] = []

        def fail() -> None:
            raise RuntimeError("an observer's own fault")

        it.view.observe(fail)
        stop = it.view.observe(lambda: ends.append(it.view.max_offset))
        it.store.say(1)
        it.store.say(2)
        await until(lambda: ends == [1, 2])
        stop()
        it.store.say(3)
        await until(lambda: it.view.max_offset == 3)
        assert ends == [1, 2]


async def test_a_link_that_ends_is_made_again_and_begins_anew() -> None:
    async with linked() as it:
        it.store.say(10)
        await until(lambda: it.view.linked)
        seen: list[bool] = []
        it.view.observe(lambda: seen.append(it.view.linked))
        it.store.words.put_nowait(None)
        await until(lambda: it.store.links == 2)
        assert seen == [False]
        assert it.view.max_offset == 10
        it.tell(7)
        it.store.say(4)
        await until(lambda: len(it.store.heard) == 1)
        assert seen == [False, True]
        assert it.begun == it.metrics.links == 2


async def test_a_link_that_is_refused_is_tried_again_with_pauses() -> None:
    async with linked() as it:
        it.store.refuses = True
        await until(lambda: it.store.links >= 3)
        assert it.link.peer.problem.startswith("ALREADY_EXISTS")
        assert it.store.links < 10
        it.store.refuses = False
        it.store.say(1)
        await until(lambda: it.view.linked)
        assert it.link.peer.problem == ""


async def test_a_store_that_is_not_there_yet() -> None:
    channel = store_channel(ReplicatorSettings(store_address="127.0.0.1:1"))
    it = Linked(channel, talking_store())
    it.link.start()
    await until(lambda: it.link.peer.problem.startswith("UNAVAILABLE"))
    it.tell(1)
    await it.link.stop()
    await channel.close()
    assert not it.view.linked
