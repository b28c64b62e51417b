"""The pieces that recovery and rebuilds work on, and the report they write."""

import logging
from dataclasses import dataclass, field
from typing import Protocol

from tandemmq.common.timers import Timers
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.marks.manifest import Manifest
from tandemmq.store.log.observer import Observer
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.queues.queue_offsets import NextOffsets
from tandemmq.store.log.reading.record_reader import RecordReader
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.recovery.file_problems import FileProblem
from tandemmq.store.log.replica.confirmed import Confirmed
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.log.replica.replica_group import GroupFile
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue
from tandemmq.store.log.segments.walkers import Walkers

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What recovery did. Offsets are log offsets, ``seconds`` the time before the store could serve."""

    clean_exit: bool = True
    manifest_current: bool = False
    began_at: int = 0
    ended_at: int = 0
    records: int = 0
    seconds: float = 0.0
    last_store_timestamp: int = 0
    cut_bytes: int = 0
    damage: list[DamagedRange] = field(default_factory=list)
    """What this start has found, in log order."""
    queues_to_rebuild: int = 0
    index_complete: bool = True
    notes: list[str] = field(default_factory=list)


class RecordRun(Protocol):
    """The records of one queue in one log file; see ``compiled/record_run.pyi``."""

    def read(
        self, units: bytes, log: ReadBuffer, start: int, stop: int, topic: bytes, queue_id: int, first: int, room: int
    ) -> tuple[int, bytes]:
        """How many units name records within ``room`` bytes, and these records; -1 where one does not fit its unit."""
        ...

    def read_tagged(
        self,
        units: bytes,
        log: ReadBuffer,
        start: int,
        stop: int,
        topic: bytes,
        queue_id: int,
        first: int,
        wanted: dict[int, bytes],
        most: int,
        room: int,
        anyway: bool,
    ) -> tuple[int, int, bool, bytes]:
        """The records with wanted tags: units passed (-1: not so simple), records, whether there is enough, bytes."""
        ...


@dataclass(slots=True)
class StoreParts:
    """The pieces of a store that recovery works on."""

    config: StoreConfig
    disk: Disk
    clock: Clock
    timers: Timers
    observer: Observer
    files: MappedFileQueue
    queues: ConsumeQueueStore
    index: Index | None
    checkpoint: CheckpointFile
    manifest: Manifest | None
    damage: DamageList
    offsets: NextOffsets
    walkers: Walkers
    mastership: Mastership
    group: GroupFile
    confirmed: Confirmed
    boot: bytes
    """The machine's `boot_id`."""
    problems: list[FileProblem] = field(default_factory=list)
    """Files beside the log that this start could not use."""
    records: RecordReader = field(init=False)
    record_run: RecordRun | None = None
    """Of the compiled core, where that is used."""

    def __post_init__(self) -> None:
        """Read records of these files, around this damage."""
        self.records = RecordReader(self.files, self.damage)

    def note_damage(self, damage: DamagedRange) -> None:
        """Remember a damaged stretch of the log, and tell of it, unless it is known.

        Raises:
            OSError: the list cannot be written.
        """
        if self.damage.add(damage):
            log.error("Damage in the commit log: %s", damage)
            self.observer.damaged(damage.kind, damage.end - damage.begin)
            self.damage.save()
