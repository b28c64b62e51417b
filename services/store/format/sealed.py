"""Small JSON documents with a checksum: a flipped bit makes them unreadable, never something else."""

import json
import zlib
from typing import Any

_SEAL = "crc32"
_LIMIT = 1 << 63


def seal(document: dict[str, Any], indent: int | None = None) -> bytes:
    """The text of ``document``, with the checksum of all the rest as its last entry."""
    sealed = document | {_SEAL: _checksum(document)}
    return json.dumps(sealed, indent=indent, separators=None if indent else (",", ":")).encode()


def unseal(data: bytes) -> dict[str, Any]:
    """The document in ``data``.

    Raises:
        ValueError: it is no such document, or its checksum does not fit.
    """
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    if document.pop(_SEAL, None) != _checksum(document):
        raise ValueError("the checksum does not fit")
    return document


def natural(value: Any) -> int:
    """A number that a store counts with: of a log, a queue, or milliseconds. Raises ValueError."""
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise ValueError(f"{value!r} is no number of 0 or more")
    return value


def queue_bounds(queues: dict[str, dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and next queue offset by topic and queue id, as documents say them. Raises ValueError, AttributeError."""
    bounds = {}
    for topic, of_topic in queues.items():
        for queue_id, (first, end) in of_topic.items():  # ten thousand: each step counts
            number = int(queue_id)
            if not (type(first) is type(end) is int and 0 <= first <= end < _LIMIT and 0 <= number < _LIMIT):
                raise ValueError(f"queue {queue_id} of {topic} cannot have the offsets {first!r} to {end!r}")
            bounds[topic, number] = first, end
    return bounds


def _checksum(document: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(document, separators=(",", ":")).encode())
