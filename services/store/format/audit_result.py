"""The file ``tandem.audit``: how many faults the last audit of a directory has found (ours; RocketMQ ignores it).

``tandem data audit`` writes it beside the store's other files, and the store tells Prometheus what it says. JSON::

    {"version": 1, "made": 1764000000000, "begin": 0, "end": 3646758, "faults": {"rot": 2}, "notes": {}, "crc32": 42}

``made``: when the audit began, ms since 1970. ``begin``, ``end``: log offsets that it compared. ``faults``, ``notes``:
numbers by kind of what readers run into, and of what nobody reads; without those of 0.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.store.format.naturals import natural

NAME = "tandem.audit"
VERSION = 1
_MOST_KINDS = 100
_LONGEST_KIND = 50


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit has found, in numbers."""

    made: int
    begin: int
    end: int
    faults: Mapping[str, int]
    notes: Mapping[str, int]

    def encode(self) -> bytes:
        """The file's content."""
        return seal({"version": VERSION, **asdict(self)})

    @classmethod
    def decode(cls, data: bytes) -> "AuditResult":
        """The inverse of `encode`. Raises ValueError: it is none, or says what cannot be."""
        document = unseal(data)
        try:
            if document["version"] != VERSION:
                raise ValueError(f"version {document['version']!r} is not known")
            made, begin, end = (natural(document[name]) for name in ("made", "begin", "end"))
            if begin > end:
                raise ValueError("the log ends before it begins")
            return cls(made, begin, end, _numbers(document["faults"]), _numbers(document["notes"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is no result of an audit: {error!r}") from None


def _numbers(by_kind: dict[str, Any]) -> dict[str, int]:
    if len(by_kind) > _MOST_KINDS or any(not 0 < len(kind) <= _LONGEST_KIND for kind in by_kind):
        raise ValueError("there are no such kinds of findings")
    return {kind: natural(number) for kind, number in by_kind.items()}
