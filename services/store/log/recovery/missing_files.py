"""Log files that should be there and are not: a volume that is not mounted, files that somebody has removed.

A log without its end would be gone on with where it seems to stop, and numbers that were acknowledged would be given
again. So before anything is made or changed, what lies beside the log is asked how far it had come: after a kill
``tandem.end``, the manifest, else consume queues, index and checkpoint. A log that is shorter is refused. Files missing
in front or in the middle are damage of kind ``missing``, read around like any other: the numbers after them are known.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tandemmq.store.format.index_layout import HEADER_SIZE, IndexHeader
from tandemmq.store.format.record_fields import PREFIX_SIZE
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import Disk, is_zero
from tandemmq.store.log.edges.read_only import ReadOnlyDisk, ReadOnlyFiles
from tandemmq.store.log.errors import LogFilesMissing
from tandemmq.store.log.marks.abort_file import Exit
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.marks.end_file import NAME as END
from tandemmq.store.log.marks.manifest import NAME as MANIFEST
from tandemmq.store.log.marks.manifest import Manifest
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.segments.mapped_file import file_name
from tandemmq.store.log.segments.mapped_file_queue import list_files
from tandemmq.store.log.segments.scan import LogScan
from tandemmq.store.log.segments.walkers import Walkers

log = logging.getLogger(__name__)

MISSING = "missing"
QUEUES = "consumequeue/"
INDEX = "index/"
CHECKPOINT = "checkpoint"
_NAMED = 3
_LAST_BYTES = 3
_ANY_END = 1 << 62
_GREATEST = 1 << 53
"""A log offset beyond this is none: eight petabytes. A unit or an entry that says so is damaged itself."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Something beside the log that says how far it had come.

    ``end``: every byte below this log offset had been written; 0 where only that there was a log is known.
    """

    end: int
    what: str
    begin: int = 0
    """Where the log began, as far as it says."""


def believed(manifest: Manifest | None, checkpoint: CheckpointFile) -> Manifest | None:
    """The manifest, if nobody else has written a checkpoint since. One that is lost or unreadable says nothing."""
    value = checkpoint.value
    if manifest is None or checkpoint.problem or manifest.belongs_to((value.physic, value.logics, value.index)):
        return manifest
    return None


def check_end(
    config: StoreConfig,
    manifest: Manifest | None,
    checkpoint: CheckpointFile,
    disk: Disk,
    last_exit: Exit,
    *,
    slave: bool,
    reached: int = 0,
) -> str:
    """See whether the log reaches as far as it should, before anything is made or changed.

    Gives what must be told where nobody can be sure: RocketMQ removes files when it cuts a log at damage, and leaves
    what pointed into them (trap T1). ``reached``: see `reached_end`.

    Raises:
        LogFilesMissing: the end of the log is gone.
    """
    end, known = log_end(config), believed(manifest, checkpoint)
    short = shortened(config, known, reached, ours=known is manifest)
    if short is not None:
        raise missing_end(config, *short)
    if end and last_exit is Exit.CRASH and (known is None or known.position <= end) and not is_last_full(config, end):
        return ""  # there was none after it, and nobody has to be asked
    found = list(witnesses(config, known, checkpoint, disk, whole=not end or last_exit is not Exit.CLEAN))
    if found and (not end or (found[0].what == MANIFEST and found[0].end > end)):
        raise missing_end(config, end, found[0])
    further = [witness for witness in found if witness.end > end]
    # A master makes the next file before it closes one; a slave may just have had the last byte of one.
    if end and last_exit is Exit.CRASH and not slave:
        further.append(Witness(0, "the newest file, which is full,"))
    # Where that has room there was none after it: what says so is damaged, or a power cut took what it points at.
    if not further or not is_last_full(config, end):
        return ""
    error = missing_end(config, end, further[0])
    if last_exit is Exit.CRASH or known is not None:
        raise error
    doubt = f"RocketMQ has cut the log here, or files are missing: {error.message}"
    log.error(doubt)
    return doubt


def shortened(config: StoreConfig, known: Manifest | None, reached: int, *, ours: bool) -> tuple[int, Witness] | None:
    """Where a log ends that had come further without a power cut, and who says so; None where it is whole.

    What a manifest knows had been durable; what a killed store had ``reached`` is in the page cache as long as the
    machine runs. What lacks is the work of who replaced the newest file by an older copy of itself, or removed it.
    ``ours``: no other broker has written a checkpoint since, that may have cut the log.
    """
    end = log_end(config)
    if end < reached and ours:
        return end, Witness(reached, END)
    position = known.position if known is not None and known.position <= end else 0
    at, reached = _short_of(config, position, 0), reached if ours else 0
    if at is None and reached > position:
        at = _short_of(config, reached, position)
    if at is None:
        return None
    return at, Witness(reached, END) if reached > position else Witness(position, MANIFEST)


def _short_of(config: StoreConfig, reached: int, begin: int) -> int | None:
    """Where the log ends if zeros stand from there to ``reached``; a record begins at ``begin``.

    A record ends in a byte that is not zero, or in two that are (no properties). Where it does not, the file is read.
    """
    files = ReadOnlyFiles(config.commit_log_dir, config.mapped_file_size_commit_log)
    file = files.find(reached - 1) if reached else None
    if file is None or any(file.map[max(0, reached - file.start - _LAST_BYTES) : reached - file.start]):
        return None
    damage = DamageList(config.store_path_root_dir, ReadOnlyDisk())
    if damage.covering(reached - 1) is not None:
        return None
    at = _written_end(config, files, damage, max(file.start, begin))
    return at if file.start <= at < reached and is_zero(file.map[at - file.start : reached - file.start]) else None


def _written_end(config: StoreConfig, files: ReadOnlyFiles, damage: DamageList, begin: int) -> int:
    """Where the records from ``begin`` on end."""
    walker = Walkers(config.compiled_walker).for_bytes(config.mapped_file_size_commit_log)
    at = begin
    for step in LogScan(files, walker, damage, check_crc=False, delay_levels=()).steps(begin):
        at = step.torn_at if step.torn_at >= 0 else step.position
    return at


def is_last_full(config: StoreConfig, end: int) -> bool:
    """Whether the log file that ends at ``end`` is written to its end; it is walked. False without one.

    A file that is full has a successor, or is about to get one.
    """
    size = config.mapped_file_size_commit_log
    files = ReadOnlyFiles(config.commit_log_dir, size)
    last = files.last
    if last is None or is_zero(last.map[:PREFIX_SIZE]):
        return False
    walker = Walkers(config.compiled_walker).for_bytes(size)
    nothing_known = DamageList(config.store_path_root_dir / "none", ReadOnlyDisk())
    *_, step = LogScan(files, walker, nothing_known, check_crc=False, delay_levels=()).steps(end - size)
    return step.torn_at < 0 and step.position == end


def log_end(config: StoreConfig) -> int:
    """Offset after the newest log file; 0 without any. Raises as `list_files`."""
    size = config.mapped_file_size_commit_log
    starts = list_files(config.commit_log_dir, size, "mappedFileSizeCommitLog")
    return starts[-1] + size if starts else 0


def witnesses(
    config: StoreConfig, known: Manifest | None, checkpoint: CheckpointFile, disk: Disk, *, whole: bool = True
) -> Iterator[Witness]:
    """Whoever knows how far the log had come, the most certain first; nobody where it was never written to.

    ``known``: the manifest if it is `believed`. After a clean stop it knows all: unless the ``whole`` is wanted, nobody
    else is asked then.
    """
    if known is not None and known.position > known.begin:
        yield Witness(known.position, MANIFEST, max(known.begin, 0))
        if not whole:
            return
    found = _queue_bounds(config, disk)
    if found:
        yield Witness(max(end for _, end in found), QUEUES, min(begin for begin, _ in found))
    indexed = _index_end(config)
    if indexed:
        yield Witness(indexed, INDEX)
    if checkpoint.value.physic:
        yield Witness(0, CHECKPOINT)


def _queue_bounds(config: StoreConfig, disk: Disk) -> list[tuple[int, int]]:
    """Of each consume queue that ever had a message, the log offsets of its first record and after its last."""
    if not config.consume_queue_dir.is_dir():
        return []
    queues, found = ConsumeQueueStore(config, disk), []
    try:
        queues.load(read_only=True)
        for queue in queues:
            queue.recover_end(_ANY_END)
            if queue.max_offset:
                queue.correct_min_offset(0)
                first = queue.unit(queue.min_offset)
                end = queue.last_end if queue.last_end < _GREATEST else 0
                found.append((min(first.physical_offset, end) if first is not None else end, end))
    finally:
        queues.close()
    return found


def _index_end(config: StoreConfig) -> int:
    """Log offset of the newest record that the index has; 0 where it has none."""
    paths = config.index_dir.glob("[0-9]*") if config.index_dir.is_dir() else ()
    for path in sorted(paths, reverse=True):
        with path.open("rb") as file:
            data = file.read(HEADER_SIZE)
        header = IndexHeader.unpack(data) if len(data) == HEADER_SIZE else IndexHeader()
        if header.index_count > 1:
            return max(1, header.end_physical_offset if header.end_physical_offset < _GREATEST else 0)
    return 0


def missing_end(config: StoreConfig, end: int, witness: Witness) -> LogFilesMissing:
    """The error for a log that ends at ``end`` although ``witness`` knows more."""
    size = config.mapped_file_size_commit_log
    begin = end or witness.begin - witness.begin % size
    inside = f" (from {end:,} on)" if end % size else ""
    begin -= begin % size
    if log_end(config):
        have = f"The commit log in {config.commit_log_dir} ends at offset {end:,}"
    else:
        have = f"There are no log files in {config.commit_log_dir}"
    known = f"{witness.what} says that it went on" if log_end(config) else f"{witness.what} says that there was a log"
    gone = f"{file_name(end)} and what followed" if end else "all"
    if witness.end:
        known = f"{witness.what} says that it had reached {witness.end:,}"
        gone = _listed(begin, witness.end, size) + inside
    return LogFilesMissing(
        f"{have}, but {known}. Missing: {gone}. Nothing was changed.",
        remedy="Is the volume mounted? Were files deleted, or replaced by older ones? Mount or restore them and start "
        "again, or promote a slave, which has its own copy. To go on without these messages: tandem data accept-loss "
        f"--data {config.store_path_root_dir}",
    )


def find_missing(
    starts: Sequence[int], size: int, known: Sequence[DamagedRange], manifest: Manifest | None
) -> list[DamagedRange]:
    """The stretches in front of the newest of the files that begin at ``starts`` that no file covers.

    Where the log should begin is where its first file does, unless ``manifest`` knows of an earlier one that has not
    expired, or the range in front is ``known`` from an earlier start: in log order, of kind ``missing``.
    """
    if not starts:
        return []
    begin = starts[0]
    if manifest is not None and 0 <= manifest.begin < manifest.position:
        begin = min(begin, manifest.begin)
    for one in reversed(known):
        if one.end >= begin:
            begin = min(begin, one.begin)
    ranges = []
    for start in starts:
        if start > begin:
            reason = f"log files are missing: {_listed(begin - begin % size, start, size)}"
            ranges.append(DamagedRange(begin, start, MISSING, reason))
        begin = start + size
    return ranges


def _listed(begin: int, end: int, size: int) -> str:
    """The names of the files from ``begin`` on that hold what lies below ``end``; the first and the last of many."""
    starts = range(begin, end, size)
    if len(starts) <= _NAMED:
        return ", ".join(map(file_name, starts))
    return f"{file_name(starts[0])} to {file_name(starts[-1])} ({len(starts):,} files)"
