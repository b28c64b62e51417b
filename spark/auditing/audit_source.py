"""Which store an audit looks at, and how far: a directory at rest, one in use, or that of a store that answers."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tandemmq.common.documents.sealed import unseal
from tandemmq.common.files.record_lock import is_locked
from tandemmq.spark.auditing.audit_index import find_index_layout, index_paths
from tandemmq.spark.auditing.audit_queues import UNIT, queues_on_disk
from tandemmq.spark.errors import BadJobOption, MissingLog
from tandemmq.spark.reading.layout import DEFAULT_QUEUE_FILE_SIZE, StoreLayout
from tandemmq.spark.reading.log_files import LogFile, list_log_files, log_directory, without_unused
from tandemmq.spark.reading.running_store import is_directory_of
from tandemmq.store.format.index_layout import HEADER_SIZE, IndexHeader
from tandemmq.store.format.manifest import NAME as MANIFEST
from tandemmq.store.format.manifest import Manifest
from tandemmq.store.format.unit import DELAY_LEVELS_MS, UNIT_SIZE

_DAMAGE = "tandem.damage"
_BLANK_SIZE = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class AuditSource:
    """What is looked at. ``begin``, ``end``: log offsets; ``end`` None: all there is.

    ``in_use``: a broker has the directory; ``levels_known``: whether the layout's delay levels are the broker's.
    ``noted``: damage that the store itself has noted: log offsets and kind.
    """

    files: list[LogFile]
    layout: StoreLayout
    begin: int
    end: int | None
    in_use: bool
    clean_exit: bool
    levels_known: bool
    index_enabled: bool = True
    noted: list[tuple[int, int, str]] = field(default_factory=list)


def look_at_directory(
    root: Path, *, delay_levels: tuple[int, ...] | None, index_slots: int | None, index_entries: int | None
) -> AuditSource:
    """A directory, also one that a broker uses: then up to where its queues and index are complete for certain.

    Raises:
        NotAStore, UnequalFiles: there is no log to compare with.
        BadJobOption: the sizes of the index cannot be told from its files.
    """
    if log_directory(root) == root:
        raise BadJobOption(
            f"{root} holds log files themselves: there are no consume queues and no index beside them to compare with.",
            remedy="Name the folder that has commitlog/, consumequeue/ and index/ in it.",
        )
    in_use = is_locked(root)
    end = _complete_end(root) if in_use else None
    files = list_log_files(root)
    files = without_unused(files) if end is None else [file for file in files if file.start < end]
    paths = index_paths(root)
    slots, entries = find_index_layout(paths, index_slots, index_entries)
    levels = DELAY_LEVELS_MS if delay_levels is None else delay_levels
    layout = StoreLayout(_queue_file_size(root), slots, entries, levels)
    begin = files[0].start if files else 0
    clean = not (root / "abort").exists()
    return AuditSource(
        files, layout, begin, end, in_use, clean, delay_levels is not None, True, _noted_damage(root)
    )  # fmt: skip


def ask_store(root: Path, address: str) -> AuditSource:
    """A store that answers at ``address`` (HOST:PORT), up to what its dispatch has reached.

    Raises:
        BadJobOption: its files are elsewhere.
        ClientError: it does not answer.
    """
    log = _log_of(address)
    if not is_directory_of(root, log):
        raise BadJobOption(
            f"The store at {address} has its files in {log.root}, not in {root}.",
            remedy="Run the audit where the store's files are, and name its storePathRootDir.",
        )
    layout = StoreLayout(log.consume_queue_file_size, log.index_slots, log.index_entries, tuple(log.delay_levels_ms))
    files = [file for file in list_log_files(root) if log.min_offset <= file.start < log.dispatched_offset]
    return AuditSource(
        files, layout, log.min_offset, log.dispatched_offset, True, True, True, log.index_enabled, _noted_damage(root)
    )  # fmt: skip


def first_offset(root: Path, address: str | None) -> int:
    """Where the log of a store in use begins by now: files expire. Raises MissingLog, ClientError."""
    if address is not None:
        return int(_log_of(address).min_offset)
    files = list_log_files(root)
    if not files:
        raise MissingLog(f"{root} has no log files any more.")
    return files[0].start


def _log_of(address: str) -> Any:
    from tandemmq.client import Identity, StoreClient

    with StoreClient(address, **Identity.from_environment().at(address).arguments()) as client:
        return client.log()


def _complete_end(root: Path) -> int:
    """Log offset up to which queues and index of a store in use are complete; a record ends there.

    Ours says so at each checkpoint. RocketMQ writes one record after the other into its queue and then into the index:
    all before the last of them is there.
    """
    try:
        return Manifest.decode((root / MANIFEST).read_bytes()).position
    except (FileNotFoundError, ValueError):
        pass
    last = max((_last_unit(root, topic, queue_id) for topic, queue_id in queues_on_disk(root)), default=0)
    for path in reversed(index_paths(root)):
        with path.open("rb") as file:
            header = IndexHeader.unpack(file.read(HEADER_SIZE))
        if header.index_count > 1:
            return min(last, header.end_physical_offset)
    return last


def _last_unit(root: Path, topic: str, queue_id: int) -> int:
    """Log offset that the last unit of a queue names, 0 without any."""
    directory = root / "consumequeue" / topic / str(queue_id)
    for name in sorted((name for name in os.listdir(directory) if name.isdecimal()), reverse=True):
        data = (directory / name).read_bytes()
        units = np.frombuffer(data, UNIT, len(data) // UNIT_SIZE)
        written = np.flatnonzero((units["size"] > 0) & (units["size"] != _BLANK_SIZE))
        if len(written):
            return int(units["physical"][written[-1]])
    return 0


def _queue_file_size(root: Path) -> int:
    """What most of the files have; RocketMQ's default without any."""
    sizes: dict[int, int] = {}
    for path in root.glob("consumequeue/*/*/*"):
        size = path.stat().st_size
        if path.name.isdigit() and size and not size % UNIT_SIZE:
            sizes[size] = sizes.get(size, 0) + 1
    return max(sizes, key=lambda size: (sizes[size], size), default=DEFAULT_QUEUE_FILE_SIZE)


def _noted_damage(root: Path) -> list[tuple[int, int, str]]:
    try:
        ranges = unseal((root / _DAMAGE).read_bytes())["ranges"]
        return [(int(one["begin"]), int(one["end"]), str(one["kind"])) for one in ranges]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
