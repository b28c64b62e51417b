"""Where single messages stand in the groups that have not dealt with them, as the masters' stores see it."""

import asyncio
from collections.abc import Sequence
from itertools import islice

from tandemmq.admin.books.books import Book
from tandemmq.admin.cluster.brokers import Brokers, of_broker
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError
from tandemmq.admin.v1 import admin_pb2
from tandemmq.delivery.v1 import operations_pb2

_MOST = 64
"""So many messages are asked for."""

_FAILING = 20


class FoundStandings:
    """Asks for those of messages that were found."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    async def add(self, page: admin_pb2.FindMessagesResponse) -> None:
        """To the first messages of a page; nothing where no master answers."""
        by_broker: dict[str, list[admin_pb2.FoundMessage]] = {}
        for one in islice((one for one in page.messages if not one.is_waiting), _MOST):
            by_broker.setdefault(one.broker, []).append(one)
        if by_broker:
            nodes = of_broker(await self._brokers.standings())
            await asyncio.gather(*(_add(nodes[broker][0].node, found) for broker, found in by_broker.items()))


async def failing_messages(books: Sequence[Book], group: str) -> list[admin_pb2.FailingMessage]:
    """Of each broker those that came most often; nothing of one whose store does not say."""
    request = operations_pb2.ViewMessagesRequest(group=group, limit=_FAILING)

    async def ask(book: Book) -> list[admin_pb2.FailingMessage]:
        try:
            answer = await book.node.ask("store", book.node.operations.ViewMessages(request))
        except AdminError:
            return []
        return [admin_pb2.FailingMessage(broker=book.broker, standing=one) for one in answer.messages]

    found = [one for of_book in await asyncio.gather(*map(ask, books)) for one in of_book]
    return sorted(found, key=lambda one: -one.standing.deliveries)


async def _add(node: KnownNode, found: list[admin_pb2.FoundMessage]) -> None:
    places = {_place(one): one for one in found}
    request = operations_pb2.ViewMessagesRequest()
    for topic, queue_id, offset in places:
        request.places.add(topic=topic, queue_id=queue_id, queue_offset=offset)
    try:
        answer = await node.ask("store", node.operations.ViewMessages(request))
    except AdminError:
        return
    for standing in answer.messages:
        place = standing.place
        if (one := places.get((place.topic, place.queue_id, place.queue_offset))) is not None:
            one.standings.append(standing)


def _place(one: admin_pb2.FoundMessage) -> tuple[str, int, int]:
    return one.message.topic, one.message.queue_id, one.message.queue_offset
