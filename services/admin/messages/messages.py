"""Finding and sending messages."""

from collections.abc import AsyncGenerator

from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.consuming.standings import FoundStandings
from tandemmq.admin.errors import AdminError, BadAdminRequest, CallRefused, NotFound
from tandemmq.admin.messages.message_filter import MessageFilter
from tandemmq.admin.messages.postponed import mark_postponed, with_postponed
from tandemmq.admin.messages.reading import (
    Reader,
    Sieve,
    ask_each,
    checked_limit,
    found_message,
    gather_page,
    merge_by_time,
    read_place,
    spans_between,
)
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.slices import Slices
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.store.v1 import message_pb2, store_pb2

_DEFAULT_LIMIT, _MOST = 32, 1000

_ID_DIGITS = (32, 56)

_WRITE_SECONDS = 10.0
"""Beside adminTimeout: a store may wait for its disk and its slaves, and then says so (FLUSH_SLAVE_TIMEOUT)."""


class Messages:
    """Finds and sends."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._standings = FoundStandings(brokers)

    async def find(self, request: admin_pb2.FindMessagesRequest) -> admin_pb2.FindMessagesResponse:
        """See admin.proto.

        By key: newest first; by time: oldest first, unless `newest_first`. Raises BadAdminRequest; NotFound for no
        message of that id or place; ServiceAway if a store that may have it does not answer.
        """
        limit = checked_limit(request.limit, _DEFAULT_LIMIT, _MOST)
        by = request.WhichOneof("by")
        if by is None:
            raise BadAdminRequest("nothing says which messages: message_id, key, unique_key, place or time")
        if not request.topic and by != "message_id":
            raise BadAdminRequest(f"topic is missing: messages by {by} are looked for in one")
        wanted = self._sieve(request.filter) if request.HasField("filter") else None
        if wanted is not None and by not in ("key", "time"):
            raise BadAdminRequest(f"a filter has no meaning by {by}: only by key and by time")
        readers = await self._brokers.readers(request.broker)
        if by == "time":
            return await self._by_time(request, readers, limit, wanted)
        if by == "key":
            return await self._by_key(request, readers, limit, wanted)
        if by == "unique_key":
            page = await self._by_key(request, readers, limit)
        else:
            page = await (self._by_place if by == "place" else self._by_id)(request, readers)
            await self._standings.add(page)
        await self._add_consumers(page)
        return page

    def _sieve(self, wanted: admin_pb2.MessageFilter) -> Sieve:
        """Raises BadAdminRequest."""
        return Sieve(MessageFilter(wanted.text, wanted.where), Slices(self._brokers.timers))

    async def _by_id(
        self, request: admin_pb2.FindMessagesRequest, readers: list[Reader]
    ) -> admin_pb2.FindMessagesResponse:
        wanted = request.message_id.strip().upper()
        if len(wanted) not in _ID_DIGITS or set(wanted) - set("0123456789ABCDEF"):
            raise BadAdminRequest(
                f"{request.message_id!r} is no message id: it has 32 hex digits, 56 with an IPv6 address"
            )

        async def ask(_broker: str, node: KnownNode) -> store_pb2.ViewMessageResponse:
            asked = store_pb2.ViewMessageRequest(message_id=wanted, form=message_pb2.DECODED)
            return await node.ask("store", node.store.ViewMessage(asked))

        # Another broker may have some other message at the same place of its log.
        found = [
            (broker, answer.message)
            for broker, _, answer in await ask_each(readers, ask)
            if (answer.message.message_id == wanted or len(readers) == 1)
            and request.topic in ("", answer.message.topic)
        ]
        if not found:
            of = f" of topic {request.topic}" if request.topic else ""
            raise NotFound(f"there is no message {wanted}{of}: never written, or expired")
        broker, message = found[0]
        return admin_pb2.FindMessagesResponse(messages=[found_message(broker, message, with_body=request.with_bodies)])

    async def _by_place(
        self, request: admin_pb2.FindMessagesRequest, readers: list[Reader]
    ) -> admin_pb2.FindMessagesResponse:
        queue_id, offset = request.place.queue_id, request.place.offset

        async def ask(_broker: str, node: KnownNode) -> message_pb2.StoredMessage | None:
            return await read_place(node, request.topic, queue_id, offset)

        found = [
            found_message(broker, message, with_body=request.with_bodies)
            for broker, _, message in await ask_each(readers, ask)
            if message is not None
        ]
        if not found:
            raise NotFound(f"queue {queue_id} of topic {request.topic} has no message at offset {offset}")
        return admin_pb2.FindMessagesResponse(messages=found)

    async def _by_time(
        self,
        request: admin_pb2.FindMessagesRequest,
        readers: list[Reader],
        limit: int,
        wanted: Sieve | None,
    ) -> admin_pb2.FindMessagesResponse:
        time = request.time
        if time.begin_ms < 0 or time.end_ms < 0 or 0 < time.end_ms < time.begin_ms:
            raise BadAdminRequest(f"from {time.begin_ms} to {time.end_ms} ms is no stretch of time")
        queue_id = time.queue_id if time.HasField("queue_id") else None
        spans = await spans_between(readers, request.topic, time.begin_ms, time.end_ms, queue_id)
        messages = merge_by_time(request.topic, spans, newest_first=time.newest_first)
        return await gather_page(messages, limit, with_bodies=request.with_bodies, wanted=wanted)

    async def _by_key(
        self,
        request: admin_pb2.FindMessagesRequest,
        readers: list[Reader],
        limit: int,
        wanted: Sieve | None = None,
    ) -> admin_pb2.FindMessagesResponse:
        most = limit + 1 if wanted is None else _MOST

        async def ask(_broker: str, node: KnownNode) -> tuple[list[message_pb2.StoredMessage], bool]:
            return await with_postponed(node, request, most)

        found, cut = [], False
        for broker, _, (messages, more) in await ask_each(readers, ask):
            found += [(broker, message) for message in messages]
            cut = cut or more
        found.sort(key=lambda one: (-one[1].store_timestamp, -one[1].physical_offset))
        bodies = request.with_bodies
        page = await gather_page(_each(found), limit, with_bodies=bodies, wanted=wanted, at_hand=True)
        page.more = page.more or cut
        mark_postponed(page, request.topic)
        await self._standings.add(page)
        return page

    async def _add_consumers(self, page: admin_pb2.FindMessagesResponse) -> None:
        """Which groups are past a message; nothing where metasync does not answer."""
        for one in page.messages:
            if one.is_waiting:
                continue
            node = dict(await self._brokers.readers(one.broker))[one.broker]
            try:
                one.consumed_by.extend(await _groups_past(node, one.message))
            except AdminError:
                continue

    # -- sending ----------------------------------------------------------------------------------------------------

    async def send(self, request: admin_pb2.SendMessageRequest) -> admin_pb2.SendMessageResponse:
        """See admin.proto. Raises BadAdminRequest, NotPossible without a master, and what the store refuses."""
        if not request.topic:
            raise BadAdminRequest("topic is missing")
        broker, node = await self._master_for(request.topic, request.broker)
        message = message_pb2.Message(
            topic=request.topic,
            body=request.body,
            tag=request.tag,
            keys=request.keys,
            properties=request.properties,
            queue_id=request.queue_id if request.HasField("queue_id") else None,
        )
        return admin_pb2.SendMessageResponse(broker=broker, receipt=await put_message(node, message))

    async def _master_for(self, topic: str, broker: str) -> Reader:
        """The master to send to: of several brokers the first that has the topic already."""
        masters = await self._brokers.masters(broker)
        if len(masters) == 1:
            return masters[0]
        for name, node in masters:
            if await has_topic(node, topic):
                return name, node
        return masters[0]


async def has_topic(node: KnownNode, topic: str) -> bool:
    """Whether a store knows a topic. Raises AdminError."""
    try:
        await node.ask("store", node.store.ListQueues(store_pb2.ListQueuesRequest(topic=topic)))
    except CallRefused as error:
        if error.code == "NOT_FOUND":
            return False
        raise
    return True


async def put_message(node: KnownNode, message: message_pb2.Message) -> store_pb2.SendReceipt:
    """Store a message. Raises CallRefused with the store's own words, ServiceAway."""
    call = node.store.Send(store_pb2.SendRequest(message=message))
    return (await node.ask("store", call, node.timeout + _WRITE_SECONDS)).receipt


async def _groups_past(node: KnownNode, message: message_pb2.StoredMessage) -> list[str]:
    """Groups whose offset in the message's queue is behind it. Raises AdminError."""

    async def read() -> list[str]:
        request = metadata_pb2.GetTableRequest(table=metadata_pb2.CONSUMER_OFFSETS)
        return [
            one.group
            async for page in node.metasync.GetTable(request)
            for one in page.consumer_offsets
            if one.topic == message.topic and one.offsets.get(message.queue_id, 0) > message.queue_offset
        ]

    return sorted(await node.ask("metasync", read()))


async def _each(
    found: list[tuple[str, message_pb2.StoredMessage]],
) -> AsyncGenerator[tuple[str, message_pb2.StoredMessage], None]:
    for one in found:
        yield one
