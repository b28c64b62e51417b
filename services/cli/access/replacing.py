"""A file with secrets is replaced whole or not at all, by one editor at a time."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tandemmq.cli.talk.failures import CommandFailed

_MODE = 0o600


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
        yield lambda text: _replace(path, text, directory)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.close(directory)


def _replace(path: Path, text: str, directory: int) -> None:
    """Write beside it, then change names: whoever reads finds the old text or the new one. Raises OSError."""
    beside = f".{path.name}."
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=beside, delete=False, encoding="utf-8") as new:
        try:
            new.write(text)
            new.flush()
            os.fchmod(new.fileno(), _MODE)
            if path.exists():
                before = path.stat()
                if (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
                    os.fchown(new.fileno(), before.st_uid, before.st_gid)
                os.fchmod(new.fileno(), before.st_mode & 0o7777)
            os.fsync(new.fileno())
            os.replace(new.name, path)
        except BaseException:
            os.unlink(new.name)
            raise
    os.fsync(directory)
