"""Journal records: facts as bytes. No I/O.

The body of a message of `TANDEM_SYS_DELIVERY`, all of it unsigned LEB128 numbers but for the first byte and names::

    byte     version, 1
    number   base: queue offset of the oldest journal record that is still needed
    number   log offset of that record
    number   start number of the store that writes
    number   names; each: number of bytes, UTF-8
    number   places; each: group (number of a name), topic (number of a name), queue
    number   facts; each: kind, then

     1  Given        place, first, messages, due
     2  GivenAgain   place, offset, number, due
     3  Dealt        place, first, messages, copy + 1
     4  Moved        place, cursor, resets
     5  Forgotten    place
     6  LevelDone    level, offset, copy + 1
     7  TimersDone   indexed, due, offset, copy + 1
     8  Snapshot     place, cursor, given, resets, 1 if more follows else 0, entries;
                     each: offset less the one before (at first less 0), number, due less the one before as zigzag
     9  HeldBy       place, first, messages, due, client id (number of a name), since
    10  Snapshot     as 8, of a place where messages are held with renewal; then those that are, in runs;
                     each: first less the one before, messages, client id (number of a name), since
    11  Snapshot     as 10; then which starts have given the entries out, in runs; each: entries, start number

In 8 and 10, of earlier releases or without entries, it is not known which starts these were.
Each record can be read by itself: names are whole, values absolute.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import groupby, repeat
from typing import NamedTuple, Protocol, TypeVar

from tandemmq.common import topic_names
from tandemmq.store.delivery.errors import UnreadableJournal
from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Forgotten,
    Given,
    GivenAgain,
    HeldBy,
    HeldRun,
    LevelDone,
    Moved,
    Place,
    Snapshot,
    TimersDone,
)

JOURNAL_TOPIC = topic_names.DELIVERY
"""The internal topic of the journal; it has one queue."""

VERSION = 1
MOST_BYTES = 256 << 10
"""A record has no more, unless a single fact takes more."""
MOST_ENTRIES = 8_000
"""So many entries of a snapshot have room in a record."""
_SNAPSHOT, _HELD_SNAPSHOT, _STARTED_SNAPSHOT = _SNAPSHOTS = (8, 10, 11)
_LIMIT = 1 << 63
_A_STEP = 128
"""So many names, facts or entries are read in a step."""
_MOST_GIVEN = 1 << 20

Thing = TypeVar("Thing")


class Position(NamedTuple):
    """Where a journal record is: its offset in the journal's queue, and in the log."""

    queue_offset: int
    log_offset: int


class JournalRecord(NamedTuple):
    """What a journal record says."""

    base: Position
    start: int
    """A number that is new after each unclean start and promotion, and greater than all before."""
    facts: tuple[Fact, ...]


# -- encode --------------------------------------------------------------------------------------------------------


class FactCore(Protocol):
    """The compiled twin: `tandemmq.store.delivery.compiled.fact_codec.encode_run`."""

    def __call__(
        self, facts: Sequence[Fact], first: int, given: type, dealt: type, places: dict[Place, int], room: int, /
    ) -> tuple[int, bytes]:
        """The bytes of facts from the `first` on that are Given or Dealt, of `places` with numbers; how many these are.

        `room`: bytes that there may be.
        """
        ...


def encode_records(
    base: Position, start: int, facts: list[Fact], most_bytes: int = MOST_BYTES, core: FactCore | None = None
) -> list[tuple[bytes, Sequence[Fact]]]:
    """The facts, in order, as the bodies of as few records as they fit into; each body with its facts."""
    pages, at = RecordPages(most_bytes), 0
    while at < len(facts):
        taken = 0 if core is None else pages.add_run(facts, at, core)
        if not taken:
            pages.add(facts[at])
        at += taken or 1
    return pages.encode(base, start)


