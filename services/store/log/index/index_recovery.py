"""The index at start-up: keep what is intact, find out whether anything is missing."""

from collections.abc import Callable

from tandemmq.store.format.sysflag import is_indexed_by_key
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.parts import RecoveryReport, StoreParts
from tandemmq.store.log.segments.scan import LogScan
from tandemmq.store.log.segments.walkers import Walkers

# A tail of the index that lies further back than this is rebuilt while the store serves, not before.
CATCH_UP_MAX = 512 << 20
StoreTime = Callable[[int], int | None]


def recover_index(parts: StoreParts, begin: int, report: RecoveryReport, store_time: StoreTime) -> int:
    """Cut the index back to what is intact below ``begin``; gives the log offset from which to index.

    With a current manifest the entry counts say exactly what was synced. Without one, the entries themselves are
    looked at, and the stretches between files are checked for keys that no file has (RocketMQ loses them after a
    crash, trap T7).
    """
    index, manifest = parts.index, parts.manifest
    log_min = parts.files.files[0].start if parts.files.files else 0
    if index is None:
        return begin
    if report.manifest_current and manifest is not None:
        tidy = report.clean_exit
        if cut_to(index, manifest.index, store_time, parts.walkers, tidy=tidy):
            return begin
    resume = max(index.cut_before(begin, store_time), log_min)
    if _has_gap(parts, index, log_min, resume):
        report.index_complete = False
        report.notes.append("index entries are missing: the index is rebuilt while the store serves")
    if begin - resume > CATCH_UP_MAX:
        report.index_complete = False
        # A stretch that is left out must lie between two files: only there does the next start look for one.
        index.begin_new_file()
        return begin
    return resume


def cut_to(index: Index, counts: list[tuple[str, int]], store_time: StoreTime, walkers: Walkers, *, tidy: bool) -> bool:
    """Cut the index to the files and entries that were synced; False where it does not have them all.

    Unless the index was left ``tidy``, the newest file is cut even where its count says that nothing came after: a
    power cut may have kept new slots and lost the header that goes with them.
    """
    have = index.counts()
    if len(have) < len(counts) or any(
        mine[0] != synced[0] or mine[1] < synced[1] for mine, synced in zip(have, counts, strict=False)
    ):
        return False
    while len(index.files) > len(counts):
        index.drop_last()
    for file, (_, count) in zip(index.files, counts, strict=True):
        torn = not tidy and file is index.files[-1] and count > 1
        if file.header.index_count != count or torn:
            file.cut(count, store_time, walkers.index_tools(count))
    return True


def _has_gap(parts: StoreParts, index: Index, log_min: int, resume: int) -> bool:
    """Whether records with keys lie between the files of the index, or before the first."""
    edges = [log_min]
    for file in index.files:
        header = file.header
        edges += [header.begin_physical_offset, header.end_physical_offset]
    pairs = [(max(a, log_min), b) for a, b in zip(edges[0::2], edges[1::2], strict=False)]
    scan = LogScan(
        parts.files, parts.walkers.best, parts.damage, check_crc=False,
        delay_levels=parts.config.message_delay_levels, rows=256,
    )  # fmt: skip
    known = {file.header.end_physical_offset for file in index.files}
    return any(_has_keys(scan, begin, end, known) for begin, end in pairs if begin < end <= resume)


def _has_keys(scan: LogScan, begin: int, end: int, known: set[int]) -> bool:
    for step in scan.steps(begin, end):
        if step.walk is not None and any(
            row.position not in known and is_indexed_by_key(row.sys_flag) and (row.unique_key or row.keys)
            for row in step.walk.rows()
        ):
            return True
    return False
