"""The manifest of rebuilt files: what a rebuild has put beside a store, to be taken over by it.

A staging directory holds ``consumequeue/<topic>/<queue id>/<20 digits>``, ``index/<17 digits>`` and this document,
``tandem.rebuilt``, which is written last: where it stands, everything it names is whole, checked and on disk. JSON::

    {"version": 1, "begin": 0, "end": 123456, "messages": 500, "consume_queue_file_size": 6000000,
     "index_slots": 5000000, "index_entries": 20000000, "all_topics": true, "queues": {"TopicTest": {"0": [10, 40]}},
     "index": [["20261121040000000", 81]], "max_store_timestamp": 1763700000000, "crc32": 42,
     "damage": [{"begin": 7, "end": 9, "kind": "rot", "reason": "…"}]}

``begin``, ``end``: every record in [begin, end) of the log is in the files; ``end`` is where a record ends. ``queues``:
first and next queue offset; ``index``: name and next entry number of each file, null where it was not rebuilt.
``max_store_timestamp``: the newest store time of all these records, in ms; 0 if it is not known.
"""

from dataclasses import dataclass, field
from typing import Any

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.naturals import natural, queue_bounds

FILE_NAME = "tandem.rebuilt"
VERSION = 1
_NUMBERS = (
    "begin", "end", "messages", "consume_queue_file_size", "index_slots", "index_entries", "max_store_timestamp"
)  # fmt: skip


class UnreadableStagedManifest(FormatError):
    """No manifest of rebuilt files, or one of another version, or one that was changed."""


@dataclass(frozen=True, slots=True)
class StagedManifest:
    """What lies in a staging directory. Offsets ``begin`` and ``end`` are log offsets, sizes bytes."""

    begin: int
    end: int
    messages: int
    consume_queue_file_size: int
    index_slots: int
    index_entries: int
    all_topics: bool = True
    queues: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    index: list[tuple[str, int]] | None = None
    damage: list[dict[str, Any]] = field(default_factory=list)
    max_store_timestamp: int = 0

    def encode(self) -> bytes:
        """The JSON text."""
        queues: dict[str, dict[str, list[int]]] = {}
        for (topic, queue_id), bounds in sorted(self.queues.items()):
            queues.setdefault(topic, {})[str(queue_id)] = list(bounds)
        document = {
            "version": VERSION,
            "begin": self.begin,
            "end": self.end,
            "messages": self.messages,
            "consume_queue_file_size": self.consume_queue_file_size,
            "index_slots": self.index_slots,
            "index_entries": self.index_entries,
            "all_topics": self.all_topics,
            "queues": queues,
            "index": None if self.index is None else [list(entry) for entry in self.index],
            "damage": self.damage,
            "max_store_timestamp": self.max_store_timestamp,
        }
        return seal(document)

    @classmethod
    def decode(cls, data: bytes) -> "StagedManifest":
        """Read the JSON text. Raises UnreadableStagedManifest."""
        try:
            document = unseal(data)
            if document.pop("version") != VERSION:
                raise ValueError("it has another version")
            queues = queue_bounds(document.pop("queues"))
            index = document.pop("index")
            entries = None if index is None else [(str(name), natural(count)) for name, count in index]
            manifest = cls(**document, queues=queues, index=entries)
            for name in _NUMBERS:
                natural(getattr(manifest, name))
            if manifest.begin > manifest.end:
                raise ValueError("it ends before it begins")
            return manifest
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableStagedManifest(f"{FILE_NAME} cannot be read: {error}") from error
