"""SigningSecrets: what users of the access file sign with, where a protocol wants signatures.

access.toml has hashes of secrets, and a signature can only be checked with the secret itself. So these have a file of
their own beside it, for its owner's eyes only: `access.signing.toml`, made by `tandem user signing-secret`.

::

    [secrets]
    alice = "…"
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tandemmq.common.access.errors import AccessFileError
from tandemmq.common.log_output import get_log

log = get_log(__name__)

_LOOK_SECONDS = 1.0


def signing_file(access_file: Path) -> Path:
    """Where the signing secrets of an access file's users are."""
    return access_file.with_name(f"{access_file.stem}.signing.toml")


def read_secrets(path: Path) -> dict[str, str]:
    """Signing secrets by user; none where there is no file. Raises AccessFileError."""
    import tomllib  # here: services without an accessFile need not load it

    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise AccessFileError(f"{path} can be read by others than its owner", remedy=f"chmod 600 {path}")
            found = tomllib.load(file).get("secrets", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AccessFileError(f"cannot read the signing secrets {path}: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(one, str) and one for one in found.values()):
        raise AccessFileError(f"{path}: [secrets] must have a text for each user")
    return found


class SigningSecrets(Mapping[str, str]):
    """Signing secrets by user, read anew within a second when the file has changed."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """A file that is there must be good. Raises AccessFileError."""
        self._path = path
        self._clock = clock
        self._looked = clock()
        self._mark = self._stat()
        self._secrets = read_secrets(path)

    def __getitem__(self, user: str) -> str:
        self._look()
        return self._secrets[user]

    def __iter__(self) -> Iterator[str]:
        return iter(self._secrets)

    def __len__(self) -> int:
        return len(self._secrets)

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        mark = self._stat()
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._secrets = read_secrets(self._path)
        except AccessFileError as error:
            log.failure("the signing secrets cannot be used: the last good ones stay in force", error)

    def _stat(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._path)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size
