"""The static files, read once and held in memory: a hundred kilobytes."""

import gzip
import mimetypes
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).with_name("static")

_PLACE = b"@VERSION@"
"""In index.html: where the version of all files goes. Their addresses have it, so browsers may keep them for ever."""

_KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


class File(NamedTuple):
    """One file as it is sent."""

    body: bytes
    packed: bytes
    """gzip."""
    kind: str
    tag: str
    """As an ETag."""


class Files:
    """All files by their path below static/."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        found = {
            str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
        }
        whole = sha256()
        for name, body in found.items():
            whole.update(name.encode() + b"\0" + sha256(body).digest())
        self.version = whole.hexdigest()[:16]
        """Changes with any of them."""
        self._files = {name: _file(name, body, self.version) for name, body in found.items()}
        self.index = self._files["index.html"]

    def get(self, version: str, name: str) -> File | None:
        """A file of a version; None if there is none such."""
        return self._files.get(name) if version == self.version else None


def _file(name: str, body: bytes, version: str) -> File:
    body = body.replace(_PLACE, version.encode())
    kind = _KINDS.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return File(body, gzip.compress(body, 9, mtime=0), kind, f'"{sha256(body).hexdigest()[:32]}"')
