"""The file ``checkpoint``: three times up to which everything is on disk (RocketMQ: ``StoreCheckpoint``).

Ours mean what they say: each is the store time of the newest record that was *synced* to the log, to every consume
queue, to the index (trap T10). RocketMQ reads them as its own.
"""

import logging
from dataclasses import replace
from pathlib import Path
from threading import Lock

from tandemmq.common.files.replacing import write_atomically
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.format.checkpoint import Checkpoint, CorruptCheckpoint
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.replica.confirmed import Confirmed

log = logging.getLogger(__name__)

# Recovery begins so much before the oldest of the three, as RocketMQ does.
MARGIN_MS = 3_000


class CheckpointFile:
    """The checkpoint in memory and on disk."""

    def __init__(self, root: Path, disk: Disk, confirmed: Confirmed | None = None) -> None:
        """Read the checkpoint; a missing or unreadable one counts as "nothing is known", and recovery reads all.

        ``confirmed`` is written with each new one; without it what the file says of that stays.
        """
        self._confirmed = confirmed
        self._writing = Lock()
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
        self._unread = bool(self.problem) or self.value.is_changed
        if self.value.is_changed:
            log.warning("%s is damaged, or another broker's: what it says is confirmed is not believed", self.path)

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
        """Store new times atomically, and what is confirmed by now; the bytes that others keep in the file stay.

        In any thread.
        """
        with self._writing:
            confirm = self.value.confirm if self._confirmed is None else self._confirmed.mark
            self.value = replace(self.value, physic=physic, logics=logics, index=index, confirm=confirm).sealed()
            write_atomically(self._disk, self.path, self.value.encode())

    def write_mark(self) -> None:
        """Store what is confirmed by now; the times stay."""
        self.write(self.value.physic, self.value.logics, self.value.index)

    def resume_confirmed(self, role: BrokerRole, end: int) -> None:
        """Let `Confirmed` go on where the file has left it, for a log that ends at ``end``.

        A first mark is written at once: without one the next start would take what comes from now on for confirmed.
        """
        assert self._confirmed is not None
        mark = None if self._unread else max(self.value.confirm, 0) if self.value.is_sealed else 0
        self._confirmed.resume(role, mark, end)
        if self._confirmed.mark and not mark:
            self.write_mark()


def _plausible(value: Checkpoint) -> Checkpoint:
    """Raises CorruptCheckpoint: no store has such times."""
    if min(value.physic, value.logics, value.index) < 0:
        raise CorruptCheckpoint("a time before 1970")
    return value
