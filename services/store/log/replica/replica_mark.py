"""Saying in ``tandem.replica`` where a slave writes, and zeroing that stretch after a kill.

A master appends record by record, each one's first eight bytes last, so that a process killed in between leaves no half
record that looks whole. A slave copies stretches of any length that begin and end anywhere. So it says first where it
is going to write and afterwards that it has: after a kill the next start zeroes the stretch, of which nothing was
acknowledged, and the master sends it again. `tandemmq.store.format.replica_stretch` has the layout.

The mark lies in a mapping and is never synced: while the machine runs, the page cache holds it and the log alike. After
a reboot it may be older or newer than the log on disk; it names the boot it belongs to, and does not count then.
Checksums tell what is torn, as on a master.

Zeroing is dangerous, so a mark must be believable: see `why_not`. One that is not is reported, and the log is walked
with its own checksums. Every start removes the file, and so does a clean end: it counts once.
"""

import os
from pathlib import Path

from tandemmq.common.files.boot import NO_BOOT
from tandemmq.store.format.replica_stretch import BEGIN_AT, SIZE, STATE_AT, Mark, MarkWords, UnreadableMark, decode_mark
from tandemmq.store.log.edges.disk import Disk, map_fresh
from tandemmq.store.log.marks.abort_file import Exit
from tandemmq.store.log.recovery.file_problems import FileProblem
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue
from tandemmq.store.log.segments.scan import nonzero_stretches

NAME = "tandem.replica"


class ReplicaMark:
    """Says where a slave writes. Made when the first replica bytes come."""

    def __init__(self, root: Path, disk: Disk, boot: bytes) -> None:
        """Make the file, in place of one that is there; ``boot``: the machine's `boot_id`. Raises OSError."""
        self._path, self._disk = root / NAME, disk
        self._words = MarkWords(boot)
        self._fd, self._map = map_fresh(disk, self._path, self._words.fresh)

    def begin(self, begin: int, end: int) -> None:
        """The stretch ``[begin, end)`` is about to be written. It is not empty, and within one file of the log."""
        self._map[BEGIN_AT:STATE_AT], self._map[STATE_AT:SIZE] = self._words.writing(begin, end - begin)

    def done(self) -> None:
        """It is written."""
        self._map[STATE_AT:SIZE] = self._words.idle

    def close(self, *, clean: bool = False) -> None:
        """Let go of the file; ``clean``: nothing is being written, and it goes. Raises OSError."""
        self._map.close()
        os.close(self._fd)
        if clean:
            self._disk.unlink(self._path)


def zero_unfinished(
    root: Path,
    files: MappedFileQueue,
    disk: Disk,
    last_exit: Exit,
    durable: int,
    problems: list[FileProblem],
    boot: bytes,
) -> None:
    """Zero the stretch that a killed slave was writing, before anything is read from the log, and remove the mark.

    ``durable``: log offset up to which everything was dispatched and synced once. A mark that is not believed goes to
    ``problems``. Raises OSError.
    """
    path = root / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    try:
        mark = decode_mark(data)
        reason = why_not(mark, files, last_exit, durable) if mark.end > mark.begin and _is_of(boot, mark) else ""
    except UnreadableMark as error:
        mark, reason = Mark(NO_BOOT, 0, 0), str(error)
    if reason:
        problems.append(FileProblem(NAME, f"{reason}; it is ignored, the log's own checksums tell what is whole"))
    elif _is_of(boot, mark):
        _zero(files, mark)
    disk.unlink(path)


def _is_of(boot: bytes, mark: Mark) -> bool:
    """Whether the machine has run ever since."""
    return mark.boot == boot != NO_BOOT


def why_not(mark: Mark, files: MappedFileQueue, last_exit: Exit, durable: int) -> str:
    """Why a mark that says that something is being written cannot be true; empty if it can."""
    stretch = f"it says that log offsets {mark.begin:,} to {mark.end:,} were being written"
    if last_exit is not Exit.CRASH:
        return f"{stretch}, but {'the last stop was clean' if last_exit is Exit.CLEAN else 'another broker ran since'}"
    if mark.begin < durable:
        return f"{stretch}, but the log was complete up to {durable:,}"
    file = files.find(mark.begin)
    if file is None or mark.end > file.end:
        return f"{stretch}, but no log file has such a stretch"
    if any(any(nonzero_stretches(later, max(0, mark.end - later.start))) for later in files if later.end > mark.end):
        return f"{stretch}, but the log goes on after it"
    return ""


def _zero(files: MappedFileQueue, mark: Mark) -> None:
    file = files.find(mark.begin)
    if file is not None and mark.begin < mark.end:
        file.map[mark.begin - file.start : mark.end - file.start] = bytes(mark.end - mark.begin)
