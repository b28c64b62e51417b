"""The file ``tandem.manifest``: what the derived files held at the last checkpoint (ours; RocketMQ ignores it).

RocketMQ's checkpoint is three times; it cannot say that a queue is missing, or where exactly the synced part of the
log ends. The manifest can: with it recovery starts at one exact log offset, and a lost or cut consume queue is
noticed. It is only believed while the checkpoint beside it is the one it was written with, so that a directory that
a Java broker used in between is looked at afresh. JSON::

    {"version": 1, "checkpoint": [physic, logics, index], "previous": [physic, logics, index], "begin": 0,
     "position": 123456, "damaged": 0, "rebuilding": false, "queues": {"TopicTest": {"0": [10, 40]}},
     "index": [["20261121040000000", 81]], "crc32": 42}

``checkpoint``: the times that are written next; ``previous``: those that stood before, so that a crash between the
two files costs nothing. ``begin``: log offset from which on no file has expired; manifests that are older than this
entry lack it. ``damaged``: number of ranges in ``tandem.damage``, so that the loss of that file is noticed; older ones
lack it too. ``position``: every record below it is synced to log, queues and index. ``queues``: first and next
offset. ``index``: name and next entry number of each file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.store.format.checkpoint import Checkpoint
from tandemmq.store.format.naturals import natural, queue_bounds
from tandemmq.store.format.staged import StagedManifest

NAME = "tandem.manifest"
VERSION = 1

_UNKNOWN_INDEX = [("?", 0)]
"""No index has such a file: the next start looks at the entries themselves for where to go on."""

_Queues = Mapping[tuple[str, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """State of the derived files at a checkpoint."""

    checkpoint: tuple[int, int, int]
    position: int
    queues: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    index: list[tuple[str, int]] = field(default_factory=list)
    rebuilding: bool = False
    """Queues are being repaired: their bounds are right, but there may be holes between them."""
    previous: tuple[int, int, int] = (0, 0, 0)
    begin: int = -1
    """Log offset from which on no file has expired; -1 where that is not known."""
    damaged: int = 0
    """Lasting damaged ranges of the log that were known."""

    def belongs_to(self, checkpoint: tuple[int, int, int]) -> bool:
        """Whether nobody else has written a checkpoint since this manifest."""
        return checkpoint in (self.checkpoint, self.previous)

    def for_either(self, queues: _Queues, *, index: bool) -> "Manifest":
        """One that is true of the present files and of rebuilt ones, whichever a crash leaves in place.

        ``queues``: bounds of the rebuilt ones; ``index``: whether the index is rebuilt too. Both sides must be complete
        and synced up to ``position``. A queue that the rebuilt files begin elsewhere is left out: its ends are found by
        looking. The end of one that the rebuilt files have too short is kept, since its numbers were given away.
        """
        kept = {
            key: bounds
            for key, bounds in self.queues.items()
            if key not in queues or queues[key][0] == bounds[0] or queues[key][1] < bounds[1]
        }
        return replace(self, queues=kept, index=list(_UNKNOWN_INDEX) if index else self.index)

    @classmethod
    def of_rebuilt(cls, staged: StagedManifest, checkpoint: Checkpoint, before: "Manifest | None") -> "Manifest | None":
        """The one to write once rebuilt files were put in place while no store had the directory.

        Before that the log must have been synced up to ``staged.end``. ``checkpoint``: what the file of that name says;
        ``before``: the manifest that was there if it belonged to that checkpoint. None where nothing is certain, and
        the next start has to look for itself: some topics only were rebuilt, and there was no manifest of the others.
        """
        if not staged.all_topics:
            if before is None or before.position > staged.end:
                return None
            return before.for_either(staged.queues, index=staged.index is not None)
        times = (checkpoint.physic, checkpoint.logics, checkpoint.index)
        queues = dict(staged.queues)
        for key, (_, end) in before.queues.items() if before is not None else ():
            first, rebuilt_end = queues.get(
                key, (end, end)
            )  # without messages that are left, it counts on all the same
            queues[key] = first, max(rebuilt_end, end)
        index = list(_UNKNOWN_INDEX) if staged.index is None else staged.index
        newest = max(staged.max_store_timestamp, *times)  # the start at `end` walks nothing that could tell it
        begin = staged.begin if before is None or before.begin < 0 else before.begin
        damaged = 0 if before is None else before.damaged
        return cls((newest, newest, newest), staged.end, queues, index, previous=times, begin=begin, damaged=damaged)

    def encode(self) -> bytes:
        """Give the JSON text."""
        queues: dict[str, dict[str, list[int]]] = {}
        for (topic, queue_id), bounds in sorted(self.queues.items()):
            queues.setdefault(topic, {})[str(queue_id)] = list(bounds)
        document = {
            "version": VERSION,
            "checkpoint": list(self.checkpoint),
            "previous": list(self.previous),
            "begin": self.begin,
            "position": self.position,
            "damaged": self.damaged,
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
                natural(document["position"]),
                queue_bounds(document["queues"]),
                [(str(name), natural(count)) for name, count in document["index"]],
                bool(document["rebuilding"]),
                _times(document["previous"]),
                natural(document.get("begin", -1) + 1) - 1,
                natural(document.get("damaged", 0)),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no manifest: {error!r}") from error


def _times(entry: list[int]) -> tuple[int, int, int]:
    physic, logics, index = entry
    return natural(physic), natural(logics), natural(index)
