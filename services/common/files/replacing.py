"""Files that are written as a whole: a crash leaves the old content or the new one, never a mixture (trap T20)."""

import os
from collections.abc import Callable
from pathlib import Path

from tandemmq.common.files.file_system import FileSystem


def write_atomically(files: FileSystem, path: Path, data: bytes, temporary: Path | None = None) -> None:
    """Replace the content of ``path``; durable when this returns. Raises OSError: it is as it was.

    ``temporary`` is its name until then, ``….tmp`` beside it by default: another for each, where several processes
    write at once.
    """

    def fill(fd: int) -> None:
        files.truncate(fd, 0)
        files.pwrite(fd, data, 0)

    create_file(files, path, temporary or path.with_name(path.name + ".tmp"), fill)


def create_file(
    files: FileSystem, path: Path, temporary: Path, fill: Callable[[int], None], *, durable: bool = True
) -> None:
    """Make a file under a temporary name, let ``fill(fd)`` give it its content, sync it and give it its name.

    A failure removes the temporary file and leaves whatever was at ``path``. Unless it is to be ``durable``, nothing
    waits for the disk: the caller syncs the file, and then its directory.
    """
    fd = files.open(temporary, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fill(fd)
            if durable:
                files.sync(fd)
        finally:
            os.close(fd)
        files.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        files.sync_dir(path.parent)


def make_dirs(files: FileSystem, path: Path) -> None:
    """Create ``path`` and its missing parents, each new name made durable."""
    missing: list[Path] = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        files.sync_dir(directory.parent)
