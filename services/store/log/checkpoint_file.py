"""The file ``checkpoint``: three times up to which everything is on disk (RocketMQ: ``StoreCheckpoint``).

Ours mean what they say: each is the store time of the newest record that was *synced* to the log, to every consume
queue, to the index (trap T10). RocketMQ reads them as its own.
"""

from dataclasses import replace
from pathlib import Path

from tandemmq.store.format.checkpoint import Checkpoint, CorruptCheckpoint
from tandemmq.store.log.disk import Disk, write_atomically

# Recovery begins so much before the oldest of the three, as RocketMQ does.
MARGIN_MS = 3_000


class CheckpointFile:
    """The checkpoint in memory and on disk."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the checkpoint; a missing or unreadable one counts as "nothing is known".

        Which makes recovery read all.
        """
        self.path = root / "checkpoint"
        self._disk = disk
        self.problem = ""
        self.value = Checkpoint()
        try:
            self.value = _plausible(Checkpoint.decode(self.path.read_bytes()))
        except FileNotFoundError:
            self.problem = f"{self.path} is missing"
        except CorruptCheckpoint as error:
            self.problem = f"{self.path} is unreadable ({error})"

    def trusted_until(self, newest: int) -> int:
        """Store time below which every record is in the log, its queue and the index for certain; 0 = nothing is.

        ``newest`` is the store time of the log's newest record: a checkpoint beyond it belongs to another log.
        """
        value = self.value
        oldest = min(value.physic, value.logics)
        if oldest > newest:
            self.problem = f"{self.path} is newer than the log"
            return 0
        return max(0, oldest - MARGIN_MS)

    def write(self, physic: int, logics: int, index: int) -> None:
        """Store new times atomically; the bytes that others keep in the file stay."""
        self.value = replace(self.value, physic=physic, logics=logics, index=index)
        write_atomically(self._disk, self.path, self.value.encode())


def _plausible(value: Checkpoint) -> Checkpoint:
    """Raises CorruptCheckpoint: no store has such times."""
    if min(value.physic, value.logics, value.index) < 0:
        raise CorruptCheckpoint("a time before 1970")
    return value
