"""Keeps the store's tables of topics and groups equal to the metadata service's, as long as that can be reached.

It watches the tables there: a whole one or a set of changes is applied when all of its pages have come. And it tells
the metadata service what the store has created, again and again until it has that. Nothing of the store waits for any
of this. `FollowedTable` says how each table is followed.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

import grpc

from tandemmq.common.client_channel import Dialer
from tandemmq.common.log_output import get_log
from tandemmq.metadata.transfers import BrokenTransfer, TablePages, TableTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.broker.errors import TableNotSaved
from tandemmq.store.broker.local_table import One
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_table import WatchedTable
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.groups import GroupConfig, WatchedGroupTable
from tandemmq.store.table_messages import group_message, read_group, read_topic, topic_message

log = get_log(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds before the metadata service is tried again; each pause is twice the last, and a little random."""

SAVE_SECONDS = 1.0
"""How often the copy is written at most while changes come."""

TELL_SECONDS = 3.0
"""How long the metadata service may take to accept topics."""


@dataclass(frozen=True, slots=True)
class FollowedTable(Generic[One]):
    """A table, and how its entries travel."""

    kind: "pb.Table.ValueType"
    """The contract's `Table`."""
    table: WatchedTable[One]
    entries: Callable[[Any], Iterable[Any]]
    """The messages of entries in a page or an answer."""
    read: Callable[[Any], One]
    """An entry of its message; raises ValueError."""
    put: Callable[[Any, list[One]], Any]
    """The call that hands over what the store has created; takes the stub."""

    def read_page(self, page: pb.TablePage) -> Iterable[tuple[str, One]]:
        """The entries of a page by their names. Raises ValueError."""
        return ((one.name, self.read(one)) for one in self.entries(page))

    def apply(self, transfer: TableTransfer) -> None:
        """Make the table what has come."""
        entries, version = list(transfer.entries.values()), transfer.version
        shown = f"{version.state_version}/{version.counter}/{version.timestamp}"
        if transfer.whole:
            self.table.replace(entries, shown)
        else:
            self.table.change(entries, transfer.deleted, shown)


def topics_of(table: WatchedTopicTable) -> FollowedTable[TopicConfig]:
    """The table of topics, to be followed."""

    def put(stub: Any, topics: list[TopicConfig]) -> Any:
        request = pb.PutTopicsRequest(topics=map(topic_message, topics), create_only=True)
        return stub.PutTopics(request, timeout=TELL_SECONDS)

    return FollowedTable(pb.TOPICS, table, lambda page: page.topics, read_topic, put)


def groups_of(table: WatchedGroupTable) -> FollowedTable[GroupConfig]:
    """The table of groups, to be followed."""

    def put(stub: Any, groups: list[GroupConfig]) -> Any:
        request = pb.PutGroupsRequest(groups=map(group_message, groups), create_only=True)
        return stub.PutGroups(request, timeout=TELL_SECONDS)

    return FollowedTable(pb.SUBSCRIPTION_GROUPS, table, lambda page: page.groups, read_group, put)


class MetasyncLink:
    """Follows the metadata service at one address until closed. Make it, and use it, inside the event loop."""

    def __init__(
        self, address: str, topics: WatchedTopicTable, dialer: Dialer, groups: WatchedGroupTable | None = None
    ) -> None:
        """Without `groups`, only topics are followed."""
        self._dialer = dialer
        self.address = address
        self.connected = False
        """Whether a whole table of topics has come over the watch that is open now."""
        self._tables: list[FollowedTable[Any]] = [topics_of(topics)] + ([groups_of(groups)] if groups else [])
        self._added = asyncio.Event()
        self._tasks: list[asyncio.Future[None]] = []
        self._told_away = False
        for followed in self._tables:
            followed.table.added.listen(self._added.set)

    def start(self) -> None:
        """Begin, in the background."""
        self._added.set()
        steps = (self._again_and_again(self._watch), self._again_and_again(self._tell), self._save())
        self._tasks = [asyncio.ensure_future(step) for step in steps]

    async def close(self) -> None:
        """End, and write the copies."""
        while running := [task for task in self._tasks if not task.done()]:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=1.0)
        for followed in self._tables:
            try:
                await followed.table.save()
            except TableNotSaved as error:
                log.error("table not saved at the end", reason=error.message)

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
        followed = {one.kind: one for one in self._tables}
        pages = TablePages({kind: one.read_page for kind, one in followed.items()})
        try:
            async for page in stub.Watch(pb.WatchRequest(tables=list(followed))):
                transfer = pages.take(page)
                if transfer is not None:
                    followed[transfer.table].apply(transfer)
                    if transfer.table == pb.TOPICS:
                        self._topics_came(transfer)
                    yield
        finally:
            self.connected = False

    def _topics_came(self, transfer: TableTransfer) -> None:
        if not self.connected:
            log.info("metadata service", address=self.address, topics=len(transfer.entries))
        self.connected = True
        self._told_away = False

    # -- to the metadata service ------------------------------------------------------------------------------------

    async def _tell(self, stub: Any) -> Any:
        """Hand over what the store has created; yields each time that everything was taken."""
        while True:
            await self._added.wait()
            self._added.clear()
            try:
                for followed in self._tables:
                    await self._hand_over(stub, followed)
            except BaseException:
                self._added.set()
                raise
            yield

    async def _hand_over(self, stub: Any, followed: FollowedTable[Any]) -> None:
        """Raises AioRpcError."""
        waiting = followed.table.waiting
        for at in range(0, len(waiting), 1_000):
            answer = await followed.put(stub, waiting[at : at + 1_000])
            followed.table.accepted(map(followed.read, followed.entries(answer)))

    async def _save(self) -> None:
        """Write the copies while they are behind; a disk that refuses is asked again."""
        told = False
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            for followed in self._tables:
                if not followed.table.unsaved:
                    continue
                try:
                    await followed.table.save()
                    told = False
                except TableNotSaved as error:
                    if not told:
                        log.error("table not saved", reason=error.message)
                    told = True
