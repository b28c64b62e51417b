"""The file ``tandem.manifest``: what the derived files held at the last checkpoint (ours; RocketMQ ignores it).

RocketMQ's checkpoint is three times; it cannot say that a queue is missing, or where exactly the synced part of the
log ends. The manifest can: with it recovery starts at one exact log offset, and a lost or cut consume queue is
noticed. It is only believed while the checkpoint beside it is the one it was written with, so that a directory that
a Java broker used in between is looked at afresh. JSON::

    {"version": 1, "checkpoint": [physic, logics, index], "previous": [physic, logics, index], "position": 123456,
     "rebuilding": false, "queues": {"TopicTest": {"0": [10, 40]}}, "index": [["20261121040000000", 81]], "crc32": 42}

``checkpoint``: the times that are written next; ``previous``: those that stood before, so that a crash between the
two files costs nothing. ``position``: every record below it is synced to log, queues and index. ``queues``: first
and next offset. ``index``: name and next entry number of each file.
"""

from dataclasses import dataclass, field
from pathlib import Path

from tandemmq.store.log.disk import Disk, write_atomically
from tandemmq.store.log.queue_offsets import QueueKey
from tandemmq.store.log.sealed import seal, unseal

NAME = "tandem.manifest"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """State of the derived files at a checkpoint."""

    checkpoint: tuple[int, int, int]
    position: int
    queues: dict[QueueKey, tuple[int, int]] = field(default_factory=dict)
    index: list[tuple[str, int]] = field(default_factory=list)
    rebuilding: bool = False
    """Queues are being repaired: their bounds are right, but there may be holes between them."""
    previous: tuple[int, int, int] = (0, 0, 0)

    def belongs_to(self, checkpoint: tuple[int, int, int]) -> bool:
        """Whether nobody else has written a checkpoint since this manifest."""
        return checkpoint in (self.checkpoint, self.previous)

    def encode(self) -> bytes:
        """Give the JSON text."""
        queues: dict[str, dict[str, list[int]]] = {}
        for (topic, queue_id), bounds in sorted(self.queues.items()):
            queues.setdefault(topic, {})[str(queue_id)] = list(bounds)
        document = {
            "version": VERSION,
            "checkpoint": list(self.checkpoint),
            "previous": list(self.previous),
            "position": self.position,
            "rebuilding": self.rebuilding,
            "queues": queues,
            "index": [list(entry) for entry in self.index],
        }
        return seal(document)

    @classmethod
    def decode(cls, data: bytes) -> "Manifest":
        """Read the JSON text.

        Raises:
            ValueError: it is no manifest of this version.
        """
        try:
            document = unseal(data)
            if document["version"] != VERSION:
                raise ValueError(f"version {document['version']}")
            return cls(
                _times(document["checkpoint"]),
                document["position"],
                {
                    (topic, int(queue_id)): (first, end)
                    for topic, queues in document["queues"].items()
                    for queue_id, (first, end) in queues.items()
                },
                [(name, count) for name, count in document["index"]],
                document["rebuilding"],
                _times(document["previous"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no manifest: {error!r}") from error


def _times(entry: list[int]) -> tuple[int, int, int]:
    physic, logics, index = entry
    return physic, logics, index


def read_manifest(root: Path) -> Manifest | None:
    """Read the manifest of a store directory.

    None where it is missing or unreadable, which costs a look at the whole log.
    """
    try:
        return Manifest.decode((root / NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def write_manifest(root: Path, manifest: Manifest, disk: Disk) -> None:
    """Replace the manifest atomically."""
    write_atomically(disk, root / NAME, manifest.encode())
