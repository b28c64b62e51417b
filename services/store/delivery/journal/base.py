"""Which journal records are still needed: from the oldest snapshot on. No I/O.

What is snapshotted is a unit: a place, a delay level, or the timers. Each is told whole by a record that the base does
not lie after it. The unit whose record is the oldest is written again in time, so the base moves on.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Forgotten,
    Given,
    GivenAgain,
    HeldBy,
    LevelDone,
    Place,
    Snapshot,
    TimersDone,
)
from tandemmq.store.delivery.journal.journal_format import MOST_ENTRIES, Position
from tandemmq.store.delivery.ledger.ledger import Ledger

_LEAST_BYTES = 8 << 20
_TIMES_STATE = 3
_FILES = 2
_PLACE_BYTES, _ENTRY_BYTES = 48, 10
_A_STEP = 256

_PROGRESS = (Given, Dealt, GivenAgain, HeldBy)
"""Facts that tell nothing whole, and make no unit."""

TIMERS = "timers"

Unit = Place | int | str
"""A place, the number of a delay level, or `TIMERS`."""


class _Told(NamedTuple):
    """Where a unit was told whole, and how many bytes of journal there were before that."""

    position: Position
    bytes_before: int


class Base:
    """Keeps where each unit was last told whole."""

    def __init__(self, file_size: int) -> None:
        """`file_size`: bytes of a log file."""
        self._file_size = file_size
        self._units: OrderedDict[Unit, _Told] = OrderedDict()
        self._begun: dict[Place, _Told] = {}  # snapshots of which pieces are to come
        self._bytes = 0

    def clear(self) -> None:
        """Nothing is known."""
        self._units.clear()
        self._begun.clear()
        self._bytes = 0

    def position(self, next_record: Position) -> Position:
        """The oldest record that is needed; `next_record` if there is none yet."""
        for told in self._units.values():
            return told.position
        return next_record

    def wrote(self, facts: Iterable[Fact], position: Position, size: int) -> None:
        """A record with these facts is the newest one. Takes records in their order."""
        for _ in self.wrote_in_steps(facts, position, size):
            pass

    def wrote_in_steps(self, facts: Iterable[Fact], position: Position, size: int) -> Iterator[None]:
        """The same, in steps: a record may have thousands of facts. The next record is told of after the last step."""
        told = _Told(position, self._bytes)
        self._bytes += size
        for at, fact in enumerate(facts):
            if at % _A_STEP == _A_STEP - 1:
                yield
            if isinstance(fact, _PROGRESS):
                if self._begun:
                    self._begun.pop(fact.place, None)
            elif isinstance(fact, LevelDone):
                self._tell(fact.level, told)
            elif isinstance(fact, TimersDone):
                self._tell(TIMERS, told)
            elif isinstance(fact, Snapshot):
                begun = self._begun.pop(fact.place, told)
                if fact.more:
                    self._begun[fact.place] = begun
                    self._units.setdefault(fact.place, begun)
                else:
                    self._tell(fact.place, begun)
            elif isinstance(fact, Forgotten):
                self._units.pop(fact.place, None)
                self._begun.pop(fact.place, None)
            else:
                self._begun.pop(fact.place, None)
                self._units.setdefault(fact.place, told)

    def _tell(self, unit: Unit, told: _Told) -> None:
        self._units[unit] = told
        self._units.move_to_end(unit)

    def late(self, log_end: int, ledger: Ledger) -> Unit | None:
        """The unit that is to be written again now; None while the base is near enough."""
        for unit, told in self._units.items():
            state = _PLACE_BYTES * len(ledger) + _ENTRY_BYTES * ledger.entries
            files = log_end // self._file_size - told.position.log_offset // self._file_size
            far = self._bytes - told.bytes_before > max(_LEAST_BYTES, _TIMES_STATE * state)
            return unit if far or files >= _FILES else None
        return None

    def oldest(self, most_entries: int, ledger: Ledger) -> list[Fact]:
        """The facts that tell the oldest units whole again, those of one at least."""
        facts: list[Fact] = []
        entries = 0
        for unit in self._units:
            entries += 4 + entries_of(unit, ledger)
            if facts and entries > most_entries:
                break
            facts += tell_whole(unit, ledger)
        return facts


def entries_of(unit: Unit, ledger: Ledger) -> int:
    """How many entries there are to tell of a unit."""
    progress = ledger.progress(unit) if isinstance(unit, Place) else None
    return 0 if progress is None else len(progress.entries)


def tell_whole(unit: Unit, ledger: Ledger) -> list[Fact]:
    """The facts that say all of a unit; of one that is gone, that it is."""
    if isinstance(unit, Place):
        progress = ledger.progress(unit)
        return [Forgotten(unit)] if progress is None else list(progress.snapshot(MOST_ENTRIES))
    if isinstance(unit, int):
        return [LevelDone(unit, ledger.levels.get(unit, 0))]
    return [] if ledger.timers is None else [ledger.timers._replace(copy=-1)]


class SafeBase:
    """Below which log offset no file is needed: the base, as soon as the snapshots that it rests on are durable."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int]] = deque()  # end of a record, and the base that counts when it is durable
        self._base: int | None = None

    def wrote(self, end_offset: int, base: int) -> None:
        """A record that ends there has moved the base to that log offset."""
        if self._base is None:
            self._base = base
        elif not self._waiting or self._waiting[-1][1] != base:
            self._waiting.append((end_offset, base))

    def at(self, flushed: int) -> int | None:
        """The log offset from which on files are kept, where the log is durable up to `flushed`. None: nothing is."""
        while self._waiting and self._waiting[0][0] <= flushed:
            self._base = self._waiting.popleft()[1]
        return self._base

    def clear(self) -> None:
        """Nothing is known."""
        self._waiting.clear()
        self._base = None
