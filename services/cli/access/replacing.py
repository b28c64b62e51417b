"""A file with secrets is replaced whole or not at all, by one editor at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.common.files.file_system import LocalFileSystem
from tandemmq.common.files.replacing import create_file

_PRIVATE = LocalFileSystem(mode=0o600)


@contextmanager
def replacing(path: Path) -> Iterator[Callable[[str], None]]:
    """Gives what writes the new text; others who edit a file of that directory wait until the block ends.

    A new file is readable to its owner only; an existing one keeps owner and mode. Raises CommandFailed.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise CommandFailed(f"{path.parent}: {error.strerror}") from error
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield lambda text: _replace(path, text)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.close(directory)


def _replace(path: Path, text: str) -> None:
    """Whoever reads finds the old text or the new one, and only who may read it. Raises OSError."""
    from secrets import token_hex

    def fill(fd: int) -> None:
        _PRIVATE.pwrite(fd, text.encode(), 0)
        if path.exists():
            before = path.stat()
            if (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
                os.fchown(fd, before.st_uid, before.st_gid)
            os.fchmod(fd, before.st_mode & 0o7777)

    create_file(_PRIVATE, path, path.with_name(f".{path.name}.{token_hex(4)}"), fill)
