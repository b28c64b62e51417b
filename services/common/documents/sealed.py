"""Small JSON documents with a checksum: a flipped bit makes them unreadable, never something else."""

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

_SEAL = "crc32"


def seal(document: dict[str, Any], indent: int | None = None) -> bytes:
    """The text of ``document``, with the checksum of all the rest as its last entry."""
    sealed = document | {_SEAL: _checksum(document)}
    return json.dumps(sealed, indent=indent, separators=None if indent else (",", ":")).encode()


def seal_with(document: dict[str, Any], key: str, entries: Mapping[str, str]) -> bytes:
    """As `seal` of a document whose object `key` has these entries, each as `sealed_text` makes it."""
    table = ",".join(f"{sealed_text(name)}:{text}" for name, text in entries.items())
    members = {name: f"{{{table}}}" if name == key else sealed_text(value) for name, value in document.items()}
    text = ",".join(f"{sealed_text(name)}:{member}" for name, member in members.items())
    return f'{{{text},"{_SEAL}":{zlib.crc32(f"{{{text}}}".encode())}}}'.encode()


def sealed_text(value: Any) -> str:
    """A part of a document, for `seal_with`."""
    return json.dumps(value, separators=(",", ":"))


def unseal(data: bytes, is_older: Callable[[dict[str, Any]], bool] | None = None) -> dict[str, Any]:
    """The document in ``data``.

    ``is_older``: whether one without a checksum is of the time before there was one; it must not be true of a document
    whose checksum has only lost its name.

    Raises:
        ValueError: it is no such document, or its checksum does not fit.
    """
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    if is_older is not None and _SEAL not in document and is_older(document):
        return document
    if document.pop(_SEAL, None) != _checksum(document):
        raise ValueError("the checksum does not fit")
    return document


def _checksum(document: dict[str, Any]) -> int:
    return zlib.crc32(sealed_text(document).encode())
