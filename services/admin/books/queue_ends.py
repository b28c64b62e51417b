"""The first and last offsets of all queues of a store, asked for at most once a second."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import CallRefused
from tandemmq.store.v1 import store_pb2

KEPT_SECONDS = 1.0

MOST_SINGLE = 16
"""For more topics than these, one call for all is cheaper than one for each."""

_NO_QUEUES: Mapping[int, "QueueEnd"] = {}


class QueueEnd(NamedTuple):
    """One queue."""

    low: int
    """First offset that there is."""
    high: int
    """Next offset that will be assigned."""
    rebuilding: bool


class QueueEnds:
    """Of all topics of a store, or of one, at a moment. What is not looked at costs next to nothing."""

    def __init__(self, topics: Iterable[store_pb2.TopicQueues]) -> None:
        self.topics = {one.topic: one for one in topics}
        """As the store told them."""
        self._queues: dict[str, Mapping[int, QueueEnd]] = {}

    def queues(self, topic: str) -> Mapping[int, QueueEnd]:
        """Queues that have been written to, by id; none of a topic that does not exist."""
        known = self._queues.get(topic)
        if known is None:
            found = self.topics.get(topic)
            if found is None:
                return _NO_QUEUES
            known = self._queues[topic] = {
                one.queue_id: QueueEnd(one.min_offset, one.max_offset, one.rebuilding) for one in found.queues
            }
        return known

    def messages(self, topic: str) -> int:
        """Messages that a topic's queues hold."""
        return sum(queue.high - queue.low for queue in self.queues(topic).values())


class EndsKeeper:
    """Asks one node's store, and remembers the answer for a moment."""

    def __init__(self, node: KnownNode) -> None:
        self._node = node
        self._known: QueueEnds | None = None
        self._asked = 0.0
        self._asking = asyncio.Lock()

    async def all(self) -> QueueEnds:
        """Of all topics. Raises ServiceAway, CallRefused."""
        async with self._asking:
            if self._known is None or self._node.timers.time() - self._asked > KEPT_SECONDS:
                self._known = None  # not two of them at a time
                self._known = QueueEnds(await self._ask(""))
                self._asked = self._node.timers.time()
            return self._known

    async def of_topics(self, topics: Sequence[str]) -> QueueEnds:
        """Of some topics, as they are now, if the store knows them. Raises ServiceAway, CallRefused."""
        if len(topics) > MOST_SINGLE:
            return await self.all()
        found = await asyncio.gather(*map(self._known_or_none, topics))
        return QueueEnds(one for answer in found for one in answer)

    async def _known_or_none(self, topic: str) -> Iterable[store_pb2.TopicQueues]:
        try:
            return await self._ask(topic)
        except CallRefused as refusal:
            if refusal.code != "NOT_FOUND":
                raise
            return ()

    async def _ask(self, topic: str) -> Iterable[store_pb2.TopicQueues]:
        request = store_pb2.ListQueuesRequest(topic=topic)
        return (await self._node.ask("store", self._node.store.ListQueues(request))).topics