class RecordPages:
    """Records in the making: as few as the facts fit into, which are added one by one."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._pages: list[tuple[_Page, list[Fact]]] = []

    def add(self, fact: Fact, *, apart: bool = True) -> None:
        """Not `apart`: it stays in one record with the fact before it, however large that becomes."""
        page, facts = self._pages[-1] if self._pages else self._begin()
        page.add(fact)
        if apart and facts and page.size > self._most_bytes:
            page.take_back()
            page, facts = self._begin()
            page.add(fact)
        facts.append(fact)

    def add_run(self, facts: list[Fact], first: int, core: FactCore) -> int:
        """Add those that the compiled core can write, from the `first` on, to the record that is begun: how many."""
        if not self._pages:
            return 0
        page, own = self._pages[-1]
        taken, data = core(facts, first, Given, Dealt, page.places, self._most_bytes - page.size)
        page.add_encoded(data, taken)
        own += facts[first : first + taken]
        return taken

    def _begin(self) -> "tuple[_Page, list[Fact]]":
        self._pages.append((_Page(), []))
        return self._pages[-1]

    def encode(self, base: Position, start: int) -> list[tuple[bytes, Sequence[Fact]]]:
        """See `encode_records`."""
        return [(page.encode(base, start), facts) for page, facts in self._pages]


class _Page:
    """One record in the making."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self.places: dict[Place, int] = {}
        """The numbers of those that are in its table."""
        self._table = bytearray()
        self._body = bytearray()
        self._before = (0, 0, 0, 0)
        self._name_bytes = bytearray()
        self.facts = 0

    @property
    def size(self) -> int:
        return len(self._table) + len(self._body) + len(self._name_bytes) + 64

    def add(self, fact: Fact) -> None:
        self._before = (len(self._body), len(self._table), len(self._name_bytes), len(self._names))
        self.facts += 1
        body = self._body
        if isinstance(fact, Dealt):
            body.append(3)
            _put(body, self._place(fact.place), fact.first, fact.messages, fact.copy + 1)
        elif isinstance(fact, Given):
            body.append(1)
            _put(body, self._place(fact.place), fact.first, fact.messages, fact.due)
        elif isinstance(fact, GivenAgain):
            body.append(2)
            _put(body, self._place(fact.place), fact.offset, fact.number, fact.due)
        elif isinstance(fact, Moved):
            body.append(4)
            _put(body, self._place(fact.place), fact.cursor, fact.resets)
        elif isinstance(fact, Forgotten):
            body.append(5)
            _put(body, self._place(fact.place))
        elif isinstance(fact, LevelDone):
            body.append(6)
            _put(body, fact.level, fact.offset, fact.copy + 1)
        elif isinstance(fact, TimersDone):
            body.append(7)
            _put(body, fact.indexed, fact.due, fact.offset, fact.copy + 1)
        elif isinstance(fact, HeldBy):
            body.append(9)
            _put(body, self._place(fact.place), fact.first, fact.messages, fact.due)
            _put(body, self._name(fact.client_id), fact.since)
        else:
            self._add_snapshot(fact)

    def add_encoded(self, data: bytes, facts: int) -> None:
        """Add facts of places that have a number. They cannot be taken back."""
        self._body += data
        self.facts += facts

    def _add_snapshot(self, fact: Snapshot) -> None:
        body = self._body
        started = any(start for *_, start in fact.entries)
        body.append(_STARTED_SNAPSHOT if started else _HELD_SNAPSHOT if fact.held else _SNAPSHOT)
        _put(body, self._place(fact.place), fact.cursor, fact.given, fact.resets, int(fact.more), len(fact.entries))
        last_offset = last_due = 0
        for offset, number, due, _ in fact.entries:
            step = due - last_due
            _put(body, offset - last_offset, number, step << 1 if step >= 0 else (-step << 1) - 1)
            last_offset, last_due = offset, due
        if fact.held or started:
            _put(body, len(fact.held))
            last_offset = 0
            for first, messages, client_id, since in fact.held:
                _put(body, first - last_offset, messages, self._name(client_id), since)
                last_offset = first
        if started:
            runs = [(start, sum(1 for _ in run)) for start, run in groupby(start for *_, start in fact.entries)]
            _put(body, len(runs))
            for start, messages in runs:
                _put(body, messages, start)

    def _place(self, place: Place) -> int:
        known = self.places.get(place)
        if known is None:
            known = self.places[place] = len(self.places)
            _put(self._table, self._name(place.group), self._name(place.topic), place.queue)
        return known

    def _name(self, name: str) -> int:
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = len(self._names)
            data = name.encode()
            _put(self._name_bytes, len(data))
            self._name_bytes += data
        return known

    def take_back(self) -> None:
        """Leave out the fact that was added last. What it added to the tables goes too."""
        body, table, name_bytes, names = self._before
        del self._body[body:], self._name_bytes[name_bytes:]
        if len(self._table) > table:
            del self._table[table:]
            self.places.popitem()
        while len(self._names) > names:
            self._names.popitem()
        self.facts -= 1

    def encode(self, base: Position, start: int) -> bytes:
        head = bytearray((VERSION,))
        _put(head, base.queue_offset, base.log_offset, start, len(self._names))
        places, facts = bytearray(), bytearray()
        _put(places, len(self.places))
        _put(facts, self.facts)
        return b"".join((head, self._name_bytes, places, self._table, facts, self._body))


