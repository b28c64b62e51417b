"""A place with many entries is told whole in many turns of the loop, while facts of it go on. No I/O and no clock.

It is told as it was when that began. What was noted of it since is said once more after that, in the record of the last
piece: a replay that had one without the other would undo what was acknowledged meanwhile.
"""

from collections.abc import Sequence

from tandemmq.store.delivery.journal.facts import Fact, Forgotten, Place
from tandemmq.store.delivery.journal.journal_format import Position, RecordPages
from tandemmq.store.delivery.ledger.progress import QueueProgress

_PIECE = 256
_MOST_SINCE = 4_000
"""Where more is noted meanwhile, it is begun anew."""


class Telling:
    """The telling of one place."""

    def __init__(self, progress: QueueProgress, most_bytes: int) -> None:
        """`most_bytes`: of a record."""
        self.place: Place = progress.place
        self._pieces = progress.snapshot(_PIECE)
        self._pages = RecordPages(most_bytes)
        self._since: list[Fact] = []
        self._over = False

    @property
    def vain(self) -> bool:
        """Whether it is to be given up: the place is forgotten, or too much is noted of it."""
        return self._over or len(self._since) > _MOST_SINCE

    def noted(self, fact: Fact) -> None:
        """A fact counts from now on."""
        if getattr(fact, "place", None) == self.place:
            self._since.append(fact)
            self._over = self._over or isinstance(fact, Forgotten)

    def step(self) -> bool:
        """Tell some more; whether there was more to tell."""
        for piece in self._pieces:
            self._pages.add(piece)
            return True
        return False

    def encode(self, base: Position, start: int) -> list[tuple[bytes, Sequence[Fact]]]:
        """The bodies of the records, each with its facts. To be written one after the other, with nothing between."""
        for fact in self._since:
            self._pages.add(fact, apart=False)
        return self._pages.encode(base, start)
