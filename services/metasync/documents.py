"""The files of the tables: RocketMQ's own JSON documents, each with the version before it in `.bak`.

A document is written to a temporary file, which is synced and then renamed; before that, the file that is there gets
a second name, `.bak`. A crash at any moment leaves a whole document under one of the two names, and none of them is
ever empty. A file that could not be read never becomes the back-up: that would destroy the one that can be.
"""

import fcntl
import os
from pathlib import Path
from typing import Any

from tandemmq.common.documents.java_json import dumps_table, loads
from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.metasync.errors import DirectoryInUse, DocumentNotSaved, UnreadableDocument

log = get_log(__name__)


class Document:
    """One file. Its methods block: call them on a thread, one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._backup = path.with_name(path.name + ".bak")
        self._sound = False
        """Whether what is at `path` can be read, and may therefore become the back-up."""

    def load(self, check: Any = None) -> dict[str, Any] | None:
        """What the file says, or its back-up if the file is missing or cannot be read; None if there is neither.

        `check(document)` raises ValueError when a document is no table of its kind; it then counts as unreadable.

        Raises:
            UnreadableDocument: a file is there, and neither it nor the back-up can be read.
        """
        wrong = []
        for path in (self.path, self._backup):
            try:
                document = loads(path.read_bytes())
                if check is not None:
                    check(document)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                wrong.append(f"{path}: {error}")
                continue
            if path is self._backup:
                reason = "; ".join(wrong) or f"{self.path} is missing"
                log.error("table read from its back-up: the last change may be lost", path=str(path), reason=reason)
            self._sound = path is self.path
            return document
        if wrong:
            raise UnreadableDocument(
                f"The table cannot be read: {'; '.join(wrong)}.",
                remedy="Repair the file, restore it from a back-up, or move both away to start with an empty table.",
            )
        return None

    def save(self, document: dict[str, Any]) -> None:
        """Replace the file; durable when this returns.

        Raises:
            DocumentNotSaved: what was there is still there.
        """
        try:
            make_dirs(LOCAL, self.path.parent)
            if self._sound:
                self._keep_backup()
            write_atomically(LOCAL, self.path, dumps_table(document))
        except OSError as error:
            raise DocumentNotSaved(f"Cannot write {self.path}: {error.strerror or error}.") from error
        self._sound = True

    def _keep_backup(self) -> None:
        """Gives what is at `path` the back-up's name too: a second name, or a copy where there are no hard links."""
        link = self._backup.with_name(self._backup.name + ".tmp")
        link.unlink(missing_ok=True)
        try:
            os.link(self.path, link)
        except FileNotFoundError:
            return
        except OSError:
            write_atomically(LOCAL, self._backup, self.path.read_bytes())
            return
        LOCAL.rename(link, self._backup)


class DirectoryLock:
    """Keeps a second metadata service out of a directory, for as long as this process lives or until `release`."""

    def __init__(self, directory: Path) -> None:
        """Raises DirectoryInUse, DocumentNotSaved."""
        path = directory / "tandem.metasync.lock"
        try:
            make_dirs(LOCAL, directory)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DocumentNotSaved(f"Cannot use {directory}: {error.strerror or error}.") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise DirectoryInUse(f"{directory} is in use by another metasync.") from error

    def release(self) -> None:
        """Lets others in."""
        os.close(self._fd)
