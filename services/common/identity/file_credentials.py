"""Credentials of a service: its name, and a secret in a file that may be changed while it runs."""

import os
from pathlib import Path

from tandemmq.common.identity.credentials import UnreadableSecret, authorization, read_secret
from tandemmq.common.log_output import get_log

log = get_log(__name__)


class FileCredentials:
    """A name, and a secret in a file that may change while we run.

    A changed file counts from the next call on. One that cannot be read any more leaves the secret as it was.
    """

    def __init__(self, user: str, path: Path, name: str) -> None:
        """`name`: what named the file, for errors. Raises UnreadableSecret, BadUserName."""
        self.user = user
        self._path = path
        self._name = name
        self._seen = self._look()
        self._metadata = (authorization(user, read_secret(path, name)),)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What to send with a call that begins now. Costs a look at the file's date."""
        found = self._look()
        if found != self._seen:
            self._seen = found
            try:
                self._metadata = (authorization(self.user, read_secret(self._path, self._name)),)
                log.info("secret read again", file=str(self._path), user=self.user)
            except UnreadableSecret as error:
                log.warning("secret stays as it was", user=self.user, reason=error.message)
        return self._metadata

    def _look(self) -> tuple[int, int, int] | None:
        """What changes when the file does; None while it cannot be looked at."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
