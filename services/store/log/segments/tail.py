"""The end of the log: what lies after the last good record is kept in ``broken/``, then zeroed (trap T1)."""

import logging

from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.store.format.record_fields import is_half
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.segments.mapped_file import MappedFile, file_name
from tandemmq.store.log.segments.scan import nonzero_stretches

log = logging.getLogger(__name__)


def cut_tail(parts: StoreParts, end: int, damage: list[DamagedRange]) -> int:
    """Cut the log at ``end``: copy what is after it to ``broken/``, zero it, remove later files. Gives the bytes cut.

    Bytes that are not zeroed would be taken for messages again as soon as new records happen to end where old ones
    begin.
    """
    cut = 0
    last = parts.files.last
    while last is not None and last.start > end:
        parts.files.drop_last()
        cut += _put_aside(parts, last)
        last = parts.files.last
    if last is not None and end < last.end:
        cut += _zero_behind(parts, last, end - last.start, damage)
    return cut


def _put_aside(parts: StoreParts, file: MappedFile) -> int:
    """Remove a file after the end of the log; one that is not all zeros goes to ``broken/``."""
    size = sum(stop - begin for begin, stop in nonzero_stretches(file, 0))
    if size:
        make_dirs(parts.disk, parts.config.broken_dir)
        parts.disk.rename(file.path, parts.config.broken_dir / f"{file.path.name}.broken")
        parts.disk.sync_dir(parts.config.broken_dir)
        parts.disk.sync_dir(file.path.parent)
    else:
        file.remove()
    return size


def _zero_behind(parts: StoreParts, file: MappedFile, at: int, damage: list[DamagedRange]) -> int:
    stretches = list(nonzero_stretches(file, at))
    if not stretches:
        return 0
    stop = stretches[-1][1]
    content = file.map[at:stop].rstrip(b"\0")
    kept = ""
    if not (parts.mastership.is_slave and is_half(content)):  # a slave's master sends it again, whole
        kept = _keep(parts.disk, parts, file.start + at, content)
    for begin, end in stretches:
        file.map[begin:end] = bytes(end - begin)
    file.sync()
    if kept:
        damage.append(DamagedRange(file.start + at, file.start + at + len(content), "torn", f"cut off, kept as {kept}"))
    return len(content)


def _keep(disk: Disk, parts: StoreParts, offset: int, content: bytes) -> str:
    make_dirs(disk, parts.config.broken_dir)
    path = parts.config.broken_dir / f"{file_name(offset)}.broken"
    number = 1
    while path.exists():
        path = path.with_name(f"{file_name(offset)}.{number}.broken")
        number += 1
    write_atomically(disk, path, content)
    log.warning("Cut %d bytes after log offset %d; they are kept in %s", len(content), offset, path)
    return path.name
