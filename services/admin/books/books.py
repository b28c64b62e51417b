"""Books: what a broker's metasync and store know of topics, groups and queues, put together to make lists of."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tandemmq.admin.books.mirror import Mirror
from tandemmq.admin.books.queue_ends import EndsKeeper, QueueEnds
from tandemmq.admin.books.tables import Tables
from tandemmq.admin.cluster.brokers import Brokers, NodeStanding, of_broker
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.consuming.progress import lag_of
from tandemmq.admin.errors import AdminError, NotAnswering
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.slices import Slices


@dataclass(frozen=True)
class Book:
    """One broker, as its best node tells it. Look at it, never change it."""

    broker: str
    cluster: str
    node: KnownNode
    """The best node: the master while it answers."""
    tables: Tables | None
    """None if no metasync has answered."""
    ends: QueueEnds | None
    """None if no store answers."""
    store: KnownNode | None
    """Whose queue ends these are."""
    problems: tuple[str, ...] = ()
    """What is missing, in words."""
    own_topics: frozenset[str] = field(default=frozenset())
    """Names of broker and cluster, which every broker has topics of."""

    @property
    def topic_names(self) -> set[str]:
        """Topics that are configured or have queues."""
        names = set(self.tables.topics) if self.tables is not None else set()
        told = self.ends.topics if self.ends is not None else {}
        return names | {name for name in told if self.is_told(name)}

    def is_told(self, topic: str) -> bool:
        """Whether the store's word is enough for a topic: it has queues, or no metasync answers.

        A store hears of a deleted topic later than we do, and what it told is up to a second old.
        """
        if self.ends is None or topic not in self.ends.topics:
            return False
        return self.tables is None or bool(self.ends.topics[topic].queues)

    @property
    def group_names(self) -> set[str]:
        """Groups that are configured or have offsets."""
        return self.tables.groups.keys() | self.tables.offsets.keys() if self.tables is not None else set()

    def lag(self, group: str) -> int | None:
        """Messages that a group has not consumed; None if no store answers."""
        if self.ends is None or self.tables is None:
            return None
        return lag_of(self.ends, self.tables.offsets.get(group, {}))

    async def lags(self) -> dict[str, int]:
        """Of every group with offsets. Gives way to other calls between."""
        lags: dict[str, int] = {}
        if self.ends is None or self.tables is None:
            return lags
        slices = Slices(self.node.timers)
        for group, topics in list(self.tables.offsets.items()):
            lags[group] = lag_of(self.ends, topics)
            await slices.pause()
        return lags


class Books:
    """Keeps mirrors of the metasyncs that are read from, and the queue ends of a moment."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self._mirrors: dict[str, Mirror] = {}
        self._ends: dict[str, EndsKeeper] = {}

    async def read(self, broker: str = "", *, topics: tuple[str, ...] | None = None) -> list[Book]:
        """Every broker's, or one's, by name. `topics`: only the queue ends of these, as they are now.

        Raises:
            NotFound: there is no such broker.
            NotAnswering: nothing of the cluster answers.
        """
        found = of_broker(await self.brokers.standings(), broker)
        if not found:
            raise NotAnswering("no node answers", remedy="`tandem cluster show` says what was tried")
        books = await asyncio.gather(*(self._book(name, nodes, topics) for name, nodes in sorted(found.items())))
        if all(book.tables is None and book.ends is None for book in books):
            raise NotAnswering("; ".join(problem for book in books for problem in book.problems))
        return list(books)

    async def see(self, node: KnownNode, condition: Callable[[Tables], bool]) -> None:
        """Waits until a change that a node's metasync has just answered is in its book."""
        if node.name in self._mirrors:
            await self._mirrors[node.name].see(condition)

    async def close(self) -> None:
        """Asks and follows nobody any more."""
        await self.brokers.close()
        for mirror in self._mirrors.values():
            await mirror.close()

    async def _book(self, broker: str, nodes: list[NodeStanding], topics: tuple[str, ...] | None) -> Book:
        (tables, first), (ends, store, second) = await asyncio.gather(
            self._tables(nodes), self._queue_ends(nodes, topics)
        )
        cluster = next((one.cluster for one in nodes if one.cluster), "")
        own = frozenset({broker, cluster})
        return Book(broker, cluster, nodes[0].node, tables, ends, store, tuple(dict.fromkeys((*first, *second))), own)

    async def _tables(self, nodes: list[NodeStanding]) -> tuple[Tables | None, list[str]]:
        tried: list[Mirror] = []
        for one in nodes:
            mirror = self._mirrors.setdefault(one.node.name, Mirror(one.node))
            tried.append(mirror)
            if await mirror.use():
                return mirror.tables, _asked_instead("metasync", nodes[0], one.node, tried[0].reason)
        last = max(tried, key=lambda mirror: mirror.current_ms)
        silent = ", ".join(f"{mirror.node.name} ({mirror.reason})" for mirror in tried)
        if not last.tables.whole:
            return None, [f"no metasync of {nodes[0].broker} answers, so groups are missing: {silent}"]
        at = time.strftime("%H:%M:%S", time.gmtime(last.current_ms / 1000))
        return last.tables, [f"topics and groups are as they were at {at} UTC: no metasync answers: {silent}"]

    async def _queue_ends(
        self, nodes: list[NodeStanding], topics: tuple[str, ...] | None
    ) -> tuple[QueueEnds | None, KnownNode | None, list[str]]:
        reasons: list[str] = []
        for one in nodes:
            keeper = self._ends.setdefault(one.node.name, EndsKeeper(one.node))
            try:
                ends = await keeper.all() if topics is None else await keeper.of_topics(topics)
            except AdminError as error:
                reasons.append(f"{one.node.name} ({getattr(error, 'reason', error.message)})")
                continue
            return ends, one.node, _asked_instead("store", nodes[0], one.node, ", ".join(reasons))
        what = f"no store of {nodes[0].broker} answers, so messages and lag are missing"
        return None, None, [f"{what}: {', '.join(reasons)}"]


def _asked_instead(service: str, best: NodeStanding, asked: KnownNode, reason: str) -> list[str]:
    if best.role != admin_pb2.MASTER:  # one that is silent for long is not the best any more
        return [f"no master of {best.broker} answers, so {asked.name} was asked"]
    if asked is best.node:
        return []
    return [f"the {service} of {best.node.name} does not answer, so {asked.name} was asked: {reason or 'silent'}"]


def merged_names(books: list[Book], names_of: Callable[[Book], set[str]]) -> set[str]:
    """Names that one of the brokers has at least."""
    return set().union(*map(names_of, books))


def problems_of(books: list[Book]) -> Iterator[str]:
    """What is missing in any of them."""
    for book in books:
        yield from book.problems
