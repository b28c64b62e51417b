"""The file ``abort``: there while a store runs, so that the next start knows of a crash (RocketMQ: ``abort``).

RocketMQ leaves it empty, from version 5 on with its process id; ours says who it is. After a crash of another broker
our manifest is worth nothing: the log may have been cut and written on below the offset that it names. After a clean
exit of another broker the checkpoint has other times, which tells the same.
"""

import os
from enum import Enum
from pathlib import Path

from tandemmq.common.files.replacing import write_atomically
from tandemmq.store.log.edges.disk import Disk

NAME = "abort"
_OURS = b"tandemmq"


class Exit(Enum):
    """How the last life of a store ended."""

    CLEAN = 0
    CRASH = 1
    CRASH_OF_ANOTHER = 2


def last_exit(root: Path) -> Exit:
    """How the store in ``root`` ended last."""
    try:
        content = (root / NAME).read_bytes()
    except FileNotFoundError:
        return Exit.CLEAN
    return Exit.CRASH if _OURS in content else Exit.CRASH_OF_ANOTHER


def write(root: Path, disk: Disk) -> None:
    """Say that a store is running in ``root``."""
    write_atomically(disk, root / NAME, b"%d %s\n" % (os.getpid(), _OURS))


def remove(root: Path, disk: Disk) -> None:
    """Say that it has ended cleanly."""
    disk.unlink(root / NAME)
    disk.sync_dir(root)
