"""The timers that are due next, in memory: read from the index second by second, a little ahead of time.

No clock and no delivery: whoever delivers says what time it is, and takes what is due in its order.
"""

import heapq
from collections.abc import Generator, Iterable

from tandemmq.store.delivery.delays.timer_entry import HOUR_MS, TimerEntry
from tandemmq.store.delivery.delays.timer_index import CROWDED, SlotReading, TimerIndex
from tandemmq.store.delivery.delays.timer_slot import Slot, hour_of
from tandemmq.store.delivery.journal.facts import TimersDone

AHEAD_MS = 5_000
"""Timers are read so long before they are due."""
_MOST_ENTRIES = 32_768
"""With more in memory no further slot is read."""
_NEAR_MS = (2 * HOUR_MS, 300_000, 60_000)
"""So long before it begins a slot is split in the background: an hour, a minute, a crowded second."""
_KEPT_STEPS = 5
"""Recalls are remembered for so many steps after what is due: one of Java's names the step only."""


class TimerWindow:
    """What is due next, by the index."""

    def __init__(self, index: TimerIndex, precision_ms: int, done: TimersDone | None) -> None:
        """`done`: what is delivered already."""
        self._index = index
        self._precision = precision_ms
        self._done = done or TimersDone(0, 0, -1)
        self._heap: list[TimerEntry] = []
        self._loaded = 0  # all that is before this time is in the heap, or was
        self._loading: Slot | None = None
        self._reading = SlotReading(index, Slot(0, 0))
        self._scanned = True
        self._splits: dict[Slot, Generator[list[TimerEntry], None, None]] = {}
        self._about: dict[tuple[int, int], set[TimerEntry]] = {}
        self._forgotten = 0
        self._fresh: list[int] = []

    def __len__(self) -> int:
        """Timers in memory."""
        return len(self._heap)

    @property
    def loaded_to(self) -> int:
        """All timers before this time, in ms, are in memory, or were."""
        return self._loaded

    def waiting(self) -> int:
        """Timers that are not taken yet, in memory and in the index."""
        later = (size for slot, size in self._index.slots() if slot.start >= self._loaded and slot != self._loading)
        return len(self._heap) + sum(later)

    def due(self, now_ms: int) -> int:
        """Those in memory whose time has come."""
        return sum(1 for entry in self._heap if entry.when <= now_ms)

    # -- taking what is due -----------------------------------------------------------------------------------------

    def first(self) -> TimerEntry | None:
        """The timer that is due next, as far as is known; None also while it must be read first."""
        if not self._heap:
            return None
        return self._heap[0] if self._knows(self._heap[0].when) else None

    def _knows(self, when: int) -> bool:
        """Whether what is taken up to a time is taken in its order; of a millisecond, all that was read of it."""
        loading = self._loading
        return when < self._loaded or (loading is not None and loading.level == 3 and self._scanned)

    def pop(self) -> TimerEntry:
        """Take the first."""
        return heapq.heappop(self._heap)

    def put_back(self, entry: TimerEntry) -> None:
        """It could not be delivered."""
        heapq.heappush(self._heap, entry)

    def nothing_before(self, when: int, offset: int) -> bool:
        """Whether all up to (when, offset) was taken; not where that is further ahead than the window has read."""
        return self._knows(when) and (not self._heap or self._heap[0][:2] > (when, offset))

    def taken_below(self, when: int, offset: int, least: int) -> int:
        """The queue offset below which all up to (when, offset) was taken, if what the index has below `least` was.

        For a time that a clock has come to which was ahead: there is more to come before it. Raises as `load`.
        """
        held = (entry.offset for entry in self._heap if entry[:2] <= (when, offset))
        return min((self._index.first_from(least, self._loaded, when), *held))

    def next_time(self) -> int | None:
        """When there is something to do next; None: not before something is added."""
        times = [self._heap[0].when] if self._heap else []
        slot = self._index.next_slot(self._loaded)
        if slot is not None:
            times.append(slot.start - AHEAD_MS)
        return min(times, default=None)

    def about(self, entry: TimerEntry) -> list[TimerEntry]:
        """Later records that may speak of the same message: recalls, and the same stored again."""
        found = self._about.get((self._step(entry.when), entry.mark))
        return [] if found is None else [one for one in found if one.offset > entry.offset]

    # -- filling ----------------------------------------------------------------------------------------------------

    def add(self, entries: Iterable[TimerEntry]) -> list[TimerEntry]:
        """Entries that were added to the index just now; gives those that belong to what is in memory."""
        loading = self._loading
        mine = []
        for entry in entries:
            if entry.when < self._loaded:
                mine.append(entry)
                self._take(entry)
            elif loading is not None and loading.start <= entry.when < loading.end:
                self._note(entry)
        return mine

    def load(self, now_ms: int) -> bool:
        """Do one small step of what must be done by now; whether there is more.

        Raises BadEntries: the index must be made anew. OSError.
        """
        if self._loading is not None:
            self._load_piece(self._loading)
            return True
        if len(self._heap) > _MOST_ENTRIES:
            return False
        slot = self._index.next_slot(self._loaded)
        horizon = now_ms + AHEAD_MS
        if slot is None or slot.start > horizon:
            self._loaded = max(self._loaded, horizon)
            return False
        if slot.level < 2 or (slot.level == 2 and self._index.size(slot) > CROWDED):
            self._split_piece(slot)
        else:
            self._loading, self._scanned = slot, slot.level < 3
            self._reading = SlotReading(self._index, slot)
        return True

    def prepare(self, now_ms: int) -> bool:
        """Do one small step of what will have to be done soon; whether there is more. Raises as `load`."""
        for slot, size in self._index.slots():
            if slot.start > now_ms + _NEAR_MS[0]:
                break
            if slot.level == 3 or (slot.level == 2 and size <= CROWDED) or slot == self._loading:
                continue
            if slot.start <= now_ms + _NEAR_MS[slot.level] and not self._is_part(slot):
                self._split_piece(slot)
                return True
        for hour in range(now_ms - now_ms % HOUR_MS, now_ms + _NEAR_MS[0], HOUR_MS):
            self._index.split_empty(hour_of(hour))
        self._forget(now_ms)
        return False

    def _is_part(self, slot: Slot) -> bool:
        return any(one.level < slot.level and one.start <= slot.start < one.end for one in self._splits)

    def _split_piece(self, slot: Slot) -> None:
        split = self._splits.get(slot)
        if split is None:
            split = self._splits[slot] = self._index.split(slot)
        if next(split, None) is None or not self._index.size(slot):
            del self._splits[slot]

    def _load_piece(self, slot: Slot) -> None:
        for entry in self._reading.piece():
            if not self._scanned:
                self._note(entry)
            elif entry.when >= self._loaded and self._take(entry):
                self._fresh.append(entry.physical)
        if self._reading.at_end:  # in the same turn: what comes from now on is added by `add`
            if not self._scanned:
                self._scanned, self._reading = True, SlotReading(self._index, slot)
                return
            self._loading, self._loaded = None, max(self._loaded, slot.end)

    def _take(self, entry: TimerEntry) -> bool:
        done = self._done
        if entry.offset < done.indexed and (entry.when, entry.offset) <= (done.due, done.offset):
            return False
        heapq.heappush(self._heap, entry)
        self._note(entry)
        return True

    def take_fresh(self) -> list[int]:
        """Log offsets of timers that were read from the disk since the last call, and are due soon."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def _note(self, entry: TimerEntry) -> None:
        if entry.recall or entry.rolled:
            self._about.setdefault((self._step(entry.when), entry.mark), set()).add(entry)

    def _step(self, when: int) -> int:
        return (when - 1) // self._precision

    def _forget(self, now_ms: int) -> None:
        """Recalls of what is delivered."""
        before = self._step(min(now_ms, self._heap[0].when if self._heap else now_ms)) - _KEPT_STEPS
        if before > self._forgotten:
            self._forgotten = before
            self._about = {key: found for key, found in self._about.items() if key[0] >= before}

    def close(self) -> None:
        """Stop what is half done: slots that are being split stay whole."""
        splits, self._splits = self._splits, {}
        for split in splits.values():
            split.close()
        self._heap.clear()
