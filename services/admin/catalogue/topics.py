"""Topics with the ends of their queues."""

import asyncio

from tandemmq.admin.books.books import Book, Books, merged_names, problems_of
from tandemmq.admin.books.store_times import MessagePlace, store_times
from tandemmq.admin.catalogue.listing import checked_limit, matcher, page_of
from tandemmq.admin.catalogue.merging import check_presence, check_put, merged, to_change
from tandemmq.admin.catalogue.topic_kinds import topic_kind
from tandemmq.admin.catalogue.usable import usable_topic
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.consuming.progress import lag_in
from tandemmq.admin.errors import AlreadyExists, BadAdminRequest, NotFound
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.log_output import get_log
from tandemmq.metadata.v1 import metadata_pb2

log = get_log(__name__)

MOST_TIMES = 64
"""Queues of a broker whose last message is looked at."""


class Topics:
    """Lists, looks at and changes topics."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._brokers = books.brokers

    # -- looking ------------------------------------------------------------------------------------------------------

    async def list(self, request: admin_pb2.ListTopicsRequest) -> admin_pb2.ListTopicsResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotAnswering."""
        limit = checked_limit(request.limit)
        books = await self._books.read(request.broker)
        wanted, kinds = matcher(request.match), set(request.kinds)
        own = frozenset().union(*(book.own_topics for book in books))
        names = [name for name in merged_names(books, lambda book: book.topic_names) if wanted(name)]
        if kinds:
            names = [name for name in names if topic_kind(name, own) in kinds]
        page = page_of(names, request.after, limit)
        found = (topic_message(book, name) for name in page.names for book in books)
        return admin_pb2.ListTopicsResponse(
            topics=filter(None, found), total=page.total, next=page.next, problems=problems_of(books)
        )

    async def get(self, request: admin_pb2.GetTopicRequest) -> admin_pb2.TopicDetails:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotAnswering."""
        name = _named(request.topic)
        books = await self._books.read(request.broker, topics=(name,))
        topics = [topic for book in books if (topic := topic_message(book, name)) is not None]
        if not topics:
            raise NotFound(f"there is no topic {name}", remedy=_missing(books))
        queues = await asyncio.gather(*(_queues(book, name) for book in books))
        return admin_pb2.TopicDetails(
            topics=topics,
            queues=(queue for of_book in queues for queue in of_book),
            groups=_progress(books, name),
            problems=problems_of(books),
        )

    # -- changing -----------------------------------------------------------------------------------------------------

    async def put(self, request: admin_pb2.PutTopicRequest) -> admin_pb2.PutTopicResponse:
        """See admin.proto. Raises BadAdminRequest, AlreadyExists, NotFound, NotPossible, CallRefused, ServiceAway."""
        name = _named(request.config.name)
        check_put(request)
        masters = await self._brokers.masters(request.broker)
        present = await asyncio.gather(*(_config(node, name) for _, node in masters))
        warnings: list[str] = []
        has = [(broker, config is not None) for (broker, _), config in zip(masters, present, strict=True)]
        check_presence(f"topic {name}", request, has)
        for (broker, node), before in zip(masters, present, strict=True):
            config = merged(before, request.config, request.fields)
            warnings += _warnings(broker, before, config)
            put = metadata_pb2.PutTopicsRequest(topics=[config], create_only=before is None)
            answer = await node.ask("metasync", node.metasync.PutTopics(put))
            if answer.existing:
                what = f"topic {name}"
                raise AlreadyExists(f"{what} exists: somebody has just created it", remedy=to_change(what))
            await self._see(node, answer.version)
            if before is None:
                await usable_topic(node, config)
        books = await self._books.read(request.broker, topics=(name,))
        for warning in warnings:
            log.warning("a topic was changed", what=warning)
        topics = filter(None, (topic_message(book, name) for book in books))
        return admin_pb2.PutTopicResponse(topics=topics, warnings=warnings)

    async def delete(self, request: admin_pb2.DeleteTopicRequest) -> admin_pb2.DeleteTopicResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound, NotPossible, CallRefused, ServiceAway."""
        name = _named(request.topic)
        masters = await self._brokers.masters(request.broker)
        books = await self._books.read(request.broker, topics=(name,))
        groups = {group for book in books if book.tables is not None for group in book.tables.groups_in(name)}
        having = []
        for broker, node in masters:
            delete = metadata_pb2.DeleteTopicsRequest(names=[name])
            answer = await node.ask("metasync", node.metasync.DeleteTopics(delete))
            if answer.deleted:
                having.append(broker)
                await self._see(node, answer.version)
        if not having:
            raise NotFound(f"there is no topic {name}")
        return admin_pb2.DeleteTopicResponse(brokers=having, groups=sorted(groups))

    async def _see(self, node: KnownNode, version: metadata_pb2.DataVersion) -> None:
        """Who asks next finds the change."""
        await self._books.see(node, lambda tables: tables.reached(metadata_pb2.TOPICS, version))


