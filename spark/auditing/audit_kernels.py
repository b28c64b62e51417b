"""The audit's look at an index file, in machine code: 20 million entries in half a second."""

from typing import Any

import numpy as np

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled import index_kernel
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE

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
    index_kernel.look_at(address, slots, min(count, entries), entries, live, newest, result, places)
    return result.tolist(), places
