"""What was written and made, and is not durable yet."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import FlushFailed

_NOT_BEGUN = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class Unsynced(NamedTuple):
    """Files that were written, and directories in which there are new names."""

    files: list[Path]
    directories: list[Path]


def sync_files(disk: Disk, paths: Iterable[Path]) -> None:
    """Sync files, but for those that are gone: they have expired. Blocks.

    Raises:
        FlushFailed: the disk refused, and may have lost the pages.
        OSError: a file cannot be opened, such as for want of descriptors; its pages are as dirty as before.
    """
    for path in paths:
        try:
            fd = disk.open(path, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            with final_sync():
                disk.sync(fd)
        finally:
            os.close(fd)


def sync_names(disk: Disk, directories: Iterable[Path]) -> None:
    """Make the names in directories durable, after their files: a name must not outlive the file's length. Blocks.

    Those that are gone were moved away with what was in them. Raises as `sync_files`.
    """
    for directory in directories:
        try:
            disk.sync_dir(directory)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno in _NOT_BEGUN:
                raise
            with final_sync():
                raise


@contextmanager
def final_sync() -> Iterator[None]:
    """A sync within: one that fails is never tried again. Raises FlushFailed."""
    try:
        yield
    except OSError as error:
        raise FlushFailed(f"Consume queues or index could not be made durable: {error}.") from error
