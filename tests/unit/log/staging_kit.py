"""What a Spark job leaves in a staging directory, made with the store's own sequential code."""

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.store.format.staged import FILE_NAME, StagedManifest
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.edges.read_only import ReadOnlyFiles
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.recovery.damage import DamageList
from tandemmq.store.log.segments.scan import LogScan
from tandemmq.store.log.segments.walkers import Walkers

NAME = "tandem.rebuild"


def stage(
    config: StoreConfig,
    end: int,
    *,
    name: str = NAME,
    topics: Collection[str] | None = None,
    queues: bool = True,
    index: bool = True,
    **manifest: Any,
) -> StagedManifest:
    """Rebuild what the log holds below ``end``, of ``topics`` or all; ``manifest`` are fields that are to lie."""
    staging, disk, walkers = config.store_path_root_dir / name, LocalDisk(), Walkers("never")
    shutil.rmtree(staging, ignore_errors=True)
    make_dirs(disk, staging / "consumequeue")
    files = ReadOnlyFiles(config.commit_log_dir, config.mapped_file_size_commit_log)
    begin = min((file.start for file in files), default=0)
    rebuilt = ConsumeQueueStore(replace(config, store_path_root_dir=staging), disk)
    fresh = Index(staging / "index", config.max_hash_slot_num, config.max_index_num, disk, SystemClock(), walkers)
    if index:
        fresh.load()
    messages = newest = 0
    damage = DamageList(config.store_path_root_dir, disk)
    levels = config.message_delay_levels
    scan = LogScan(files, walkers.best, damage, check_crc=False, delay_levels=levels)
    for step in scan.steps(begin, end):
        if step.walk is None or not step.walk.count:
            continue
        messages += step.walk.count
        newest = max(newest, step.walk.max_store_timestamp)
        if index:
            fresh.put(step.walk)
        if queues:
            rebuilt.append(run for run in step.walk.runs() if topics is None or run.topic in topics)
    bounds = {(queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset) for queue in rebuilt}
    rebuilt.close()
    staged = StagedManifest(
        begin, end, messages, config.mapped_file_size_consume_queue // UNIT_SIZE * UNIT_SIZE,
        config.max_hash_slot_num, config.max_index_num, queues and topics is None, bounds,
        fresh.counts() if index else None, max_store_timestamp=newest,
    )  # fmt: skip
    staged = replace(staged, **manifest)
    write_atomically(disk, staging / FILE_NAME, staged.encode())
    return staged


def sequential(config: StoreConfig, end: int) -> dict[str, bytes]:
    """Contents of the queue and index files that sequential dispatch makes of the log below ``end``, holes and all.

    Index files are named by the time; their order counts.
    """
    name = "expected"
    stage(config, end, name=name)
    try:
        return contents(config.store_path_root_dir / name)
    finally:
        shutil.rmtree(config.store_path_root_dir / name)


def contents(root: Path) -> dict[str, bytes]:
    """Contents of the queue and index files below ``root``, as `sequential` gives them."""
    queues = sorted((root / "consumequeue").glob("*/*/*"))
    found = {str(path.relative_to(root)): path.read_bytes() for path in queues}
    return found | {f"index/{at}": path.read_bytes() for at, path in enumerate(sorted((root / "index").iterdir()))}
