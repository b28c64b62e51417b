"""What the masters' stores see: groups at work, what is delivered later, transactions that have not ended."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from tandemmq.admin.books.books import Book, Books
from tandemmq.admin.cluster.brokers import of_broker
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError, BadAdminRequest
from tandemmq.admin.v1 import admin_pb2
from tandemmq.delivery.v1 import operations_pb2

MOST_HALVES = 1000


class SeenGroups(NamedTuple):
    """What stores see of groups."""

    views: dict[tuple[str, str], operations_pb2.GroupView]
    """By broker and group."""
    problems: list[str]
    """What is missing, in words."""


async def group_views(books: Sequence[Book], names: Sequence[str], *, with_members: bool = False) -> SeenGroups:
    """How groups stand at each broker. A store that does not say it is a problem, and no error."""
    seen = SeenGroups({}, [])
    if not names:
        return seen
    request = operations_pb2.ViewGroupsRequest(groups=names, with_members=with_members)

    async def ask(book: Book) -> None:
        try:
            answer = await book.node.ask("store", book.node.operations.ViewGroups(request))
        except AdminError as error:
            if book.store is not None:  # else it is told already that no store answers
                seen.problems.append(_silent(book.broker, book.node, error, "what groups hold"))
            return
        seen.views.update({(book.broker, view.group): view for view in answer.groups})

    await asyncio.gather(*map(ask, books))
    seen.problems.sort()
    return seen


class Waiting:
    """Looks at what waits."""

    def __init__(self, books: Books) -> None:
        self._brokers = books.brokers

    async def get(self, request: admin_pb2.GetWaitingRequest) -> admin_pb2.GetWaitingResponse:
        """See admin.proto. Raises BadAdminRequest, NotFound."""
        if not 0 <= request.limit <= MOST_HALVES:
            raise BadAdminRequest(f"limit is {request.limit}: 0 to {MOST_HALVES} are allowed")
        found = of_broker(await self._brokers.standings(), request.broker)
        ask = operations_pb2.ViewWaitingRequest(limit=request.limit)
        response = admin_pb2.GetWaitingResponse()

        async def look(broker: str, node: KnownNode) -> admin_pb2.BrokerWaiting | str:
            try:
                waiting = await node.ask("store", node.operations.ViewWaiting(ask))
            except AdminError as error:
                return _silent(broker, node, error, "what waits")
            return admin_pb2.BrokerWaiting(broker=broker, waiting=waiting)

        answers = await asyncio.gather(*(look(name, nodes[0].node) for name, nodes in sorted(found.items())))
        for answer in answers:
            if isinstance(answer, str):
                response.problems.append(answer)
            else:
                response.brokers.append(answer)
        return response


def _silent(broker: str, node: KnownNode, error: AdminError, what: str) -> str:
    return f"{what} at {broker} is missing: the store of {node.name} says {getattr(error, 'reason', error.message)}"
