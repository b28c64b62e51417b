"""Looking at a store directory without opening it: nothing is locked, changed or repaired.

File sizes are taken from the directory itself, so no settings are needed. On a running store the picture is that of
one moment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tandemmq.common.files.boot import boot_id
from tandemmq.common.files.record_lock import is_locked
from tandemmq.store.format.checkpoint import Checkpoint, CorruptCheckpoint
from tandemmq.store.format.index_layout import HEADER_SIZE, IndexHeader
from tandemmq.store.format.record import Record
from tandemmq.store.format.unit import SCHEDULE_TOPIC, TAGS_CODE_AT, UNIT_SIZE, bytes_of_records
from tandemmq.store.format.walker import UnitRun, Walker
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import is_zero
from tandemmq.store.log.edges.read_only import ReadOnlyDisk, ReadOnlyFiles
from tandemmq.store.log.errors import UnusableDirectory
from tandemmq.store.log.marks.abort_file import last_exit
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.marks.end_file import NAME as END
from tandemmq.store.log.marks.end_file import reached_end
from tandemmq.store.log.marks.manifest import NAME as MANIFEST
from tandemmq.store.log.marks.manifest import Manifest, read_manifest
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.reading.record_reader import RecordReader
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.recovery.missing_files import believed, find_missing
from tandemmq.store.log.segments.scan import LogScan


@dataclass(slots=True)
class QueueInspection:
    """One queue: what the log says of it, against what its consume queue holds. Offsets are queue offsets."""

    topic: str
    queue_id: int
    messages: int = 0
    log_bytes: int = 0
    first_offset: int = -1
    next_offset: int = 0
    missing_units: int = 0
    wrong_units: int = 0


@dataclass(slots=True)
class IndexInspection:
    """One index file: entries and the times (ms) it spans."""

    name: str
    entries: int
    begin_timestamp: int
    end_timestamp: int


@dataclass(slots=True)
class StoreInspection:
    """What lies in a store directory. Offsets are log offsets in bytes, times ms since the epoch."""

    root: Path
    in_use: bool = False
    clean_exit: bool = True
    file_size: int = 0
    files: list[tuple[str, int]] = field(default_factory=list)
    min_offset: int = 0
    max_offset: int = 0
    records: int = 0
    first_record: Record | None = None
    last_record: Record | None = None
    queues: dict[tuple[str, int], QueueInspection] = field(default_factory=dict)
    index: list[IndexInspection] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    manifest: Manifest | None = None
    damage: list[DamagedRange] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def inspect_store(
    root: Path, walker: Walker, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> StoreInspection:
    """Read a whole store directory and compare queues with the log; ``on_progress(done, total)`` counts log bytes.

    Raises:
        UnusableDirectory: it is no store directory.
    """
    if not (root / "commitlog").is_dir():
        raise UnusableDirectory(f"{root} is no store directory: it has no commitlog/.", remedy=_stores_below(root))
    found = StoreInspection(root, in_use=is_locked(root), clean_exit=not (root / "abort").exists())
    sizes = [path.stat().st_size for path in sorted((root / "commitlog").iterdir()) if path.name.isdigit()]
    found.file_size = max(sizes, default=0)
    if found.file_size:
        files = ReadOnlyFiles(root / "commitlog", found.file_size)
        found.files = [(file.path.name, file.path.stat().st_blocks * 512) for file in files]
        _read_log(found, files, walker, _queues(root), on_progress)
    _read_small_files(found)
    return found


def _stores_below(root: Path) -> str:
    """Which directory to name instead."""
    below = [str(log.parent) for pattern in ("*/commitlog", "*/*/commitlog") for log in sorted(root.glob(pattern))]
    return f"There are stores in it: {', '.join(below)}." if below else "Name the storePathRootDir."


def _queues(root: Path) -> ConsumeQueueStore:
    sizes = [path.stat().st_size for path in root.glob("consumequeue/*/*/*") if path.name.isdigit()]
    config = StoreConfig(root, mapped_file_size_consume_queue=max(sizes, default=UNIT_SIZE))
    queues = ConsumeQueueStore(config, ReadOnlyDisk())
    if sizes:
        queues.load(read_only=True)
    return queues


def _read_log(
    found: StoreInspection,
    files: ReadOnlyFiles,
    walker: Walker,
    queues: ConsumeQueueStore,
    on_progress: Callable[[int, int], None],
) -> None:
    found.min_offset = position = next(iter(files)).start
    total = (files.last.end if files.last else 0) - found.min_offset
    nothing_known = DamageList(found.root / "none", ReadOnlyDisk())
    config = StoreConfig(found.root)
    scan = LogScan(files, walker, nothing_known, check_crc=True, delay_levels=config.message_delay_levels)
    records, last = RecordReader(files, nothing_known), -1
    for step in scan.steps(found.min_offset):
        if step.walk is not None and step.walk.count:
            found.records += step.walk.count
            last = step.walk.last_offset
            if found.first_record is None:
                found.first_record = records.decoded(step.walk.rows()[0].position, verify=True)
            for run in step.walk.runs():
                _count(found, run, queues.get(run.topic, run.queue_id))
        if step.damage is not None:
            found.damage.append(step.damage)
        position = step.torn_at if step.torn_at >= 0 else step.position
        on_progress(position - found.min_offset, total)
    found.max_offset = position
    found.last_record = records.decoded(last, verify=True) if last >= 0 else None
    torn = files.find(position)
    if torn is not None and (behind := torn.map[position - torn.start :].rstrip(b"\0")):
        found.damage.append(DamagedRange(position, position + len(behind), "torn", "nothing valid follows"))


def _count(found: StoreInspection, run: UnitRun, queue: ConsumeQueue | None) -> None:
    seen = found.queues.setdefault((run.topic, run.queue_id), QueueInspection(run.topic, run.queue_id))
    seen.first_offset = run.first_queue_offset if seen.first_offset < 0 else seen.first_offset
    seen.next_offset = max(seen.next_offset, run.first_queue_offset + run.count)
    seen.messages += run.count
    units = run.units
    seen.log_bytes += bytes_of_records(units)
    if queue is not None and queue.read_bytes(run.first_queue_offset, run.count) == units:
        return
    # Of delayed messages the tags code is the delivery time, which follows from settings that are not known here.
    compared = TAGS_CODE_AT if run.topic == SCHEDULE_TOPIC else UNIT_SIZE
    for at in range(0, len(units), UNIT_SIZE):
        have = queue.read_bytes(run.first_queue_offset + at // UNIT_SIZE, 1) if queue is not None else b""
        if have[:compared] != units[at : at + compared]:
            if not is_zero(have):
                seen.wrong_units += 1
            else:
                seen.missing_units += 1


def _read_small_files(found: StoreInspection) -> None:
    for path in sorted((found.root / "index").glob("[0-9]*")):
        with path.open("rb") as file:
            header = IndexHeader.unpack(file.read(HEADER_SIZE))
        entries = IndexInspection(path.name, header.index_count - 1, header.begin_timestamp, header.end_timestamp)
        found.index.append(entries)
    try:
        found.checkpoint = Checkpoint.decode((found.root / "checkpoint").read_bytes())
    except FileNotFoundError:
        found.problems.append("checkpoint: there is none, so a start reads the whole log")
    except CorruptCheckpoint as error:
        found.problems.append(f"checkpoint: {error}")
    found.manifest = read_manifest(found.root)
    _look_for_missing_files(found)
    missing = sum(queue.missing_units for queue in found.queues.values())
    wrong = sum(queue.wrong_units for queue in found.queues.values())
    if missing or wrong:
        found.problems.append(
            f"consume queues: {missing:,} units are missing, {wrong:,} are wrong (a start repairs them)"
        )


def _look_for_missing_files(found: StoreInspection) -> None:
    """What a start would say of files in front of the first and after the last; those between, the walk has met."""
    manifest = believed(found.manifest, CheckpointFile(found.root, ReadOnlyDisk()))
    reached = 0 if found.in_use else reached_end(found.root, last_exit(found.root), boot_id())
    if manifest is found.manifest and reached > found.max_offset:
        found.problems.append(
            f"commitlog: it ends at offset {found.max_offset:,}, but {END} says that it had reached {reached:,}: a "
            "file is missing or older than the others (a start is refused, unless this is a slave's)"
        )
    starts = [int(name) for name, _ in found.files]
    end = starts[-1] + found.file_size if starts else 0
    found.damage[:0] = [one for one in find_missing(starts, found.file_size, [], manifest) if one.end == starts[0]]
    if manifest is not None and manifest.position > max(end, manifest.begin):
        found.problems.append(
            f"commitlog: it ends at offset {end:,}, but {MANIFEST} says that it had reached {manifest.position:,}: log "
            "files are missing (a start is refused)"
        )
