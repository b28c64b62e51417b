"""Two names that change places in one step: whoever looks, and whoever starts after a crash, finds one or the other."""

import ctypes
import errno
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2

NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""Error numbers of a system, or a file system, that cannot do it."""


def exchange(one: Path, other: Path) -> None:
    """Let ``one`` have the name ``other`` and the reverse; both must exist, on one file system. Not durable by itself.

    Raises:
        OSError: nothing was changed; with a number of NOT_SUPPORTED it never can be done here.
    """
    renameat2 = getattr(_libc, "renameat2", None)
    done = -1
    if renameat2 is None:
        number = errno.ENOSYS
    else:
        done = renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
        number = ctypes.get_errno()
    if done:
        raise OSError(number, os.strerror(number), str(one), None, str(other))
