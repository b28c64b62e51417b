"""What replicas are known to have, and consumers therefore may see (RocketMQ: ``confirmOffset``).

A message that only its master has may be lost with it, and its queue offset is then another message's. So a synchronous
master lets nobody read at or beyond its confirmed offset: the log offset below which as many nodes have everything as a
send waits for. It is a limit for readers only. Dispatch, recovery and the numbers of queues know nothing of it.

The offset only grows. The checkpoint keeps it (``confirmPhyOffset``), 0 where nothing is held back: a slave has what
its master sent it, an asynchronous master promises no more.
"""

from typing import Protocol

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.format.unit import count_below

EVERYTHING = 1 << 62
"""More than any log holds."""


class Waits(Protocol):
    """A queue whose readers wait for what it has already, but may not be seen."""

    def wake(self) -> None:
        """Look who need not wait any longer."""
        ...


class Confirmed:
    """The confirmed offset, and the queues whose readers wait for it to grow. Belongs to the event loop."""

    def __init__(self, *, holds_back: bool = True) -> None:
        """Show everything until `begin` or `resume`; for ever where ``holds_back`` is False (``readUnCommitted``)."""
        self.limit = EVERYTHING
        """Log offset at and beyond which nothing is shown."""
        self._holds_back = holds_back
        self._held: set[Waits] = set()

    @property
    def mark(self) -> int:
        """What the checkpoint keeps: the limit, at least 1; or 0 where nothing is held back."""
        return 0 if self.limit == EVERYTHING else max(self.limit, 1)

    def resume(self, role: BrokerRole, mark: int | None, end: int) -> None:
        """Go on from the mark of the last checkpoint, None where there is none to read; the log ends at ``end``.

        A slave may have been a synchronous master before, with messages that it must give up: the mark counts for it
        too, until a master has continued its log (`show_all`).
        """
        if mark is None:
            mark = 1 if role is BrokerRole.SYNC_MASTER else 0
        if not mark:
            self.begin(role, end)
        elif self._holds_back and role is not BrokerRole.ASYNC_MASTER:
            self.limit = min(mark, end)

    def begin(self, role: BrokerRole, end: int) -> None:
        """Take all of a log that ends at ``end`` for confirmed, and hold back what a synchronous master adds to it."""
        self._set(end if self._holds_back and role is BrokerRole.SYNC_MASTER else EVERYTHING)

    def raise_to(self, offset: int) -> None:
        """Everything below ``offset`` is on enough nodes. A lower one than before says nothing new."""
        if offset > self.limit:
            self._set(offset)

    def show_all(self) -> None:
        """Hold nothing back any more."""
        if self.limit != EVERYTHING:
            self._set(EVERYTHING)

    def count(self, units: bytes) -> int:
        """How many of a queue's units there are up to the last message that may be seen; 0 if none of them may."""
        return count_below(units, self.limit)

    def hold(self, queue: Waits) -> None:
        """Have a queue woken when the limit grows."""
        self._held.add(queue)

    def _set(self, limit: int) -> None:
        self.limit = limit
        held, self._held = self._held, set()
        for queue in held:
            queue.wake()
