"""Where a group begins in a topic that it consumes for the first time.

As RocketMQ does it for POP: a queue whose first message is still there, and not far from the end of the log, from that
message on; any other from its end. The places of all queues are fixed when the group first appears, so that what is
sent from then on is delivered, whichever queue is asked for first. Retry and dead-letter topics, and queues that come
later, begin with what they have. The group's attribute `consumeFromWhere` says it otherwise.
"""

from tandemmq.common.attributes.group_attributes import CONSUME_FROM, FROM_FIRST, FROM_LAST
from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.broker.reading import is_whole
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.delivery.journal.facts import Moved, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.log.errors import QueueNotReady
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

NEAR_BYTES = 1 << 30
"""A first message that lies so near to the end of the log is where a new group begins."""


class Starts:
    """Opens places."""

    def __init__(self, store: MessageStore, topics: TopicTable, journal: Journal) -> None:
        self._store = store
        self._topics = topics
        self._journal = journal

    def open(self, group: GroupConfig, topic: str) -> list[Place]:
        """All places of a group in a topic; those that are not there yet are made. None where there is no topic.

        Raises QueueNotReady: a queue in which the group is new is being rebuilt.
        """
        config = self._topics.get(topic)
        if config is None:
            return []
        places = [Place(group.name, topic, queue) for queue in range(config.read_queues)]
        ledger = self._journal.ledger
        missing = [place for place in places if ledger.progress(place) is None]
        if missing:
            first = len(missing) == len(places) and not ledger.places(group.name, topic)
            where = self._where(group) if first and not topic.startswith(GROUP_TOPICS) else FROM_FIRST
            self._journal.note(*[Moved(place, self._begin(place, where), 0) for place in missing])
        return places

    @staticmethod
    def _where(group: GroupConfig) -> str:
        return str(group.attributes.get(CONSUME_FROM) or group.other.get(CONSUME_FROM) or "")

    def _begin(self, place: Place, where: str) -> int:
        queue = self._store.queue(place.topic, place.queue)
        if queue is None:
            return 0
        if not is_whole(self._store, queue):
            raise QueueNotReady(
                f"Queue {place.queue} of topic {place.topic} is being rebuilt: where group {place.group} begins is not "
                "known yet.",
                remedy="Try again in a moment.",
            )
        if where == FROM_FIRST:
            return queue.readable_begin
        if where != FROM_LAST and near_the_end(self._store, queue):
            return 0
        return queue.readable_end


def near_the_end(store: MessageStore, queue: ConsumeQueue) -> bool:
    """Whether a queue's first message ever is still there, and not far from the end of the log."""
    if queue.readable_begin != 0:
        return False
    first = queue.unit(0)
    return first is None or store.commit_log.max_offset - first.physical_offset <= NEAR_BYTES
