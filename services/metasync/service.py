"""`tandemmq.metadata.v1.Metadata`; what each call means is written in the contract, metadata.proto."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from tandemmq.common.topic_names import is_system_group
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.metasync import translate
from tandemmq.metasync import validation as valid
from tandemmq.metasync.errors import BadTableRequest
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.metrics import MetasyncMetrics
from tandemmq.metasync.node import OwnNode
from tandemmq.metasync.offset_tables import NONE, GroupQueueOffsets, offsets_key, topic_and_group
from tandemmq.metasync.standing import NodeRole
from tandemmq.metasync.status import status_response
from tandemmq.metasync.tables import Change, ConfigTable, Content, TableKind

Context = grpc.aio.ServicerContext[Any, Any]
Message = TypeVar("Message", pb.TopicConfig, pb.SubscriptionGroupConfig)

DEFAULT_LIMIT = 1_000
PAGE_BYTES = 2 << 20
"""An answer to a list call ends when it has so much."""


class MetadataServicer(metadata_pb2_grpc.MetadataServicer):
    """Answers from a `Keeper`'s tables, in the role that the node has."""

    def __init__(self, keeper: Keeper, node: OwnNode, metrics: MetasyncMetrics) -> None:
        self.keeper = keeper
        self.node = node
        self.metrics = metrics

    # -- topics -----------------------------------------------------------------------------------------------------

    async def ListTopics(self, request: pb.ListTopicsRequest, context: Context) -> pb.ListTopicsResponse:
        """Topics by name, or all in pages."""
        content = self.keeper.topics.content
        found, after = _page(content.entries, request, translate.topic_message)
        return pb.ListTopicsResponse(
            topics=found, version=translate.version_message(content.version), total=len(content.entries), next=after
        )

    async def PutTopics(self, request: pb.PutTopicsRequest, context: Context) -> pb.PutTopicsResponse:
        """Create topics or replace their configuration."""
        valid.check_names("topic", [topic.name for topic in request.topics])
        if not request.create_only:
            for topic in request.topics:
                valid.check_not_system(topic.name, "change")
        outcome = await self._put(self.keeper.topics, request.topics, translate.topic_entry, request.create_only)
        entries = outcome.content.entries
        return pb.PutTopicsResponse(
            version=translate.version_message(outcome.content.version),
            topics=[translate.topic_message(topic.name, entries[topic.name]) for topic in request.topics],
            existing=outcome.existing,
        )

    async def DeleteTopics(self, request: pb.DeleteTopicsRequest, context: Context) -> pb.DeleteTopicsResponse:
        """Delete topics and what consumers committed to them."""
        self.node.check_master()
        valid.check_names("topic", request.names)
        for name in request.names:
            valid.check_not_system(name, "delete")
        deleted, content = await self._delete(self.keeper.topics, request.names)
        await self._drop_offsets(self.keeper.offsets.keys_of(topics=set(request.names)))
        return pb.DeleteTopicsResponse(version=translate.version_message(content.version), deleted=deleted)

    # -- groups -----------------------------------------------------------------------------------------------------

    async def ListGroups(self, request: pb.ListGroupsRequest, context: Context) -> pb.ListGroupsResponse:
        """Groups by name, or all in pages."""
        content = self.keeper.groups.content
        found, after = _page(content.entries, request, translate.group_message)
        return pb.ListGroupsResponse(
            groups=found, version=translate.version_message(content.version), total=len(content.entries), next=after
        )

    async def PutGroups(self, request: pb.PutGroupsRequest, context: Context) -> pb.PutGroupsResponse:
        """Create groups or replace their configuration."""
        valid.check_names("group", [group.name for group in request.groups])
        outcome = await self._put(self.keeper.groups, request.groups, translate.group_entry, request.create_only)
        entries = outcome.content.entries
        return pb.PutGroupsResponse(
            version=translate.version_message(outcome.content.version),
            groups=[translate.group_message(group.name, entries[group.name]) for group in request.groups],
            existing=outcome.existing,
        )

    async def DeleteGroups(self, request: pb.DeleteGroupsRequest, context: Context) -> pb.DeleteGroupsResponse:
        """Delete groups and, unless told otherwise, their offsets."""
        self.node.check_master()
        valid.check_names("group", request.names)
        deleted, content = await self._delete(self.keeper.groups, request.names)
        if not request.keep_offsets:
            await self._drop_offsets(self.keeper.offsets.keys_of(groups=set(request.names)))
        return pb.DeleteGroupsResponse(version=translate.version_message(content.version), deleted=deleted)

    # -- consumer offsets -------------------------------------------------------------------------------------------

    async def CommitOffsets(self, request: pb.CommitOffsetsRequest, context: Context) -> pb.CommitOffsetsResponse:
        """Commit consumer offsets; on a slave they wait to be handed over."""
        standing = self.node.standing
        if request.reset or standing.role is NodeRole.FENCED:
            self.node.check_master(standing)
        _check_commits(request.commits)
        if standing.role is NodeRole.MASTER:
            await self._create_groups(request.commits)
            standing = self.node.standing  # another one may be the master by now
            if standing.role is NodeRole.FENCED:
                self.node.check_master(standing)
        on_slave = standing.role is not NodeRole.MASTER
        changed: set[str] = set()
        results = [self._commit(commit, request.reset, on_slave, changed) for commit in request.commits]
        if changed:
            if not on_slave:
                self.keeper.offsets.changed(self.keeper.stamp())
            self.keeper.changed(TableKind.CONSUMER_OFFSETS, changed)
        if request.reset:
            await self.keeper.flush(TableKind.CONSUMER_OFFSETS)
        self.metrics.committed(results)
        return pb.CommitOffsetsResponse(results=results)

    async def QueryOffsets(self, request: pb.QueryOffsetsRequest, context: Context) -> pb.QueryOffsetsResponse:
        """Consumer offsets of many queues."""
        if not 0 < len(request.queries) <= valid.MOST_NAMES:
            raise BadTableRequest(
                f"The request has {len(request.queries):,} queries: 1 to {valid.MOST_NAMES:,} are allowed."
            )
        for query in request.queries:
            valid.check_group_name(query.group)
            if query.topic:
                valid.check_topic_name(query.topic)
        offsets = self.keeper.offsets
        of_groups: dict[str, list[str]] = {}
        for key in offsets.keys_of(groups={query.group for query in request.queries if not query.topic}):
            of_groups.setdefault(topic_and_group(key)[1], []).append(key)
        found: list[pb.GroupOffsets] = []
        for query in request.queries:
            keys = [offsets_key(query.topic, query.group)] if query.topic else of_groups.get(query.group, [])
            entries = ((key, offsets.entries.get(key)) for key in keys)
            found += [
                translate.offsets_message(key, _of_queues(entry, query.queue_ids)) for key, entry in entries if entry
            ]
        return pb.QueryOffsetsResponse(offsets=[one for one in found if one.offsets])

    async def DeleteOffsets(self, request: pb.DeleteOffsetsRequest, context: Context) -> pb.DeleteOffsetsResponse:
        """Delete a group's offsets."""
        self.node.check_master()
        valid.check_group_name(request.group)
        if request.topic:
            valid.check_topic_name(request.topic)
        keys = self.keeper.offsets.keys_of(groups={request.group}, topics={request.topic} if request.topic else None)
        await self._drop_offsets(keys)
        return pb.DeleteOffsetsResponse(topics=[topic_and_group(key)[0] for key in keys])

    # -- delay offsets ----------------------------------------------------------------------------------------------

    async def GetDelayOffsets(self, request: pb.GetDelayOffsetsRequest, context: Context) -> pb.GetDelayOffsetsResponse:
        """How far delayed messages have been delivered."""
        content = self.keeper.delays.content
        return pb.GetDelayOffsetsResponse(
            offsets=_delay_messages(content.entries), version=translate.version_message(content.version)
        )

    async def PutDelayOffsets(self, request: pb.PutDelayOffsetsRequest, context: Context) -> pb.PutDelayOffsetsResponse:
        """Set delay offsets."""
        self.node.check_master()
        valid.check_names("level", [str(one.level) for one in request.offsets])
        for one in request.offsets:
            valid.check_number("level", one.level, 1, (1 << 31) - 1)
            valid.check_offset(f"The offset of level {one.level}", one.offset)
        delays = self.keeper.delays
        before = dict(delays.entries)
        stands = {one.level: delays.put(one.level, one.offset, reset=request.reset) for one in request.offsets}
        changed = {str(level) for level in stands if before.get(str(level)) != stands[level]}
        if changed:
            delays.changed(self.keeper.stamp())
            self.keeper.changed(TableKind.DELAY_OFFSETS, changed)
        if request.reset:
            await self.keeper.flush(TableKind.DELAY_OFFSETS)
        return pb.PutDelayOffsetsResponse(
            offsets=[pb.DelayOffset(level=level, offset=offset) for level, offset in stands.items()],
            version=translate.version_message(delays.version),
        )

    # -- whole tables -----------------------------------------------------------------------------------------------

    async def GetTable(self, request: pb.GetTableRequest, context: Context) -> AsyncIterator[pb.TablePage]:
        """A table as it is now."""
        kind = _kind(request.table)
        self.metrics.tables_sent[kind] += 1
        for page in translate.pages(kind, self.keeper.content(kind)):
            yield page

    async def Watch(self, request: pb.WatchRequest, context: Context) -> AsyncIterator[pb.TablePage]:
        """Whole tables, then what changes."""
        kinds = [_kind(table) for table in request.tables]
        valid.check_names("table", [kind.name for kind in kinds])
        watcher = self.keeper.hub.join(kinds)
        try:
            while True:
                kind, keys = await watcher.next()
                for page in translate.pages(kind, self.keeper.content(kind, keys), keys):
                    yield page
        finally:
            self.keeper.hub.leave(watcher)

    async def GetRequestModes(self, request: pb.GetRequestModesRequest, context: Context) -> pb.GetRequestModesResponse:
        """Which groups pop which topics, on the master."""
        return pb.GetRequestModesResponse(document_json=await self.node.request_modes())

    async def Status(self, request: pb.StatusRequest, context: Context) -> pb.StatusResponse:
        """Role, versions, and how copying goes."""
        return status_response(self.keeper, self.node)

    # -- parts ------------------------------------------------------------------------------------------------------

    async def _put(
        self,
        table: ConfigTable,
        messages: Sequence[Any],
        entry_of: Callable[[Any, Mapping[str, Any] | None], dict[str, Any]],
        create_only: bool,
    ) -> "_Put":
        """Make the entries, checked as the table is when their turn comes. Raises NotTheMaster, BadTableRequest."""
        existing: list[str] = []

        def plan() -> Change | None:
            self.node.check_master()
            before = table.content.entries
            entries = {message.name: entry_of(message, before.get(message.name)) for message in messages}
            if create_only:
                existing.extend(name for name in entries if name in before)
            return table.put(entries, self.keeper.stamp(), create_only=create_only)

        change = await self.keeper.change(table, plan)
        return _Put(change.content if change is not None else table.content, existing)

    async def _delete(self, table: ConfigTable, names: Iterable[str]) -> tuple[list[str], Content]:
        gone: list[str] = []

        def plan() -> Change | None:
            self.node.check_master()
            gone.extend(name for name in names if name in table.content.entries)
            return table.delete(gone, self.keeper.stamp())

        change = await self.keeper.change(table, plan)
        return gone, change.content if change is not None else table.content

    async def _drop_offsets(self, keys: list[str]) -> None:
        """Delete offsets, at once and for good. Raises DocumentNotSaved."""
        gone = self.keeper.offsets.delete(keys)
        if gone:
            self.keeper.offsets.changed(self.keeper.stamp())
            self.keeper.changed(TableKind.CONSUMER_OFFSETS, gone)
            await self.keeper.flush(TableKind.CONSUMER_OFFSETS)

    async def _create_groups(self, commits: Iterable[pb.OffsetCommit]) -> None:
        """Groups of commits to known topics, if the settings want that; never for what a slave hands over."""
        if not self.node.auto_create_groups:
            return
        known, topics = self.keeper.groups.content.entries, self.keeper.topics.content.entries
        missing = {one.group for one in commits if one.group not in known and one.topic in topics}
        missing -= {one.group for one in commits if one.HasField("resets")}
        if missing:
            groups = [pb.SubscriptionGroupConfig(name=name) for name in sorted(missing)]
            await self._put(self.keeper.groups, groups, translate.group_entry, create_only=True)

    def _commit(self, commit: pb.OffsetCommit, reset: bool, on_slave: bool, changed: set[str]) -> pb.CommitResult:
        offsets = self.keeper.offsets
        key, queue = offsets_key(commit.topic, commit.group), commit.queue_id
        resets, before = (offsets.entries.get(key) or GroupQueueOffsets({})).at(queue)
        if commit.topic not in self.keeper.topics.content.entries:
            return pb.CommitResult(status=pb.UNKNOWN_TOPIC, offset=NONE)
        if commit.group not in self.keeper.groups.content.entries and not is_system_group(commit.group):
            return pb.CommitResult(status=pb.UNKNOWN_GROUP, offset=NONE)
        if commit.HasField("resets") and commit.resets != resets:
            return pb.CommitResult(status=pb.OUTDATED, offset=before)
        if reset:
            offsets.reset(key, queue, commit.offset)
        elif commit.offset <= before:
            status = pb.COMMITTED if commit.offset == before else pb.KEPT_GREATER
            return pb.CommitResult(status=status, offset=before)
        else:
            offsets.commit(key, queue, commit.offset, on_slave=on_slave)
        changed.add(key)
        return pb.CommitResult(status=pb.COMMITTED, offset=commit.offset)


