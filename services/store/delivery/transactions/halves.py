"""Transactions that have not ended, and those that have ended of late. No I/O and no clock.

Records of the half topic come in by `found`, those of the op topic by `closed`, live as when they are read at the
start: half messages minus those that ops name is what is pending. A transaction may have several records: it is
appended again when producers were asked, and a producer that heard nothing sends again under the same id. They end
together.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.half_message import HalfMessage, Op
from tandemmq.store.delivery.transactions.handle import TransactionHandle

MOST_ENDED = 100_000
"""So many ended transactions are remembered, some 300 bytes each."""


class EndedTransaction(NamedTuple):
    """A transaction that is over. `ending` is None where it was a Java broker that ended it, which does not say how."""

    group: str
    ending: Ending | None


class PendingTransaction:
    """A transaction that has not ended."""

    __slots__ = ("checks", "half", "offsets")

    def __init__(self, half: HalfMessage) -> None:
        self.half = half
        """The newest record of it."""
        self.offsets = [half.queue_offset]
        """Queue offsets of all records of it that no op names, ascending."""
        self.checks = half.checks
        """How often producers were asked."""

    def named(self) -> Sequence[int]:
        """What ops must name so that every broker knows that it is over: the present offset, and the original one."""
        original = self.half.moved_from
        return [*self.offsets, original] if original >= 0 and original not in self.offsets else self.offsets


class Halves:
    """The state machine."""

    def __init__(self, half_offset: int, op_offset: int, most_ended: int = MOST_ENDED) -> None:
        """Nothing is pending below `half_offset`; what ends later half messages stands at `op_offset` and later."""
        self._next_half, self._next_op = half_offset, op_offset
        self._most_ended = most_ended
        self._records: dict[int, PendingTransaction] = {}  # by queue offset of each record
        self._order: list[int] = []  # a heap of their offsets; those that are gone are dropped when first
        self._early: set[int] = set()  # records that were told by `again`, and will be found too
        self._ids: dict[str, PendingTransaction] = {}
        self._ended: dict[str, EndedTransaction] = {}
        self._complete = False
        self._named: dict[int, Op] = {}  # until then: of records that are not read yet
        self._ops: deque[tuple[int, int]] = deque()  # op offset, highest half offset that it names
        self._transactions: dict[int, PendingTransaction] = {}  # by id(): each once
        self.by_topic: dict[str, int] = {}
        """How many are pending, by their real topic."""

    # -- questions --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many transactions are pending."""
        return len(self._transactions)

    def __iter__(self) -> Iterator[PendingTransaction]:
        """Every pending transaction, in the order in which they began."""
        return iter(self._transactions.values())

    def pending(self, handle: TransactionHandle) -> PendingTransaction | None:
        """The transaction that a handle names, if it has not ended."""
        exact = self._records.get(handle.queue_offset)
        if exact is not None and exact.half.transaction_id == handle.transaction_id:
            return exact
        return self._ids.get(handle.transaction_id)

    def at(self, queue_offset: int) -> PendingTransaction | None:
        """The transaction whose newest record has this queue offset."""
        pending = self._records.get(queue_offset)
        return pending if pending is not None and pending.half.queue_offset == queue_offset else None

    def ended(self, transaction_id: str) -> EndedTransaction | None:
        """How a transaction has ended, if that is remembered."""
        return self._ended.get(transaction_id)

    @property
    def half_offset(self) -> int:
        """Of the half queue, all below is over: the smallest pending offset."""
        order, records = self._order, self._records
        while order and order[0] not in records:
            heapq.heappop(order)
        return min(order[0], self._next_half) if order else self._next_half

    @property
    def op_offset(self) -> int:
        """Of the op queue, all below names only what lies below `half_offset`."""
        limit, ops = self.half_offset, self._ops
        while ops and ops[0][1] < limit:
            ops.popleft()
        return ops[0][0] if ops else self._next_op

    @property
    def length(self) -> int:
        """Queue offsets from the smallest pending one to the end: what a start has to read."""
        return self._next_half - self.half_offset

    @property
    def oldest(self) -> PendingTransaction | None:
        """The transaction that holds `half_offset` back."""
        return self._records.get(self.half_offset)

    # -- events -----------------------------------------------------------------------------------------------------

    def found(self, half: HalfMessage) -> PendingTransaction | None:
        """A record of the half topic, in the order of the queue; gives its transaction, if that is open.

        Offsets that were found before are passed over, and None is given.
        """
        offset = half.queue_offset
        if offset < self._next_half:
            return None
        self._next_half = offset + 1
        if offset in self._early:
            self._early.remove(offset)
            return None
        op = self._named.pop(offset, None) or self._named.get(half.moved_from)
        if op is not None:
            self._remember(half, op)
            self._end_earlier(half, op)
            return None
        pending = self._ids.get(half.transaction_id)
        if pending is None:
            pending = self._ids[half.transaction_id] = self._open(half)
        elif (pending.half.group, pending.half.topic) != (half.group, half.topic):
            pending = self._open(half)  # another producer's, under the same id: found by its offset only
        else:
            pending.half = max(pending.half, half, key=lambda one: one.queue_offset)
            pending.checks = max(pending.checks, half.checks)
            pending.offsets.append(offset)
            pending.offsets.sort()
        self._put(offset, pending)
        return pending

    def _end_earlier(self, half: HalfMessage, op: Op) -> None:
        """A Java broker appends again without an op for the record before: what ended the later one ended both."""
        earlier = self._ids.get(half.transaction_id)
        if earlier is None or op.moved or (earlier.half.group, earlier.half.topic) != (half.group, half.topic):
            return
        for offset in list(earlier.offsets):
            del self._records[offset]
            self._close(earlier, offset, op)

    def again(self, pending: PendingTransaction, half: HalfMessage) -> None:
        """The broker has appended a half message again: its records before that are about to be closed."""
        pending.half = half
        pending.offsets.append(half.queue_offset)
        self._put(half.queue_offset, pending)
        if half.queue_offset >= self._next_half:
            self._early.add(half.queue_offset)

    def _open(self, half: HalfMessage) -> PendingTransaction:
        pending = PendingTransaction(half)
        self._transactions[id(pending)] = pending
        self.by_topic[half.topic] = self.by_topic.get(half.topic, 0) + 1
        return pending

    def _put(self, offset: int, pending: PendingTransaction) -> None:
        self._records[offset] = pending
        heapq.heappush(self._order, offset)

    def passed(self, queue_offset: int) -> None:
        """Nothing below this offset of the half queue is there to be found any more."""
        self._next_half = max(self._next_half, queue_offset)

    def closed(self, op: Op) -> None:
        """A record of the op topic, in the order of the queue: what it names is over."""
        if op.queue_offset < self._next_op:
            return
        self._next_op = op.queue_offset + 1
        if op.named:
            self._ops.append((op.queue_offset, max(op.named)))
        if op.transaction_id and op.ending is not None:
            self._put_ended(op.transaction_id, EndedTransaction(op.group, op.ending))
        for offset in op.named:
            pending = self._records.pop(offset, None)
            if pending is not None:
                self._close(pending, offset, op)
            elif not self._complete:
                self._named[offset] = op

    def all_read(self) -> None:
        """Both topics were read to their ends: from now on an op comes after what it names."""
        self._complete = True
        self._named.clear()

    def _close(self, pending: PendingTransaction, offset: int, op: Op) -> None:
        pending.offsets.remove(offset)
        if not pending.offsets:
            del self._transactions[id(pending)]
            topic = pending.half.topic
            self.by_topic[topic] -= 1
            if not self.by_topic[topic]:
                del self.by_topic[topic]
            if self._ids.get(pending.half.transaction_id) is pending:
                del self._ids[pending.half.transaction_id]
            self._remember(pending.half, op)

    def _remember(self, half: HalfMessage, op: Op) -> None:
        if not op.moved and half.transaction_id not in self._ended:
            self._put_ended(half.transaction_id, EndedTransaction(half.group, op.ending))

    def _put_ended(self, transaction_id: str, ended: EndedTransaction) -> None:
        self._ended.pop(transaction_id, None)
        self._ended[transaction_id] = ended
        if len(self._ended) > self._most_ended:
            del self._ended[next(iter(self._ended))]
