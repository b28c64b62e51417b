"""Subscription groups, and what they have not consumed."""

import asyncio
import heapq
import time
from collections.abc import Mapping

from tandemmq.admin.books.books import Book, Books, merged_names, problems_of
from tandemmq.admin.books.store_times import MessagePlace, store_times
from tandemmq.admin.books.tables import Tables
from tandemmq.admin.catalogue.listing import checked_limit, matcher, page_of
from tandemmq.admin.catalogue.merging import check_presence, check_put, merged, to_change
from tandemmq.admin.catalogue.usable import usable_group
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.consuming.progress import GroupPosition, position
from tandemmq.admin.consuming.standings import failing_messages
from tandemmq.admin.consuming.views import group_views
from tandemmq.admin.errors import AlreadyExists, BadAdminRequest, NotFound
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import dead_letter_topic
from tandemmq.delivery.v1.operations_pb2 import GroupView
from tandemmq.metadata.v1 import metadata_pb2

MOST_TIMES = 64
"""Queues of a broker whose oldest waiting message is looked at: those that lag most."""


class Groups:
    """Lists, looks at and changes groups."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._brokers = books.brokers

    # -- looking ------------------------------------------------------------------------------------------------------

    async def list(self, request: admin_pb2.ListGroupsRequest) -> admin_pb2.ListGroupsResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotAnswering."""
        limit = checked_limit(request.limit)
        books = await self._books.read(request.broker)
        wanted = matcher(request.match)
        if request.min_lag > 0:
            lags = [await book.lags() for book in books]
            names = {group for of_book in lags for group, lag in of_book.items() if lag >= request.min_lag}
        else:
            names = merged_names(books, lambda book: book.group_names)
        page = page_of((name for name in names if wanted(name)), request.after, limit)
        seen = await group_views(books, page.names)
        found = (group_message(book, name, seen.views) for name in page.names for book in books)
        return admin_pb2.ListGroupsResponse(
            groups=filter(None, found),
            total=page.total,
            next=page.next,
            problems=(*problems_of(books), *seen.problems),
        )

    async def get(self, request: admin_pb2.GetGroupRequest) -> admin_pb2.GroupDetails:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotAnswering."""
        name = _named(request.group)
        books = await self._books.read(request.broker, topics=())  # the tables say which topics count
        tables = [book.tables for book in books if book.tables is not None]
        topics = {topic for one in tables for topic in one.offsets.get(name, ())}
        books = await self._books.read(request.broker, topics=(*sorted(topics), dead_letter_topic(name)))
        seen = await group_views(books, [name], with_members=True)
        groups = [group for book in books if (group := group_message(book, name, seen.views)) is not None]
        if not groups:
            missing = "; ".join(problems_of(books))
            raise NotFound(f"there is no group {name}", remedy=missing or None)
        progress = await asyncio.gather(*(_progress(book, name) for book in books))
        failing = await failing_messages(books, name)
        return admin_pb2.GroupDetails(
            groups=groups,
            progress=(one for of_book in progress for one in of_book),
            problems=(*problems_of(books), *seen.problems),
            failing=failing,
        )

    # -- changing -----------------------------------------------------------------------------------------------------

    async def put(self, request: admin_pb2.PutGroupRequest) -> admin_pb2.PutGroupResponse:
        """See admin.proto. Raises BadAdminRequest, AlreadyExists, NotFound, NotPossible, CallRefused, ServiceAway."""
        name = _named(request.config.name)
        check_put(request)
        masters = await self._brokers.masters(request.broker)
        present = await asyncio.gather(*(group_config(node, name) for _, node in masters))
        has = [(broker, config is not None) for (broker, _), config in zip(masters, present, strict=True)]
        check_presence(f"group {name}", request, has)
        for (_, node), before in zip(masters, present, strict=True):
            config = merged(before, request.config, request.fields)
            put = metadata_pb2.PutGroupsRequest(groups=[config], create_only=before is None)
            answer = await node.ask("metasync", node.metasync.PutGroups(put))
            if answer.existing:
                what = f"group {name}"
                raise AlreadyExists(f"{what} exists: somebody has just created it", remedy=to_change(what))
            await self._see(node, answer.version)
            if before is None:
                await usable_group(node, config)
        books = await self._books.read(request.broker, topics=(dead_letter_topic(name),))
        return admin_pb2.PutGroupResponse(groups=filter(None, (group_message(book, name) for book in books)))

    async def delete(self, request: admin_pb2.DeleteGroupRequest) -> admin_pb2.DeleteGroupResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotPossible, CallRefused, ServiceAway."""
        name = _named(request.group)
        masters = await self._brokers.masters(request.broker)
        with_offsets = await asyncio.gather(*(_has_offsets(node, name) for _, node in masters))
        having = []
        for (broker, node), offsets in zip(masters, with_offsets, strict=True):
            delete = metadata_pb2.DeleteGroupsRequest(names=[name], keep_offsets=request.keep_offsets)
            answer = await node.ask("metasync", node.metasync.DeleteGroups(delete))
            if answer.deleted or (offsets and not request.keep_offsets):
                having.append(broker)
                await self._see(node, answer.version, "" if request.keep_offsets else name)
        if not having:
            raise NotFound(f"there is no group {name}")
        return admin_pb2.DeleteGroupResponse(brokers=having)

    async def _see(self, node: KnownNode, version: metadata_pb2.DataVersion, without_offsets: str = "") -> None:
        """Who asks next finds the change, and no offsets of a group that went."""

        def seen(tables: Tables) -> bool:
            return tables.reached(metadata_pb2.SUBSCRIPTION_GROUPS, version) and without_offsets not in tables.offsets

        await self._books.see(node, seen)


