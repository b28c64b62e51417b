"""Where groups stand: commits of consumers that pull, and resets by operators."""

from collections.abc import Callable, Sequence

from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.delivery.errors import BadDelivery
from tandemmq.store.delivery.journal.facts import Moved, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.starts import Starts
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.members.sessions import OffsetsReset, Sessions
from tandemmq.store.delivery.receiving.receive_rules import readable_topic
from tandemmq.store.log.message_store import MessageStore


class Cursors:
    """Sets them."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        journal: Journal,
        starts: Starts,
        sessions: Sessions,
        moved: Callable[[Sequence[Place]], None],
    ) -> None:
        """`moved` hears of places whose cursor was set."""
        self._store = store
        self._topics = topics
        self._journal = journal
        self._starts = starts
        self._sessions = sessions
        self._moved = moved

    async def commit(
        self, group: GroupConfig, topic: str, queue: int, offset: int, *, alone: bool, back: bool = False
    ) -> None:
        """All below an offset is dealt with; what is beyond the queue's end is not. Done when that is safe.

        Unless `alone`, a group that is new gets its positions in the other queues too. `back`: what is above counts as
        not dealt with any more; else an offset below the present one is none.
        """
        place = self._place(group, topic, queue, offset)
        if not alone:
            self._starts.open(group, topic)
        progress = self._journal.ledger.progress(place)
        resets = 0 if progress is None else progress.resets
        offset = min(offset, self._end(place))
        if progress is None or offset > progress.cursor:
            self._journal.note(Moved(place, offset, resets))
            self._moved([place])
        elif back and offset < progress.cursor:
            self._journal.note(Moved(place, offset, resets + 1))
            self._moved([place])
        await self._journal.safe(group.ack_durability)

    async def reset(self, group: GroupConfig, topic: str, offsets: dict[int, int]) -> None:
        """Set cursors, backwards too: handles that were given before count no more. Done when that is safe."""
        places = {self._place(group, topic, queue, offset): offset for queue, offset in offsets.items()}
        self._starts.open(group, topic)
        for place, offset in places.items():
            progress = self._journal.ledger.progress(place)
            resets = 0 if progress is None else progress.resets
            self._journal.note(Moved(place, min(offset, self._end(place)), resets + 1))
        self._moved(list(places))
        await self._journal.safe()
        self._sessions.ask_consumers(group.name, OffsetsReset(group.name, topic, tuple(offsets)))

    def _place(self, group: GroupConfig, topic: str, queue: int, offset: int) -> Place:
        if offset < 0 or queue < 0:
            raise BadDelivery(f"Queue {queue} of topic {topic} has no offset {offset}: neither can be negative.")
        readable_topic(topic, queue, self._topics)
        return Place(group.name, topic, queue)

    def _end(self, place: Place) -> int:
        queue = self._store.queue(place.topic, place.queue)
        return 0 if queue is None else queue.max_offset
