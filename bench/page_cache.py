"""Files that are not in memory: the page cache is told to forget them, and asked whether it did."""

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

from bench.model import Unavailable

_PAGE = mmap.PAGESIZE
_MOST_LEFT = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


def forget(paths: Iterable[Path]) -> None:
    """Sync files and drop their pages. Raises Unavailable if some process holds on to more than a fiftieth."""
    pages = left = 0
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.fstat(fd).st_size
            pages += -(-size // _PAGE)
            left += _resident(fd, size)
        finally:
            os.close(fd)
    if left > _MOST_LEFT * pages:
        raise Unavailable(f"{left / max(pages, 1):.0%} of the log stay in memory: somebody maps them")


def _resident(fd: int, size: int) -> int:
    """Pages of a file that are in memory."""
    # A private mapping that may be written to, as ctypes takes the address of no other; nothing is written.
    with mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as mapped:
        vector = (ctypes.c_ubyte * -(-size // _PAGE))()
        view = (ctypes.c_char * size).from_buffer(mapped)
        failed = _libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), vector)
        del view
    return len(vector) if failed else sum(one & 1 for one in bytes(vector))
