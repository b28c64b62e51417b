"""A store that runs: whether a directory is the one that it has."""

import os
from pathlib import Path

from tandemmq.store.v1 import store_pb2


def is_directory_of(root: Path, log: store_pb2.GetLogResponse) -> bool:
    """Whether `root` is the directory of the store that answered `log`.

    In another container it may have another path: then its lock file says so, which is the same file there.
    """
    if not root.is_dir():
        return False
    if os.path.isdir(log.root) and os.path.samefile(root, log.root):
        return True
    try:
        lock = os.stat(root / "lock")
    except OSError:
        return False
    return log.directory_mark == f"{lock.st_ino}-{lock.st_ctime_ns}"
