"""The file ``tandem.end``: how far the log has come, for the start after a kill.

What a killed process has written is in the page cache: while the machine runs on, nothing of it is lost. So a log that
ends before this, after a kill within one boot, was not cut by the power: its file was replaced by an older one, or lost
bytes in another way. The file lies in a mapping and is never synced; after a reboot it says nothing. A clean end
removes it.

`tandemmq.store.format.log_reached` has the layout.
"""

import os
from pathlib import Path

from tandemmq.common.files.boot import NO_BOOT
from tandemmq.store.format.log_reached import PLACES, ReachWords, UnreadableReach, decode_reached
from tandemmq.store.log.edges.disk import Disk, map_fresh
from tandemmq.store.log.marks.abort_file import Exit
from tandemmq.store.log.recovery.file_problems import FileProblem

NAME = "tandem.end"


class EndFile:
    """Says how far the log has come."""

    def __init__(self, root: Path, disk: Disk, boot: bytes, end: int) -> None:
        """Make the file, in place of one that is there. Raises OSError."""
        self._path, self._disk = root / NAME, disk
        self._words = ReachWords(boot)
        self._turn = 0
        self._lost = False
        self._fd, self._map = map_fresh(disk, self._path, self._words.whole(end))

    def note(self, end: int) -> None:
        """The log has come to ``end``."""
        if not self._lost:
            self._turn ^= 1
            self._map[PLACES[self._turn]] = self._words.place(end)

    def forget(self) -> None:
        """A flush has failed, so that the kernel may have dropped what it had: nobody can say any more."""
        self._lost = True
        self._map[:] = self._words.whole(0)

    def close(self, *, clean: bool = False) -> None:
        """Let go of the file; ``clean``: it goes. Raises OSError."""
        self._map.close()
        os.close(self._fd)
        if clean:
            self._disk.unlink(self._path)


def reached_end(root: Path, last_exit: Exit, boot: bytes, problems: list[FileProblem] | None = None) -> int:
    """Log offset that the log of a store that was killed since this ``boot`` had reached; 0 where nobody knows.

    One that cannot be read goes to ``problems``.
    """
    if last_exit is not Exit.CRASH:
        return 0
    try:
        data = (root / NAME).read_bytes()
        reached = decode_reached(data)
    except FileNotFoundError:
        return 0
    except UnreadableReach as error:
        if problems is not None:
            problems.append(FileProblem(NAME, f"{error}; it is ignored, as after a power cut"))
        return 0
    return reached.end if reached.boot == boot != NO_BOOT else 0
