"""JavaLink: the tables of a master that is a RocketMQ broker, asked for as its own slaves do, over its remoting port.

Topics and groups have a version that changes with them. It tells that a table is another, not that it is newer: a 4.9
that was started again counts changes of groups from 0. So a table is refused as older only if it also lacks entries of
ours, and the master has not shown it before. Positions and delays are asked for in each cycle: 4.9 gives no version of
them, and that of 5.x changes only with every 500th commit. So they get one of ours, which is new where something is.

A RocketMQ master counts no resets. What it says of a queue is right, backwards too, unless the offset was committed
here and has not come to it. Nothing is handed over to it: it takes a smaller offset for a greater one, and what its
consumers have committed meanwhile would be lost.
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tandemmq.common.documents import java_json
from tandemmq.common.errors import TandemError
from tandemmq.common.net.remoting.client import RemotingClient
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.metadata.transfers import BrokenTransfer
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import MasterAway
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.master_tables import Check
from tandemmq.metasync.offset_tables import ConsumerOffsetTable, GroupQueueOffsets, PendingCommit
from tandemmq.metasync.tables import Content, TableKind

ASKED = MappingProxyType(
    {
        TableKind.TOPICS: RequestCode.GET_ALL_TOPIC_CONFIG,
        TableKind.SUBSCRIPTION_GROUPS: RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        TableKind.CONSUMER_OFFSETS: RequestCode.GET_ALL_CONSUMER_OFFSET,
        TableKind.DELAY_OFFSETS: RequestCode.GET_ALL_DELAY_OFFSET,
    }
)
"""The request for each table."""
_VERSIONED = (TableKind.TOPICS, TableKind.SUBSCRIPTION_GROUPS)


@dataclass
class JavaHistory:
    """What a master has said, from one cycle to the next."""

    entries: dict[TableKind, Mapping[str, Any]] = field(default_factory=dict)
    """Of tables that get a version of ours."""
    versions: dict[TableKind, DataVersion] = field(default_factory=dict)
    """Its own, of topics and groups."""


class JavaLink:
    """The way to a RocketMQ master."""

    def __init__(self, address: str, timeout: float, keeper: Keeper) -> None:
        """`address`: its listenPort. `timeout`: seconds it has for an answer. `keeper` has this node's tables."""
        self.address: str | None = address
        self._client_address = address
        self._timeout = timeout
        self._keeper = keeper
        self._seen = JavaHistory()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["JavaTables"]:
        """See MasterLink."""
        client = RemotingClient(self._client_address, connect_seconds=self._timeout)
        try:
            yield JavaTables(client, self._timeout, self._keeper, self._seen)
        finally:
            await client.close()


class JavaTables:
    """See MasterTables."""

    def __init__(self, client: RemotingClient, timeout: float, keeper: Keeper, seen: JavaHistory) -> None:
        """`seen`: what the cycles before have found."""
        self._client = client
        self._seen = seen
        self._timeout = timeout
        self._keeper = keeper
        self._found: dict[TableKind, Content | TandemError] = {}

    async def versions(self) -> Mapping[TableKind, DataVersion]:
        """See MasterTables; of topics and groups, which are asked for here. Raises PeerGone: it cannot be reached."""
        await self._client.connection()
        for kind in _VERSIONED:
            try:
                self._found[kind] = self._continued(kind, await self._ask(kind))
            except TandemError as error:  # of one table; the others are copied
                self._found[kind] = error
        return {kind: found.version for kind, found in self._found.items() if isinstance(found, Content)}

    async def whole(self, kind: TableKind) -> Content:
        """See MasterTables."""
        found = self._found.get(kind)
        if isinstance(found, TandemError):
            raise found
        masters = found or await self._ask(kind)
        if kind is TableKind.CONSUMER_OFFSETS:
            masters = Content(masters.version, counted(self._keeper.offsets, masters.entries))
        return masters if kind in _VERSIONED else self._versioned(kind, masters)

    async def commit(self, commits: Sequence[PendingCommit]) -> int:
        """See MasterTables: it takes none."""
        return 0

    async def request_modes(self, check: Check) -> str | None:
        """See MasterTables; 4.9 keeps none. Its versions are its tables. Raises MasterAway, PeerGone."""
        answer = await self._client.ask(Command(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, fields={}), self._timeout)
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise MasterAway(f"{self.address} answers {answer.code} for request modes: {answer.remark}")
        return bytes(answer.body).decode("utf-8", "replace")

    def _continued(self, kind: TableKind, masters: Content) -> Content:
        """The table, with a version that is not older than ours if it goes on with what ours came from."""
        own, before = self._keeper.table(kind), self._seen.versions.get(kind)
        goes_on = before is not None and not masters.version.older_than(before)
        if not goes_on and not own.entries.keys() <= masters.entries.keys():
            return masters
        self._seen.versions[kind] = masters.version
        counts_anew = masters.version.older_than(own.version)
        same_state = masters.version.state_version == own.version.state_version
        return self._versioned(kind, masters) if counts_anew and same_state else masters

    def _versioned(self, kind: TableKind, masters: Content) -> Content:
        """The table with the version of ours if nothing is new, else with the next, of the master's mastership."""
        own, last = self._keeper.table(kind), self._seen.entries.get(kind)
        self._seen.entries[kind] = masters.entries
        state, now = masters.version.state_version, time.time_ns() // 1_000_000
        if own.version.state_version == state and masters.entries in (own.entries, last):
            return Content(own.version, masters.entries)
        return Content(DataVersion(state, max(now, own.version.timestamp), own.version.counter + 1), masters.entries)

    async def _ask(self, kind: TableKind) -> Content:
        """A table, as it stands in the master's answer. Raises MasterAway, BrokenTransfer, or why there is none."""
        answer = await self._client.ask(Command(ASKED[kind], fields={}), self._timeout)
        if answer.code != ResponseCode.SUCCESS:
            raise MasterAway(f"{self.address} answers {answer.code} for {kind.file_name}: {answer.remark}")
        try:
            document: dict[str, Any] = java_json.loads(bytes(answer.body))
            found = self._keeper.table(kind).read(document)
        except (ValueError, RecursionError) as error:
            raise BrokenTransfer(f"The {kind.file_name} of {self.address} makes no sense: {error}.") from None
        return Content(found.version, found.entries)

    @property
    def address(self) -> str:
        """Of the master."""
        return self._client.address


def counted(own: ConsumerOffsetTable, theirs: Mapping[str, GroupQueueOffsets]) -> dict[str, GroupQueueOffsets]:
    """A master's offsets with resets counted as `own` counts them: one more where the master has gone back."""
    return {key: _counted(own, key, entry) for key, entry in theirs.items()}


def _counted(own: ConsumerOffsetTable, key: str, theirs: GroupQueueOffsets) -> GroupQueueOffsets:
    ours, pending = own.entries.get(key), own.pending.get(key, frozenset())
    if ours is None or not own.followed:
        return theirs
    resets: dict[int, int] = {}
    for queue, offset in theirs.offsets.items():
        count, before = ours.at(queue)
        went_back = offset < before and queue not in pending
        if count or went_back:
            resets[queue] = count + went_back
    return GroupQueueOffsets(theirs.offsets, resets)
