"""Keeps the store's topic table equal to the metadata service's, as long as that can be reached.

It watches the topics there: a whole table or a set of changes is applied when all of its pages have come. And it tells
the metadata service which topics the store has created, again and again until it has them. Nothing of the store waits
for any of this.
"""

import asyncio
import contextlib
import json
import random
from typing import Any

import grpc

from tandemmq.common.client_channel import Dialer
from tandemmq.common.log_output import get_log
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.broker.errors import TableNotSaved
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable

log = get_log(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds before the metadata service is tried again; each pause is twice the last, and a little random."""

SAVE_SECONDS = 1.0
"""How often the copy is written at most while changes come."""

TELL_SECONDS = 3.0
"""How long the metadata service may take to accept topics."""


class MetasyncLink:
    """Follows the metadata service at one address until closed. Make it, and use it, inside the event loop."""

    def __init__(self, address: str, table: WatchedTopicTable, dialer: Dialer) -> None:
        self._dialer = dialer
        self.address = address
        self.connected = False
        """Whether a whole table has come over the watch that is open now."""
        self._table = table
        self._added = asyncio.Event()
        self._tasks: list[asyncio.Future[None]] = []
        self._told_away = False
        table.added.listen(self._added.set)

    def start(self) -> None:
        """Begin, in the background."""
        self._added.set()
        steps = (self._again_and_again(self._watch), self._again_and_again(self._tell), self._save())
        self._tasks = [asyncio.ensure_future(step) for step in steps]

    async def close(self) -> None:
        """End, and write the copy."""
        while running := [task for task in self._tasks if not task.done()]:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=1.0)
        try:
            await self._table.save()
        except TableNotSaved as error:
            log.error("topic table not saved at the end", reason=error.message)

    async def _again_and_again(self, step: Any) -> None:
        """Try a step for ever, with pauses between failures that grow while nothing succeeds."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._dialer.channel(self.address) as opened:
                    stub: Any = metadata_pb2_grpc.MetadataStub(opened)
                    async with contextlib.aclosing(step(stub)) as successes:
                        async for _ in successes:
                            pause = FIRST_PAUSE
            except (grpc.aio.AioRpcError, TimeoutError, BrokenTransfer) as error:
                reason = error.details() if isinstance(error, grpc.aio.AioRpcError) else str(error)
                if not self._told_away:
                    log.warning("metadata service away", address=self.address, reason=reason)
                self._told_away = True
            except Exception as error:  # noqa: BLE001 - whatever it is, the store goes on, and so does this
                log.failure("following the metadata service failed", error, address=self.address)
            await asyncio.sleep(pause * (0.75 + random.random() / 2))
            pause = min(pause * 2, LONGEST_PAUSE)

    # -- from the metadata service ----------------------------------------------------------------------------------

    async def _watch(self, stub: Any) -> Any:
        """Apply what comes; yields after each transfer that was applied."""
        transfer = Transfer()
        try:
            async for page in stub.Watch(pb.WatchRequest(tables=[pb.TOPICS])):
                if transfer.add(page):
                    self._apply(transfer)
                    transfer = Transfer()
                    yield
        finally:
            self.connected = False

    def _apply(self, transfer: "Transfer") -> None:
        if transfer.whole:
            self._table.replace(transfer.topics, transfer.version)
        else:
            self._table.change(transfer.topics, transfer.deleted, transfer.version)
        if not self.connected:
            log.info("metadata service", address=self.address, topics=len(transfer.topics), version=transfer.version)
        self.connected = True
        self._told_away = False

    # -- to the metadata service ------------------------------------------------------------------------------------

    async def _tell(self, stub: Any) -> Any:
        """Hand over what the store has created; yields each time that everything was taken."""
        while True:
            await self._added.wait()
            self._added.clear()
            try:
                await self._hand_over(stub)
            except BaseException:
                self._added.set()
                raise
            yield

    async def _hand_over(self, stub: Any) -> None:
        """Raises AioRpcError."""
        waiting = self._table.waiting
        for at in range(0, len(waiting), 1_000):
            some = waiting[at : at + 1_000]
            request = pb.PutTopicsRequest(topics=[_message(topic) for topic in some], create_only=True)
            answer = await stub.PutTopics(request, timeout=TELL_SECONDS)
            self._table.accepted(_topic(topic) for topic in answer.topics)

    async def _save(self) -> None:
        """Write the copy while it is behind; a disk that refuses is asked again."""
        told = False
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            if not self._table.unsaved:
                continue
            try:
                await self._table.save()
                told = False
            except TableNotSaved as error:
                if not told:
                    log.error("topic table not saved", reason=error.message)
                told = True


class BrokenTransfer(Exception):
    """Pages came that do not fit together."""


class Transfer:
    """A whole table, or changes, while its pages come."""

    def __init__(self) -> None:
        self.whole = False
        self.version = ""
        self.topics: list[TopicConfig] = []
        self.deleted: list[str] = []
        self._begun = False

    def add(self, page: pb.TablePage) -> bool:
        """Take the next page; True when it was the last. Raises BrokenTransfer."""
        version = page.version
        shown = f"{version.state_version}/{version.counter}/{version.timestamp}"
        if page.table != pb.TOPICS or (self._begun and (page.whole, shown) != (self.whole, self.version)):
            raise BrokenTransfer("the metadata service sent a page that does not belong to the table")
        self._begun, self.whole, self.version = True, page.whole, shown
        try:
            self.topics.extend(map(_topic, page.topics))
        except ValueError as error:
            raise BrokenTransfer(f"the metadata service sent a topic that makes no sense: {error}") from error
        self.deleted.extend(page.deleted)
        if page.last and page.total != len(self.topics) + len(self.deleted):
            raise BrokenTransfer(f"of {page.total} topics {len(self.topics) + len(self.deleted)} came")
        return page.last


def _topic(topic: pb.TopicConfig) -> TopicConfig:
    """Raises ValueError."""
    other = json.loads(topic.other_json) if topic.other_json else {}
    if not isinstance(other, dict):
        raise ValueError(f"the other fields of {topic.name} are no object")
    entry = {
        "topicName": topic.name,
        "readQueueNums": topic.read_queues if topic.HasField("read_queues") else 16,
        "writeQueueNums": topic.write_queues if topic.HasField("write_queues") else 16,
        "perm": topic.perm if topic.HasField("perm") else 6,
        "order": topic.order,
        "topicFilterType": pb.TopicFilterType.Name(topic.filter_type),
        "topicSysFlag": topic.sys_flag,
        "attributes": dict(topic.attributes),
    }
    return TopicConfig.from_json(topic.name, {**entry, **other})


def _message(topic: TopicConfig) -> pb.TopicConfig:
    """A topic that the store has created."""
    return pb.TopicConfig(
        name=topic.name, read_queues=topic.read_queues, write_queues=topic.write_queues, perm=topic.perm
    )
