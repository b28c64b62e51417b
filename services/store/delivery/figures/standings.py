"""Where single messages stand, as operators see them: how often one came to a group, who holds it, when it comes."""

import heapq
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.common.topic_names import RETRY
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.format.record import decode_record

_AT_A_TIME = 1_024
"""Entries of a place that are looked at before others may have their turn."""


class OpenState(Enum):
    """Of a message that a group has not dealt with."""

    WAITS = "waits"
    """It was not given out yet."""
    HELD = "held"
    """Somebody has it."""
    PUT_OFF = "put off"
    """It has failed, nobody has it, and its next delivery is later."""
    READY = "ready"
    """It can be given out again."""


class OpenMessage(NamedTuple):
    """One message in one group."""

    place: Place
    offset: int
    state: OpenState
    deliveries: int = 0
    """How often it came to the group; in a retry topic those before it was moved there are among them."""
    due_in_ms: int = 0
    """Until it comes again."""
    client_id: str = ""
    """Who holds it, if that renews it."""


class Standings:
    """Looks at single messages. Only at what is not dealt with: the rest is forgotten."""

    def __init__(self, ledger: Ledger, clock: DeliveryClock, timers: Timers, reader: PlaceReader) -> None:
        self._ledger = ledger
        self._clock = clock
        self._timers = timers
        self._reader = reader

    async def of_messages(self, wanted: Mapping[tuple[str, int], Collection[int]]) -> list[OpenMessage]:
        """Messages, by topic and queue, in all groups that have a position there; by group."""
        found: list[OpenMessage] = []
        slices = Slices(self._timers)
        for progress in list(self._ledger.all()):
            offsets = wanted.get((progress.place.topic, progress.place.queue), ())
            found += (one for offset in sorted(offsets) if (one := self._standing(progress, offset)) is not None)
            await slices.pause()
        return sorted(found, key=lambda one: (one.place, one.offset))

    async def failing(self, group: str, most: int) -> list[OpenMessage]:
        """Messages of a group that came more than once, or moved to its retry topic; the worst first."""
        slices = Slices(self._timers)
        found: list[OpenMessage] = []
        for progress in self._ledger.places(group):
            entries = list(progress.entries.items())
            for at in range(0, len(entries), _AT_A_TIME):
                piece = heapq.nlargest(most, _failed(progress.place, entries[at : at + _AT_A_TIME]))
                for _, offset in piece:
                    if (one := self._standing(progress, offset)) is not None:
                        found.append(one)
                    await slices.pause()
                found = heapq.nlargest(most, found, key=_often)
        return sorted(found, key=lambda one: (-one.deliveries, one.place, one.offset))

    def _standing(self, progress: QueueProgress, offset: int) -> OpenMessage | None:
        """None: it is dealt with."""
        place, entry = progress.place, progress.entries.get(offset)
        if entry is None:
            waits = progress.given <= offset and self._reader.has_beyond(place, offset)
            return OpenMessage(place, offset, OpenState.WAITS, self._before(place, offset)) if waits else None
        due_in = entry.due - self._clock.now_ms()
        state = OpenState.HELD
        if not entry.number:
            state = OpenState.WAITS
        elif due_in <= 0:
            state = OpenState.READY
        elif offset in self._ledger.put_off_at(place):
            state = OpenState.PUT_OFF
        holding = progress.holdings.get(offset) if state is OpenState.HELD else None
        deliveries = entry.number + self._before(place, offset)
        return OpenMessage(
            place, offset, state, deliveries, max(due_in, 0), "" if holding is None else holding.client_id
        )

    def _before(self, place: Place, offset: int) -> int:
        """Deliveries before a message came to the retry topic, as it says itself."""
        data = self._reader.one(place, offset) if place.topic.startswith(RETRY) else Absence.GONE
        return 0 if isinstance(data, Absence) else decode_record(data, verify=False).reconsume_times


def _failed(place: Place, entries: list[tuple[int, OpenEntry]]) -> Iterator[tuple[int, int]]:
    """(number, offset) of those that have failed at least once."""
    least = 1 if place.topic.startswith(RETRY) else 2
    return ((entry.number, offset) for offset, entry in entries if entry.number >= least)


def _often(one: OpenMessage) -> int:
    return one.deliveries