def group_message(
    book: Book, name: str, views: Mapping[tuple[str, str], GroupView] | None = None
) -> admin_pb2.Group | None:
    """A broker's group; None if it has none of that name. `views`: by broker and group."""
    if book.tables is None:
        return None
    config, topics = book.tables.group(name), book.tables.offsets.get(name)
    if config is None and topics is None:
        return None
    group = admin_pb2.Group(
        broker=book.broker,
        config=config or metadata_pb2.SubscriptionGroupConfig(name=name),
        lag=book.lag(name),
        topics=sorted(topics or ()),
        orphaned=config is None,
    )
    if book.ends is not None:
        group.dead_letters = book.ends.messages(dead_letter_topic(name))
    view = views.get((book.broker, name)) if views else None
    if view is not None:
        group.view.CopyFrom(view)
    return group


async def group_config(node: KnownNode, name: str) -> metadata_pb2.SubscriptionGroupConfig | None:
    """As a master has it now. Raises ServiceAway, CallRefused."""
    listed = await node.ask("metasync", node.metasync.ListGroups(metadata_pb2.ListGroupsRequest(names=[name])))
    return listed.groups[0] if listed.groups else None


async def _progress(book: Book, group: str) -> list[admin_pb2.QueueProgress]:
    """In every queue that the group has an offset in, by topic and queue."""
    if book.tables is None or book.ends is None or book.store is None:
        return []
    offsets = sorted(book.tables.offsets.get(group, {}).items())
    positions = {
        (topic, queue): position(book.ends, topic, queue, offset)
        for topic, queues in offsets
        for queue, offset in sorted(queues.items())
    }
    waiting = {
        MessagePlace(*place, one.oldest_waiting): one.lag or 0
        for place, one in positions.items()
        if one.oldest_waiting is not None
    }
    times = await store_times(book.store, heapq.nlargest(MOST_TIMES, waiting, key=lambda place: waiting[place]))
    now = time.time_ns() // 1_000_000
    return [
        _progress_message(book.broker, topic, queue, one, _age(times, topic, queue, one, now))
        for (topic, queue), one in positions.items()
    ]


def _age(times: dict[MessagePlace, int], topic: str, queue: int, where: GroupPosition, now_ms: int) -> int | None:
    """Of the oldest message that waits, ms."""
    if where.oldest_waiting is None:
        return 0 if where.lag == 0 else None
    stored = times.get(MessagePlace(topic, queue, where.oldest_waiting))
    return None if stored is None else max(0, now_ms - stored)


def _progress_message(
    broker: str, topic: str, queue: int, where: GroupPosition, age_ms: int | None
) -> admin_pb2.QueueProgress:
    return admin_pb2.QueueProgress(
        broker=broker,
        topic=topic,
        queue_id=queue,
        min_offset=where.end.low,
        max_offset=where.end.high,
        offset=where.offset,
        lag=where.lag,
        lag_ms=age_ms,
        trouble=where.trouble,
    )


async def _has_offsets(node: KnownNode, group: str) -> bool:
    """Raises ServiceAway, CallRefused."""
    query = metadata_pb2.QueryOffsetsRequest(queries=[metadata_pb2.OffsetQuery(group=group)])
    return bool((await node.ask("metasync", node.metasync.QueryOffsets(query))).offsets)


def _named(name: str) -> str:
    """Raises BadAdminRequest."""
    if not name:
        raise BadAdminRequest("the request names no group")
    return name
