"""Where services of the master stand in queues of the broker's own: facts of the journal."""

from typing import Protocol

from tandemmq.store.delivery.journal.facts import LevelDone, Moved, Place
from tandemmq.store.delivery.journal.journal import Journal


class KeptPosition(Protocol):
    """A place in a queue that survives the service, and the store."""

    def kept(self) -> int | None:
        """Queue offset to go on at; None where nothing was kept yet."""
        ...

    def put_back(self, offset: int) -> None:
        """The queue ends before the place: go on at its end. Raises NotDelivering."""
        ...


class SystemGroupPosition:
    """Where one of RocketMQ's own groups stands, which a RocketMQ broker goes on from too."""

    def __init__(self, journal: Journal, place: Place, *, names_last: bool = False) -> None:
        """`names_last`: the group's offset is that of the last message that is dealt with, not of the next."""
        self._journal = journal
        self._place = place
        self._behind = 1 if names_last else 0

    def kept(self) -> int | None:
        """See KeptPosition."""
        progress = self._journal.ledger.progress(self._place)
        return None if progress is None else progress.cursor + self._behind

    def keep(self, offset: int) -> None:
        """All below an offset is dealt with; nothing is noted where that is known. Raises NotDelivering."""
        if offset > (self.kept() or 0):
            self._note(offset, 0)

    def put_back(self, offset: int) -> None:
        """See KeptPosition."""
        self._note(offset, 1)

    def _note(self, offset: int, more_resets: int) -> None:
        progress = self._journal.ledger.progress(self._place)
        resets = 0 if progress is None else progress.resets
        self._journal.note(Moved(self._place, offset - self._behind, resets + more_resets))


class LevelPosition:
    """How far a delay level is delivered."""

    def __init__(self, journal: Journal, level: int) -> None:
        self._journal = journal
        self._level = level

    def kept(self) -> int | None:
        """See KeptPosition."""
        return self._journal.ledger.levels.get(self._level)

    def keep(self, offset: int, copy: int = -1) -> None:
        """All below an offset is delivered, the last of it as the copy at a log offset. Raises NotDelivering."""
        if offset != (self.kept() or 0):
            self._journal.note(LevelDone(self._level, offset, copy))

    def put_back(self, offset: int) -> None:
        """See KeptPosition."""
        self.keep(offset)
