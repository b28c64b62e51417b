"""Bringing records into the page cache before they are read, so that whoever reads them on the loop does not wait."""

import os
from collections.abc import Iterable
from contextlib import suppress

from tandemmq.store.format.record_fields import size_at
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue

_FIRST = 4_096
_MOST = 8 << 20


def touch_records(files: MappedFileQueue, offsets: Iterable[int]) -> None:
    """Read the records that begin at log offsets, and throw away what was read; in a thread, and best effort.

    By system calls, which hold no interpreter lock while they wait for the disk, as a page fault does.
    """
    for offset in offsets:
        file = files.find(offset)
        if file is None:
            continue
        at = offset - file.start
        with suppress(OSError):
            head = os.pread(file.fd, _FIRST, at)
            size = min(size_at(head), _MOST)
            if size > len(head) == _FIRST:
                os.pread(file.fd, size - _FIRST, at + _FIRST)
