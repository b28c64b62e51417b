"""Keeps the store's tables of topics and groups equal to the metadata service's, as long as that can be reached.

It watches the tables there: a whole one or a set of changes is applied when all of its pages have come. And it tells
the metadata service what the store has created, again and again until it has that. Nothing of the store waits for any
of this. `FollowedTable` says how each table is followed.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.log_output import get_log
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.metadata.transfers import TablePages, TableTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.broker.errors import TableNotSaved
from tandemmq.store.broker.local_table import One
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_table import WatchedTable
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.members.groups import GroupConfig, WatchedGroupTable
from tandemmq.store.table_messages import group_message, read_group, read_topic, topic_message

log = get_log(__name__)

PAUSES = 0.1, 5.0
"""Seconds before the metadata service is tried again: the first time, and at most."""

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
        entries, shown = list(transfer.entries.values()), shown_version(transfer)
        if transfer.whole:
            self.table.replace(entries, shown)
        else:
            self.table.change(entries, transfer.deleted, shown)


def shown_version(transfer: TableTransfer) -> str:
    """A table's version, as the copy of the table has it."""
    version = transfer.version
    return f"{version.state_version}/{version.counter}/{version.timestamp}"


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
        self,
        address: str,
        topics: WatchedTopicTable,
        dialer: Dialer,
        groups: WatchedGroupTable | None = None,
        timers: Timers | None = None,
    ) -> None:
        """Without `groups`, only topics are followed."""
        self._dialer = dialer
        self._timers = timers or LoopTimers()
        self.address = address
        self.watched = FollowedPeer("metadata service", address)
        self._told = FollowedPeer("metadata service that takes what was created here", address)
        self._tables: list[FollowedTable[Any]] = [topics_of(topics)] + ([groups_of(groups)] if groups else [])
        self._added = asyncio.Event()
        self._tasks: list[asyncio.Future[None]] = []
        for followed in self._tables:
            followed.table.added.listen(self._added.set)

    @property
    def connected(self) -> bool:
        """Whether a whole table of topics has come over the watch that is open now."""
        return self.watched.there

    def start(self) -> None:
        """Begin, in the background."""
        self._added.set()
        steps = (self._follow(self.watched, self._watch), self._follow(self._told, self._tell), self._save())
        self._tasks = [asyncio.ensure_future(step) for step in steps]

    async def close(self) -> None:
        """End, and write the copies."""
        await end_tasks(self._timers, *self._tasks)
        for followed in self._tables:
            try:
                await followed.table.save()
            except TableNotSaved as error:
                log.error("table not saved at the end", reason=error.message)

    async def _follow(self, peer: FollowedPeer, step: Callable[[Any], AsyncGenerator[None, None]]) -> None:
        attempts = self._dialer.attempts(self.address, lambda opened: step(metadata_pb2_grpc.MetadataStub(opened)))
        await peer.follow(attempts, Backoff(*PAUSES), self._timers.sleep)

    # -- from the metadata service ----------------------------------------------------------------------------------

    async def _watch(self, stub: Any) -> AsyncGenerator[None, None]:
        """Apply what comes; yields after each transfer that was applied."""
        followed = {one.kind: one for one in self._tables}
        pages = TablePages({kind: one.read_page for kind, one in followed.items()})
        async for page in stub.Watch(pb.WatchRequest(tables=list(followed))):
            transfer = pages.take(page)
            if transfer is not None:
                followed[transfer.table].apply(transfer)
                if transfer.table == pb.TOPICS:
                    self.watched.came(topics=len(transfer.entries), version=shown_version(transfer))
                yield

    # -- to the metadata service ------------------------------------------------------------------------------------

    async def _tell(self, stub: Any) -> AsyncGenerator[None, None]:
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
            if self._told.problem:
                self._told.came()
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
            await self._timers.sleep(SAVE_SECONDS)
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
