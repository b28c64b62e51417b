"""Where queues begin and end, and what queues there are."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from tandemmq.common.slices import Slices
from tandemmq.store.broker.errors import NoSuchQueue
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.reading import is_whole, may_have_been_lost
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.log.message_store import MessageStore


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue. `at_time`: offset of the first message stored at or after the time that was asked for.

    `max_offset` is the end that consumers see, `next_offset` that which the next message gets.
    """

    queue_id: int
    min_offset: int
    max_offset: int
    at_time: int | None = None
    rebuilding: bool = False
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class TopicState:
    """One topic with the queues that were ever written to, by id. `config` None: on disk, not in the topic table."""

    topic: str
    config: TopicConfig | None
    queues: list[QueueState]


class Catalog:
    """Tells offsets and queues."""

    def __init__(self, store: MessageStore, topics: TopicTable, puller: Puller) -> None:
        self._store = store
        self._topics = topics
        self._puller = puller

    def offsets_of(self, topic: str, queue_id: int, time_ms: int | None = None) -> QueueState:
        """The offsets of one queue; one without messages counts as 0 to 0.

        Raises:
            NoSuchQueue and its kinds, NotReadable: see `Puller.find`. BadRequest: a negative number.
        """
        if time_ms is not None:
            check_not_negative("timestamp", time_ms)
        self._puller.find(topic, queue_id)
        return self._state(topic, queue_id, time_ms)

    async def offsets(self, topic: str, time_ms: int | None = None) -> list[QueueState]:
        """The same of all queues of a topic, by id; others have their turns.

        Raises:
            NoSuchQueue: there is no topic of that name. BadRequest: a negative number.
        """
        if time_ms is not None:
            check_not_negative("timestamp", time_ms)
        config, ids = self._topics.get(topic), set(self._store.queue_ids(topic))
        if config is None and not ids:
            raise NoSuchQueue(f"There is no topic {topic}.")
        ids.update(range(config.read_queues if config is not None else 0))
        slices, states = Slices(self._store.timers), []
        for number in sorted(ids):
            states.append(self._state(topic, number, time_ms))
            await slices.pause()
        return states

    async def topics(self, topic: str | None = None) -> AsyncIterator[TopicState]:
        """All topics by name, or the one asked for, known to the table or only to the disk; others have their turns.

        Raises:
            NoSuchQueue: there is no topic of that name.
        """
        names = {config.name for config in self._topics.all()}.union(self._store.queue_topics())
        if topic is not None:
            names &= {topic}
        slices, found = Slices(self._store.timers), False
        for name in sorted(names):
            config, queues = self._topics.get(name), []
            for number in self._store.queue_ids(name):
                queues.append(self._state(name, number, None))
                await slices.pause()
            if config is not None or queues:
                found = True
                yield TopicState(name, config, queues)
            await slices.pause()
        if topic is not None and not found:
            raise NoSuchQueue(f"There is no topic {topic}.")

    def _state(self, topic: str, queue_id: int, time_ms: int | None) -> QueueState:
        queue = self._store.queue(topic, queue_id)
        if queue is None:
            return QueueState(
                queue_id, 0, 0, None if time_ms is None else 0, may_have_been_lost(self._store, topic, queue_id)
            )
        at_time = None if time_ms is None else self._store.offset_by_time(topic, queue_id, time_ms)
        rebuilding = not is_whole(self._store, queue)
        return QueueState(queue_id, queue.readable_begin, queue.readable_end, at_time, rebuilding, queue.max_offset)