class _Put:
    """Outcome of a put."""

    __slots__ = ("content", "existing")

    def __init__(self, content: Content, existing: list[str]) -> None:
        self.content = content
        self.existing = existing


def _page(
    entries: Mapping[str, Any], request: pb.ListTopicsRequest | pb.ListGroupsRequest, message_of: Callable[..., Message]
) -> tuple[list[Message], str]:
    """What to answer to a list call, and where the next page begins. Raises BadTableRequest."""
    if request.names:
        valid.check_names("name", request.names)
        return [message_of(name, entries[name]) for name in request.names if name in entries], ""
    valid.check_number("limit", request.limit, 0, valid.MOST_NAMES)
    names = sorted(name for name in entries if name > request.after)
    page: list[Message] = []
    size = 0
    for name in names[: request.limit or DEFAULT_LIMIT]:
        if size > PAGE_BYTES:
            break
        page.append(message_of(name, entries[name]))
        size += page[-1].ByteSize()
    return page, names[len(page) - 1] if len(page) < len(names) else ""


def _check_commits(commits: Sequence[pb.OffsetCommit]) -> None:
    if not 0 < len(commits) <= valid.MOST_NAMES:
        raise BadTableRequest(f"The request has {len(commits):,} commits: 1 to {valid.MOST_NAMES:,} are allowed.")
    for commit in commits:
        valid.check_topic_name(commit.topic)
        valid.check_group_name(commit.group)
        valid.check_number(f"queue_id of {commit.topic}", commit.queue_id, 0, (1 << 31) - 1)
        valid.check_offset(f"The offset of {commit.topic}, queue {commit.queue_id}", commit.offset)


def _kind(table: int) -> TableKind:
    """Raises BadTableRequest."""
    try:
        return TableKind(table)
    except ValueError:
        raise BadTableRequest(f"There is no table {table}: 1 to {len(TableKind)} are allowed.") from None


def _of_queues(entry: GroupQueueOffsets, queues: Sequence[int]) -> GroupQueueOffsets:
    if not queues:
        return entry
    return GroupQueueOffsets(
        {queue: entry.offsets[queue] for queue in queues if queue in entry.offsets},
        {queue: entry.resets[queue] for queue in queues if queue in entry.resets},
    )


def _delay_messages(entries: Mapping[str, int]) -> list[pb.DelayOffset]:
    levels = sorted((int(level), offset) for level, offset in entries.items())
    return [pb.DelayOffset(level=level, offset=offset) for level, offset in levels]
