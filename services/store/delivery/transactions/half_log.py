"""The half topic and the op topic in the store's log: what is read from them and appended."""

from collections.abc import Sequence

from tandemmq.store.broker.preparing import HALF_QUEUE, HALF_TOPIC
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.kept_positions import SystemGroupPosition
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.delivery.transactions.half_message import (
    OP_QUEUE,
    OP_TOPIC,
    TRANSACTION_GROUP,
    HalfMessage,
    Op,
    make_op,
    renewed,
)
from tandemmq.store.delivery.transactions.halves import Halves, PendingTransaction
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import Record
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended

HALF_PLACE = Place(TRANSACTION_GROUP, HALF_TOPIC, HALF_QUEUE)
OP_PLACE = Place(TRANSACTION_GROUP, OP_TOPIC, OP_QUEUE)


class TopicPlace:
    """One of both topics: how far it was read, and how far it is dealt with."""

    def __init__(self, store: MessageStore, journal: Journal, place: Place) -> None:
        self.place = place
        self.position = SystemGroupPosition(journal, place)
        self.cursor = QueueCursor(store, place.topic, place.queue, self.position)


class HalfLog:
    """Reads and appends; the state that goes with it is in `halves`."""

    def __init__(self, store: MessageStore, journal: Journal, host: Host, clock: DeliveryClock) -> None:
        """`host`: the store host of what is appended."""
        self.store = store
        self.host = host
        self.clock = clock
        self.half_topic = TopicPlace(store, journal, HALF_PLACE)
        self.op_topic = TopicPlace(store, journal, OP_PLACE)
        self.halves = Halves(0, 0)
        self.end_offset = 0
        """Log offset after the newest op record; what was read at the start may not be durable yet."""

    # -- reading ----------------------------------------------------------------------------------------------------

    def record(self, half: HalfMessage) -> Record | None:
        """The half message itself; None where it cannot be read: damaged, or its file is gone."""
        return self.half_topic.cursor.record_at(half.queue_offset, half.physical_offset)

    # -- appending --------------------------------------------------------------------------------------------------

    def close(self, pending: PendingTransaction, ending: Ending, *first: Message) -> int:
        """Append copies, then the ops that say that a transaction is over; gives the log offset after them.

        All of it is appended at once: a crash leaves a beginning of it, so at worst the copy without its op. Raises
        StoreError: nothing was done.
        """
        self._append(pending, list(pending.named()), ending, first)
        return self.end_offset

    def renew(self, pending: PendingTransaction, record: Record, checks: int) -> None:
        """Append a half message again, and say of its records before that they count no more. Raises StoreError."""
        self._append(pending, list(pending.offsets), None, [renewed(record, checks, self.host)])

    def _append(
        self, pending: PendingTransaction, named: list[int], ending: Ending | None, first: Sequence[Message]
    ) -> None:
        half, now = pending.half, self.clock.now_ms()
        ops = [make_op(half, one, ending, now, self.host) for one in named]
        placed = self.store.append_messages([*first, *ops])
        self.end_offset = placed[-1].end_offset
        if ending is None:
            self.halves.again(pending, _at(half, placed[0]))
        for place, one in zip(placed[len(first) :], named, strict=True):
            op = Op(place.queue_offset, (one,), half.transaction_id, half.group, ending, moved=ending is None)
            self.halves.closed(op)


def _at(half: HalfMessage, place: Appended) -> HalfMessage:
    """The same half message at another place."""
    return half._replace(
        queue_offset=place.queue_offset,
        physical_offset=place.physical_offset,
        size=place.size,
        stored_ms=place.store_timestamp,
        moved_from=-1,
    )
