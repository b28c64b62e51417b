"""The compiled twins of the walker, the index functions and the batch writer: a part of the compiled core.

Where it is not built for this Python, importing this package or any module of it raises CoreMissing, an ImportError; so
in a store only functions import it (walker.compiled_walker, batch.compiled_batch_writer).

    walk_kernel.py     kernels of the walker: walk, units, verify, resync     walker.py  their Python side
    index_kernel.py    kernels of the index: keys of a walk, entries, chains  index.py, keys.py
    column_kernel.py   kernels that gather fields of records                  record_columns.py, laid out for Arrow
    batch_kernel.py    kernels of the batch writer                            batch.py
    addresses.py       where buffers begin
    walk_layout.py     what a walk fills, for Python

What kernels share is declared, and compiled into each of them:

    memory.pxd         big-endian loads and stores at an address, and the checksum
    text.pxd           Java's hash over UTF-8
    record_check.pxd   the check of one record and what is read from it
    walk_rows.pxd      what a walk fills
    arrays.pxd         the numbers of an array

Kernels take addresses, not buffers: no bounds are checked but those the code checks. They release the GIL. The rule for
changes: change the readable twin first, then run the tests that compare both.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from tandemmq.store.format.core_missing import CoreMissing

_KERNELS = ("addresses", "batch_kernel", "column_kernel", "index_kernel", "walk_kernel")


def _lacking() -> list[str]:
    """Kernels that are not there as machine code for this Python: their source alone cannot be imported."""
    here = Path(__file__).parent
    return [name for name in _KERNELS if not any((here / f"{name}{suffix}").exists() for suffix in EXTENSION_SUFFIXES)]


if _lacking():
    raise CoreMissing(f"the compiled core is not built for this Python: it has no {', '.join(_lacking())}")
