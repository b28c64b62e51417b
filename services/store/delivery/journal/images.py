"""`consumerOffset.json` and `delayOffset.json` as images of the journal: what they say, and what follows from it.

Both are RocketMQ's files. Ours carry `tandemJournal`, the queue offset of the journal record up to which they were
made, and `tandemResets`, how often each cursor was reset. A file without the mark was written by a RocketMQ broker.
No I/O.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tandemmq.store.delivery.journal.facts import Fact, LevelDone, Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger

MARK, RESETS, OFFSETS, VERSION = "tandemJournal", "tandemResets", "offsetTable", "dataVersion"
_LIMIT = 1 << 63


class Cursor(NamedTuple):
    """Where a group stands in a queue."""

    place: Place
    offset: int
    resets: int = 0


def read_offsets(document: Mapping[str, Any]) -> Iterator[Cursor]:
    """What a document says, one after the other. Entries that make no sense are left out.

    Raises ValueError: it is no such document.
    """
    table, resets = document.get(OFFSETS), document.get(RESETS) or {}
    if not isinstance(table, Mapping) or not isinstance(resets, Mapping):
        raise ValueError(f"it has no {OFFSETS}")
    for key, queues in table.items():
        topic, _, group = str(key).partition("@")
        counts = resets.get(key) or {}
        if not group or not isinstance(queues, Mapping) or not isinstance(counts, Mapping):
            continue
        for queue, offset in queues.items():
            count = counts.get(queue, 0)
            if not (_natural(offset) and _natural(count) and str(queue).isdecimal() and len(str(queue)) < 10):
                continue
            yield Cursor(Place(group, topic, int(queue)), offset, count)


def read_levels(document: Mapping[str, Any]) -> dict[int, int]:
    """The offset of each delay level. Raises ValueError: it is no such document."""
    table = document.get(OFFSETS)
    if not isinstance(table, Mapping):
        raise ValueError(f"it has no {OFFSETS}")
    return {int(level): offset for level, offset in table.items() if str(level).isdecimal() and _natural(offset)}


def _natural(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LIMIT


def cursors_of_image(
    cursors: Iterable[Cursor], ledger: Ledger, end: Callable[[Place], int | None], *, backwards: bool
) -> list[Fact]:
    """What becomes of cursors that an image names: the greater of image and journal within the same reset count.

    `end`: where a queue ends; None where there is none: nothing is known of such a place. `backwards`: the image wins
    even where it stands behind the journal; what was given out beyond that is called back.
    """
    facts: list[Fact] = []
    for place, offset, resets in cursors:
        last = end(place)
        if last is None:
            continue
        cursor, known = min(offset, last), ledger.progress(place)
        if known is None or resets > known.resets or (resets == known.resets and cursor > known.cursor):
            facts.append(Moved(place, cursor, resets))
        elif backwards and cursor < known.cursor:
            facts.append(Moved(place, cursor, known.resets + 1))
    return facts


def levels_of_image(levels: Mapping[int, int], ledger: Ledger, *, backwards: bool) -> list[Fact]:
    """The same for delay levels."""
    known = ledger.levels
    return [
        LevelDone(level, offset)
        for level, offset in levels.items()
        if offset > known.get(level, -1) or (backwards and offset < known[level])
    ]


def with_cursors(document: dict[str, Any], cursors: Iterable[Cursor], gone: Iterable[Place], mark: int) -> None:
    """Change a document of consumer offsets to say where places stand now, and that some are gone."""
    table, resets = document.setdefault(OFFSETS, {}), document.setdefault(RESETS, {})
    for place in gone:
        for rows in (table, resets):
            queues = rows.get(_key(place))
            if queues is not None:
                queues.pop(str(place.queue), None)
                if not queues:
                    del rows[_key(place)]
    for place, offset, count in cursors:
        table.setdefault(_key(place), {})[str(place.queue)] = offset
        if count:
            resets.setdefault(_key(place), {})[str(place.queue)] = count
    document[MARK] = mark


def _key(place: Place) -> str:
    return f"{place.topic}@{place.group}"
