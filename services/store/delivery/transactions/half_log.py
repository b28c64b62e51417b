"""The half topic and the op topic in the store's log: what is read from them and appended."""

from collections.abc import Iterator, Sequence

from tandemmq.store.broker.preparing import HALF_QUEUE, HALF_TOPIC
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.half_message import (
    OP_QUEUE,
    HalfMessage,
    Op,
    make_op,
    renewed,
)
from tandemmq.store.delivery.transactions.halves import Halves, PendingTransaction
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended

_UNITS = 256
"""So many units of a queue are read at once."""


class HalfLog:
    """Reads and appends; the state that goes with it is in `halves`."""

    def __init__(self, store: MessageStore, host: Host, clock: DeliveryClock) -> None:
        """`host`: the store host of what is appended."""
        self.store = store
        self.host = host
        self.clock = clock
        self.halves = Halves(0, 0)
        self.end_offset = 0
        """Log offset behind the newest op record; what was read at the start may not be durable yet."""

    # -- reading ----------------------------------------------------------------------------------------------------

    def bounds(self, topic: str) -> tuple[int, int]:
        """First and next queue offset of one of both topics."""
        queue = self.store.queue(topic, 0)
        return (0, 0) if queue is None else (queue.min_offset, queue.max_offset)

    def records(self, topic: str, first: int, end: int) -> Iterator[tuple[int, Record | None]]:
        """Queue offset and record of each message; None where it cannot be read."""
        queue = self.store.queue(topic, HALF_QUEUE if topic == HALF_TOPIC else OP_QUEUE)
        while queue is not None and first < end:
            units = queue.read(first, min(_UNITS, end - first))
            if not units:  # the file is gone: go on at the next one
                first = min((first // queue.units_per_file + 1) * queue.units_per_file, end)
                continue
            for offset, unit in enumerate(units, first):
                yield offset, self._record(topic, offset, unit.physical_offset)
            first += len(units)

    def record(self, half: HalfMessage) -> Record | None:
        """The half message itself; None where it cannot be read: damaged, or its file is gone."""
        return self._record(HALF_TOPIC, half.queue_offset, half.physical_offset)

    def _record(self, topic: str, queue_offset: int, physical_offset: int) -> Record | None:
        data = self.store.read_record(physical_offset)
        try:
            record = None if data is None else decode_record(data)
        except CorruptRecord:
            record = None
        if record is None or (record.topic, record.queue_offset) != (topic, queue_offset):
            return None
        return record

    # -- appending --------------------------------------------------------------------------------------------------

    def close(self, pending: PendingTransaction, ending: Ending, *first: Message) -> int:
        """Append copies, then the ops that say that a transaction is over; gives the log offset behind them.

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
