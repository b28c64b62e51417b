"""What operators see of groups: what waits for them, what they hold, how old it is. By group and topic, read only.

Read piece by piece on the event loop every few seconds, and kept as values, so that whoever asks, on whatever thread,
costs nothing.
"""

from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.log.message_store import MessageStore

_EVERY_SECONDS = 5.0
_AT_A_TIME = 1_024
"""Entries of a place that are looked at before others may have their turn."""


class GroupFigures(NamedTuple):
    """One group in one topic, all queues together. Times are store times of messages, in ms; 0: there is none."""

    group: str
    topic: str
    lag: int = 0
    """Messages that are not dealt with."""
    in_flight: int = 0
    """Those of them that were given out and are not due again."""
    ready: int = 0
    """Those that can be given out now."""
    most_deliveries: int = 0
    """Of one message that is not dealt with: how often it was given out."""
    oldest_ms: int = 0
    """The oldest that is not dealt with."""
    oldest_waiting_ms: int = 0
    """The oldest that was never given out."""
    put_off: int = 0
    """Those that have failed, that nobody holds, and whose time has not come."""


class Figures:
    """Reads them now and then."""

    def __init__(self, store: MessageStore, ledger: Ledger, timers: Timers, in_flight: Callable[[Place], int]) -> None:
        """`in_flight`: how many messages of a place somebody holds."""
        self.now: list[GroupFigures] = []
        """As they were read last, by group and topic."""
        self._store = store
        self._ledger = ledger
        self._timers = timers
        self._in_flight = in_flight

    async def run(self) -> None:
        """Read them until cancelled."""
        while True:
            await self._timers.sleep(_EVERY_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        """Read them now."""
        found: dict[tuple[str, str], GroupFigures] = {}
        slices = Slices(self._timers)
        for progress in self._ledger.all():
            one = await self._read(progress, slices)
            await slices.pause()
            key = one.group, one.topic
            found[key] = one if key not in found else _together(found[key], one)
        self.now = [found[key] for key in sorted(found)]

    async def of(self, group: str) -> list[GroupFigures]:
        """One group as it is at this moment, by topic."""
        found: dict[str, GroupFigures] = {}
        slices = Slices(self._timers)
        for progress in self._ledger.places(group):
            one = await self._read(progress, slices)
            await slices.pause()
            found[one.topic] = one if one.topic not in found else _together(found[one.topic], one)
        return [found[topic] for topic in sorted(found)]

    async def _read(self, progress: QueueProgress, slices: Slices) -> GroupFigures:
        place = progress.place
        queue = self._store.queue(place.topic, place.queue)
        begin = 0 if queue is None else queue.readable_begin
        given = max(progress.given, begin)  # what has expired waits for nobody
        end = given if queue is None else max(queue.readable_end, given)
        gone = 0 if progress.cursor >= begin else sum(offset < begin for offset in progress.entries)
        lag = end - given + len(progress.entries) - gone
        if not lag:
            return GroupFigures(place.group, place.topic)
        in_flight = self._in_flight(place)
        ready = min(end - given + self._ledger.ready_count(place), lag)
        most, entries = 0, list(progress.entries.values())
        for at in range(0, len(entries), _AT_A_TIME):
            most = max(most, *(entry.number for entry in entries[at : at + _AT_A_TIME]))
            await slices.pause()
        waiting = self._time(place, given) if given < end else 0
        oldest, put_off = self._time(place, max(progress.cursor, begin)), len(self._ledger.put_off_at(place))
        return GroupFigures(place.group, place.topic, lag, in_flight, ready, most, oldest, waiting, put_off)

    def _time(self, place: Place, offset: int) -> int:
        """When a message was stored; 0 where it cannot be read."""
        queue = self._store.queue(place.topic, place.queue)
        units = [] if queue is None else queue.read(offset, 1)
        data = self._store.read_record(units[0].physical_offset, units[0].size) if units else None
        try:
            return 0 if data is None else decode_record(data, verify=False).store_timestamp
        except CorruptRecord:
            return 0


def _together(one: GroupFigures, other: GroupFigures) -> GroupFigures:
    return GroupFigures(
        one.group,
        one.topic,
        one.lag + other.lag,
        one.in_flight + other.in_flight,
        one.ready + other.ready,
        max(one.most_deliveries, other.most_deliveries),
        _older(one.oldest_ms, other.oldest_ms),
        _older(one.oldest_waiting_ms, other.oldest_waiting_ms),
        one.put_off + other.put_off,
    )


def _older(one: int, other: int) -> int:
    return min(one, other) if one and other else one or other
