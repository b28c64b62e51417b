"""The lock on a store directory, as RocketMQ takes it: an exclusive POSIX record lock on byte 0 of the file ``lock``.

Whoever closes any descriptor of that file gives up the locks that its process has on it.
"""

import fcntl
import os
import struct
from pathlib import Path

NAME = "lock"

_FLOCK = "hhqqi"
"""``struct flock``: type, whence, start, length, process."""


def take_record_lock(fd: int) -> None:
    """Lock the directory of an open lock file. Raises OSError: another process has it."""
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


def is_locked(root: Path) -> bool:
    """Whether another process, a broker of ours or of RocketMQ's, has the directory; asked without taking the lock."""
    try:
        fd = os.open(root / NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        lock_type: int = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, query))[0]
        return lock_type != fcntl.F_UNLCK
    finally:
        os.close(fd)