def _put(into: bytearray, *numbers: int) -> None:
    for number in numbers:
        rest = number
        while rest > 0x7F:
            into.append(rest & 0x7F | 0x80)
            rest >>= 7
        into.append(rest)


# -- decode --------------------------------------------------------------------------------------------------------


class FactReader(Protocol):
    """The compiled twins that read: `tandemmq.store.delivery.compiled.fact_codec`.

    Each reads from a byte on, up to what it does not know or cannot read: the Python way goes on there. They give the
    byte after what they have read, and that.
    """

    def decode_places(
        self, body: bytes, at: int, most: int, names: list[str], place: type[Place], /
    ) -> tuple[int, list[Place]]:
        """Places of a record's table, at `most` so many."""
        ...

    def decode_run(
        self, body: bytes, at: int, most: int, places: list[Place], given: type[Given], dealt: type[Dealt],
        moved: type[Moved], /,
    ) -> tuple[int, list[Fact]]:  # fmt: skip
        """Facts that are Given, Dealt or Moved, at `most` so many."""
        ...


def decode_in_steps(body: bytes, core: FactReader | None = None) -> Generator[None, None, JournalRecord]:
    """What a journal message says, in steps of some facts: it has so many that others must have their turn in between.

    Raises UnreadableJournal.
    """
    if not body:
        raise UnreadableJournal("The journal record is empty.")
    if body[0] != VERSION:
        raise UnreadableJournal(
            f"The journal record has version {body[0]}; this release knows {VERSION}.",
            remedy="Use the release that wrote it.",
        )
    reader = _Reader(body)
    base = Position(reader.number(), reader.number())
    start = reader.number()
    yield from _read_some(reader, reader.text, reader.names, None)
    yield from _read_some(reader, reader.new_place, reader.places, None if core is None else reader.places_by(core))
    facts: list[Fact] = []
    many, facts_by_core = len(reader.count()), None if core is None else reader.facts_by(core)
    while (read := len(facts)) < many:
        taken = facts_by_core(min(many - read, _A_STEP)) if facts_by_core is not None else ()
        facts += taken
        if not taken:
            kind = reader.number()
            facts.append((yield from _snapshot(reader, kind)) if kind in _SNAPSHOTS else _fact(reader, kind))
        if len(facts) // _A_STEP != read // _A_STEP:
            yield
    if reader.at != len(body):
        raise UnreadableJournal(f"The journal record has {len(body) - reader.at} bytes more than it says.")
    return JournalRecord(base, start, tuple(facts))