def _warnings(broker: str, before: metadata_pb2.TopicConfig | None, after: metadata_pb2.TopicConfig) -> list[str]:
    """What people should know of a change of a topic."""
    if before is None:
        return []
    found, name = [], after.name
    if before.write_queues != after.write_queues:
        found.append(
            f"{name} on {broker} has {after.write_queues} queues to write to instead of {before.write_queues}: message "
            "groups go to other queues from now on. New messages of a group may overtake those that still wait in its "
            "old queue."
        )
    if after.read_queues < before.read_queues:
        found.append(
            f"{name} on {broker} has {after.read_queues} queues to read instead of {before.read_queues}: what waits in "
            "the others is not received."
        )
    return found


def topic_message(book: Book, name: str) -> admin_pb2.Topic | None:
    """A broker's topic; None if it has none of that name."""
    config = book.tables.topic(name) if book.tables is not None else None
    told = book.ends.topics.get(name) if book.ends is not None else None
    if config is None and not book.is_told(name):
        return None
    kind = topic_kind(name, book.own_topics)
    orphaned = config is None and book.tables is not None and kind != admin_pb2.SYSTEM
    if config is None:
        config = metadata_pb2.TopicConfig(name=name)
        if told is not None:
            config.read_queues, config.write_queues, config.perm = told.read_queues, told.write_queues, told.perm
    topic = admin_pb2.Topic(broker=book.broker, config=config, kind=kind, orphaned=orphaned)
    if book.ends is not None:
        queues = book.ends.queues(name)
        topic.messages, topic.queues = book.ends.messages(name), len(queues)
        topic.node = "" if book.store is None else book.store.name
        if not any(queue.rebuilding for queue in queues.values()):
            topic.written = sum(queue.high for queue in queues.values())
    return topic


async def _queues(book: Book, topic: str) -> list[admin_pb2.TopicQueue]:
    if book.ends is None or book.store is None:
        return []
    ends = book.ends.queues(topic)
    looked_at = [queue for queue, end in list(ends.items())[:MOST_TIMES] if end.high > end.low and not end.rebuilding]
    times = await store_times(book.store, [MessagePlace(topic, queue, ends[queue].high - 1) for queue in looked_at])
    queues = []
    for at, (queue, end) in enumerate(ends.items()):
        last_ms = 0 if end.high <= end.low else times.get(MessagePlace(topic, queue, end.high - 1))
        queues.append(
            admin_pb2.TopicQueue(
                broker=book.broker,
                queue_id=queue,
                min_offset=end.low,
                max_offset=end.high,
                rebuilding=end.rebuilding,
                last_store_ms=last_ms if at < MOST_TIMES else None,
            )
        )
    return queues


def _progress(books: list[Book], topic: str) -> list[admin_pb2.TopicProgress]:
    """Every group with offsets in the topic, over all brokers."""
    lags: dict[str, int | None] = {}
    for book in books:
        if book.tables is None:
            continue
        for group in book.tables.groups_in(topic):
            if book.ends is None:
                lags.setdefault(group, None)
            else:
                lag = lag_in(book.ends.queues(topic), book.tables.offsets[group][topic])
                lags[group] = (lags.get(group) or 0) + lag
    return [admin_pb2.TopicProgress(group=group, lag=lag) for group, lag in sorted(lags.items())]


async def _config(node: KnownNode, name: str) -> metadata_pb2.TopicConfig | None:
    """As a master has it now. Raises ServiceAway, CallRefused."""
    listed = await node.ask("metasync", node.metasync.ListTopics(metadata_pb2.ListTopicsRequest(names=[name])))
    return listed.topics[0] if listed.topics else None


def _named(name: str) -> str:
    """Raises BadAdminRequest."""
    if not name:
        raise BadAdminRequest("the request names no topic")
    return name


def _missing(books: list[Book]) -> str | None:
    """Why something may be there although it was not found."""
    return "; ".join(problems_of(books)) or None
