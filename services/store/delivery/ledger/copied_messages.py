"""CopiedMessages: which copies stand for messages that were dealt with, as far as facts tell. No I/O.

Whoever comes with the handle of such a message can be told where it is: facts are replayed, so that is known after a
start, and on the store that takes over. What lies before the journal's base is not: the ledger remembers which these
may be (`Ledger.forgot_copies`).
"""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from tandemmq.store.delivery.journal.facts import Dealt, Snapshot
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress

_MOST_REMEMBERED = 20_000
_MOST_COPIES = 8
"""Of one message. What comes before the newest copy that was not taken back does not count, and two facts make one."""


class CopiedMessage(NamedTuple):
    """A message of a queue that was so often reset, and how it was given out last."""

    resets: int
    delivery: OpenEntry
    copies: tuple[int, ...]
    """Log offsets, in the order in which they were written; what takes a copy back is one too. The newest few."""


class UntoldMessages:
    """What a snapshot says nothing of, but that it is dealt with: whether it was copied was told before it, if ever."""

    def __init__(self, parts: Iterable[Snapshot]) -> None:
        self._open = array("q")
        for part in parts:
            self._end = part.given
            self._open.extend([offset for offset, *_ in part.entries])

    def __contains__(self, offset: int) -> bool:
        at = bisect_left(self._open, offset)
        return offset < self._end and self._open[at : at + 1] != array("q", (offset,))


class CopiedMessages:
    """The newest ones, of all places. A place has a number: when it is made again, it is another one."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], CopiedMessage] = OrderedDict()

    def note(self, number: int, fact: Dealt, progress: QueueProgress) -> tuple[int, int] | None:
        """A fact names a copy; `progress` is as it was before that. Once more for the same fact is fine.

        The place and the offset of a message of which nothing is known any more for that.
        """
        key = number, fact.first
        entry, known = progress.entries.get(fact.first), self._known.get(key)
        if known is not None and known.resets == progress.resets:
            if fact.copy not in known.copies:
                self._known[key] = known._replace(copies=(*known.copies, fact.copy)[-_MOST_COPIES:])
        elif entry is not None:
            self._known[key] = CopiedMessage(progress.resets, entry, (fact.copy,))
            if len(self._known) > _MOST_REMEMBERED:
                return self._known.popitem(last=False)[0]
        return None

    def get(self, number: int, offset: int) -> CopiedMessage | None:
        """What is known of a message; None: there is no copy, or it is not remembered."""
        return self._known.get((number, offset))

    def forget(self, number: int, offset: int) -> None:
        """Nobody will look for the copies of a message."""
        self._known.pop((number, offset), None)

    def clear(self) -> None:
        """Nothing is known."""
        self._known.clear()