def _read_some(
    reader: "_Reader", read: Callable[[], Thing], things: list[Thing], by_core: Callable[[int], list[Thing]] | None
) -> Iterator[None]:
    many = len(reader.count())
    while (had := len(things)) < many:
        taken = by_core(min(many - had, _A_STEP)) if by_core is not None else ()
        things += taken
        if not taken:
            things.append(read())
        if len(things) // _A_STEP != had // _A_STEP:
            yield


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 1
        self.names: list[str] = []
        self.places: list[Place] = []

    def number(self) -> int:
        data, at = self._data, self.at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise UnreadableJournal(f"The journal record breaks off, or has no number, at byte {self.at}.")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if value >= _LIMIT:
            raise UnreadableJournal(f"The journal record has the number {value} at byte {self.at}.")
        self.at = at
        return value

    def count(self) -> range:
        """So many things follow; each has a byte at least."""
        many = self.number()
        if many > len(self._data) - self.at:
            raise UnreadableJournal(f"The journal record says that {many} things follow byte {self.at}.")
        return range(many)

    def text(self) -> str:
        size = self.number()
        data = self._data[self.at : self.at + size]
        self.at += size
        if len(data) != size:
            raise UnreadableJournal("The journal record breaks off inside a name.")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnreadableJournal("The journal record has a name that is no UTF-8.") from None

    def places_by(self, core: FactReader) -> Callable[[int], list[Place]]:
        """Reads at most so many places, by the compiled core; none: the next one is not its."""

        def read(most: int) -> list[Place]:
            self.at, places = core.decode_places(self._data, self.at, most, self.names, Place)
            return places

        return read

    def facts_by(self, core: FactReader) -> Callable[[int], list[Fact]]:
        """The same for facts."""

        def read(most: int) -> list[Fact]:
            self.at, facts = core.decode_run(self._data, self.at, most, self.places, Given, Dealt, Moved)
            return facts

        return read

    def new_place(self) -> Place:
        return Place(self.name(), self.name(), self.number())

    def name(self) -> str:
        return self._one_of(self.names)

    def place(self) -> Place:
        return self._one_of(self.places)

    def _one_of(self, things: list[Thing]) -> Thing:
        number = self.number()
        if number >= len(things):
            raise UnreadableJournal(f"The journal record names number {number} of {len(things)}.")
        return things[number]

    def entries(self) -> Iterator[tuple[int, int, int]]:
        offset = due = 0
        for at in self.count():
            step = self.number()
            if at and not step:
                raise UnreadableJournal("The journal record has an entry twice.")
            offset += step
            number, zigzag = self.number(), self.number()
            due += (zigzag >> 1) if not zigzag & 1 else -((zigzag + 1) >> 1)
            if due < 0 or offset >= _LIMIT:
                raise UnreadableJournal("The journal record has an entry that cannot be.")
            yield offset, number, due

    def held(self) -> Iterator[HeldRun]:
        first = 0
        for _ in self.count():
            first += self.number()
            yield HeldRun(first, self.messages(), self.name(), self.number())

    def starts(self, entries: int) -> Iterator[int]:
        """The start that has given out each of the entries."""
        left = entries
        for _ in self.count():
            many, start = self.number(), self.number()
            left -= many
            if left < 0:
                break
            yield from repeat(start, many)
        if left:
            raise UnreadableJournal(f"The journal record tells the starts of more or fewer than {entries} entries.")

    def messages(self) -> int:
        """How many messages a fact is about: so many that it may take each of them by itself."""
        messages = self.number()
        if messages > _MOST_GIVEN:
            raise UnreadableJournal(f"The journal record gives out {messages} messages at once.")
        return messages


def _snapshot(reader: _Reader, kind: int) -> Generator[None, None, Snapshot]:
    number = reader.number
    place, cursor, given_to, resets, more = reader.place(), number(), number(), number(), number()
    entries: list[tuple[int, int, int]] = []
    for entry in reader.entries():
        entries.append(entry)
        if len(entries) % _A_STEP == 0:
            yield
    held = () if kind == _SNAPSHOT else tuple(reader.held())
    starts = reader.starts(len(entries)) if kind == _STARTED_SNAPSHOT else repeat(0, len(entries))
    rows = tuple([(*entry, start) for entry, start in zip(entries, starts, strict=True)])
    return Snapshot(place, cursor, given_to, resets, rows, bool(more), held)


def _fact(reader: _Reader, kind: int) -> Fact:
    number = reader.number
    match kind:
        case 1:
            return Given(reader.place(), number(), reader.messages(), number())
        case 2:
            return GivenAgain(reader.place(), number(), number(), number())
        case 3:
            return Dealt(reader.place(), number(), number(), number() - 1)
        case 4:
            return Moved(reader.place(), number(), number())
        case 5:
            return Forgotten(reader.place())
        case 6:
            return LevelDone(number(), number(), number() - 1)
        case 7:
            return TimersDone(number(), number(), number(), number() - 1)
        case 9:
            return HeldBy(reader.place(), number(), reader.messages(), number(), reader.name(), number())
    raise UnreadableJournal(f"The journal record has a fact of kind {kind}, which this release does not know.")
