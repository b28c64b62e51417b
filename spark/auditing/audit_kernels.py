"""The audit's look at an index file, in machine code: 20 million entries in half a second."""

from typing import Any

import numpy as np

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled.jit import helper, kernel
from tandemmq.store.format.compiled.memory import address_of, int_at, long_at
from tandemmq.store.format.index_layout import (
    ENTRY_PHYSICAL_AT,
    ENTRY_PREVIOUS_AT,
    ENTRY_SECONDS_AT,
    ENTRY_SIZE,
    HEADER_SIZE,
    SLOT_SIZE,
)

_DETOURS = 16
"""Steps an entry, over all, that chains may make through entries of other slots: no chain makes any in a sound file."""

UNREACHABLE, IMPOSSIBLE, DISORDER = range(3)
"""Rows of what `look_at_entries` gives."""


def look_at_entries(buffer: ReadBuffer, slots: int, count: int, limit: int, *, live: bool) -> tuple[list[int], Any]:
    """Look at the entries 1 to ``count`` - 1 of an index file, whose length the caller has compared with the layout.

    Gives [unreachable, impossible, out of order, slots in use, lowest physical offset, highest] and an array of the
    numbers of the first ``limit`` entries (from the newest) of the three kinds. ``live``: a broker adds entries
    meanwhile, whose numbers are ``count`` and higher.
    """
    address, _keep = address_of(buffer)
    newest = np.zeros(slots, np.int32)
    result = np.zeros(6, np.int64)
    places = np.zeros((3, max(min(limit, count), 1)), np.int64)
    entries = (len(buffer) - HEADER_SIZE - SLOT_SIZE * slots) // ENTRY_SIZE
    _look(address, slots, min(count, entries), entries, live, newest, result, places)
    return result.tolist(), places


@kernel
def _look(file: int, slots: int, count: int, entries: int, live: bool, newest: Any, result: Any, places: Any) -> None:
    base = file + HEADER_SIZE + SLOT_SIZE * slots
    for slot in range(slots):
        number = int_at(file + HEADER_SIZE + SLOT_SIZE * slot)
        while live and count <= number < entries:
            before = int_at(base + ENTRY_SIZE * number + ENTRY_PREVIOUS_AT)
            number = before if before < number else 0
        if 0 < number < count:
            newest[slot] = number
            result[3] += 1
    left = _DETOURS * count
    low, high, after = 1 << 62, -1, 1 << 62
    for number in range(count - 1, 0, -1):
        at = base + ENTRY_SIZE * number
        hashed, physical = int_at(at), long_at(at + ENTRY_PHYSICAL_AT)
        seconds, previous = int_at(at + ENTRY_SECONDS_AT), int_at(at + ENTRY_PREVIOUS_AT)
        impossible = hashed < 0 or physical < 0 or seconds < 0 or previous < 0 or previous >= number
        if impossible or (hashed | physical | seconds | previous) == 0:
            _note(result, places, 1, number)
        if physical > after:
            _note(result, places, 2, number + 1)
        after = physical
        low, high = min(low, physical), max(high, physical)
        if hashed < 0:
            continue
        slot = hashed % slots
        while newest[slot] > number and left > 0:  # through an entry of another slot, as a search would go
            at = base + ENTRY_SIZE * newest[slot]
            before = int_at(at + ENTRY_PREVIOUS_AT)
            newest[slot] = before if 0 < before < newest[slot] else 0
            left -= 1
        if newest[slot] == number:
            newest[slot] = previous if 0 < previous < number else 0
        else:
            _note(result, places, 0, number)
    result[4], result[5] = low, high


@helper
def _note(result: Any, places: Any, kind: int, number: int) -> None:
    if result[kind] < places.shape[1]:
        places[kind, result[kind]] = number
    result[kind] += 1
