"""What Spark is compared with, in one warm process: bare reads, the walk alone, the store's own sequential code."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.model import Sample
from bench.workers.serving import serve
from bench.workers.spark_rebuild import rebuilt
from tandemmq.spark.reading.layout import StoreLayout
from tandemmq.spark.reading.log_files import LogFile, list_log_files
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.walking import RangeResult, RangeWalker
from tandemmq.spark.rebuilding import rebuild_tasks
from tandemmq.spark.rebuilding.index_builder import IndexFilePlan, Spill, build_part, create_file
from tandemmq.spark.rebuilding.keys_spill import SpillWriter
from tandemmq.spark.rebuilding.queue_writer import Interval
from tandemmq.spark.rebuilding.staging import StagingDirectory
from tandemmq.spark.rebuilding.stitching import accept_all, settle
from tandemmq.spark.running.runner import InProcessRunner
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.edges.read_only import ReadOnlyFiles
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.recovery.damage import DamageList
from tandemmq.store.log.segments.scan import LogScan
from tandemmq.store.log.segments.walkers import Walkers

_BUFFER = 1 << 20
"""Of a read: it stays in the processor's cache, so that nothing is measured but the copy out of the page cache."""


def converse(directory: Path) -> None:
    """Serve what is measured here; ``directory``: for what is written."""
    walkers = Walkers("always")

    def sequential(root: str, end: int, queues: bool, index: bool) -> Sample:
        return _sequential(Path(root), directory / "sequential", end, walkers, queues=queues, index=index)

    def in_process(root: str, messages: int, queues: bool, index: bool) -> Sample:
        staging = directory / "in-process"
        return rebuilt(Path(root), staging, InProcessRunner(), messages, queues=queues, index=index)

    serve(
        {
            "read": lambda root, end, threads: _read(Path(root), end, threads),
            "walk": lambda root, end, messages: _walk(Path(root), end, messages),
            "sequential": sequential,
            "in process": in_process,
            "driver": lambda ranges, queues: _driver(directory / "driver", ranges, queues),
            "part": lambda keys, share: _part(directory / "part", keys, share),
        }
    )


# -- reading ----------------------------------------------------------------------------------------------------------


def _read(root: Path, end: int, threads: int) -> Sample:
    """The files by readv into one buffer a thread, as fast as they come."""
    files = list_log_files(root)
    pieces = split(files, end=end)

    def work(share: list[LogRange]) -> None:
        buffer = bytearray(_BUFFER)
        with memoryview(buffer) as view:
            for piece in share:
                fd = os.open(piece.file.path, os.O_RDONLY)
                try:
                    at, stop = piece.begin - piece.file.start, piece.end - piece.file.start
                    while at < stop:
                        at += os.preadv(fd, [view[: stop - at]], at)
                finally:
                    os.close(fd)

    begun = time.perf_counter()
    workers = [threading.Thread(target=work, args=(pieces[number::threads],)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return _speed(end, time.perf_counter() - begun)


def _walk(root: Path, end: int, messages: int) -> Sample:
    """The compiled walk with checksums, and nothing done with what it finds."""
    begun = time.perf_counter()
    found = 0
    for piece in split(list_log_files(root), end=end):
        with RangeWalker(piece) as walking:
            found += sum(walk.count for walk in walking.walks())
    seconds = time.perf_counter() - begun
    _expect("messages", found, messages)
    return {**_speed(end, seconds), "m_msg_s": messages / seconds / 1e6}


def _speed(size: int, seconds: float) -> Sample:
    return {"gb_s": size / seconds / 1e9, "seconds": seconds}


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"{found:,} {what} were found, {expected:,} are there")


# -- the store's own way ----------------------------------------------------------------------------------------------


def _sequential(root: Path, target: Path, end: int, walkers: Walkers, *, queues: bool, index: bool) -> Sample:
    """One scan, every step to queues and index, as recovery does it; then everything is synced.

    ``gb_s`` counts until the last byte is on disk, as for a rebuild; ``unsynced_gb_s`` without the syncing.
    """
    shutil.rmtree(target, ignore_errors=True)
    config, disk = StoreConfig(root), LocalDisk()
    begun = time.perf_counter()
    files = ReadOnlyFiles(config.commit_log_dir, config.mapped_file_size_commit_log)
    scan = LogScan(
        files, walkers.best, DamageList(target / "none", disk), check_crc=True, delay_levels=config.message_delay_levels
    )
    store = ConsumeQueueStore(replace(config, store_path_root_dir=target), disk)
    entries = Index(target / "index", config.max_hash_slot_num, config.max_index_num, disk, SystemClock(), walkers)
    entries.load()
    messages = 0
    for step in scan.steps(0, end):
        if step.walk is not None and step.walk.count:
            messages += step.walk.count
            if queues:
                store.append(step.walk.runs())
            if index:
                entries.put(step.walk)
    unsynced = time.perf_counter() - begun
    for queue in store:
        for path in queue.take_dirty().files:
            _sync(path)
    entries.sync()
    seconds = time.perf_counter() - begun
    found = {
        "units": sum(queue.max_offset for queue in store),
        "index_entries": sum(count - 1 for _, count in entries.counts()),
    }
    store.close()
    del entries
    shutil.rmtree(target)
    speed = {**_speed(end, seconds), "m_msg_s": messages / seconds / 1e6}
    return {**speed, "unsynced_gb_s": end / unsynced / 1e9, "unsynced_s": unsynced, **found}


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)


# -- pieces of the rebuild, for the model of more cores ---------------------------------------------------------------


def _driver(directory: Path, ranges: int, queues: int) -> Sample:
    """What the driver does with the documents of so many ranges, each with messages of so many queues."""
    shutil.rmtree(directory, ignore_errors=True)
    staging = StagingDirectory(directory)
    size, each = 128 << 20, 100
    pieces = []
    for number in range(ranges):
        file = LogFile(directory / "log", number // 8 * 8 * size, 8 * size)
        piece = LogRange(number, file, number * size, (number + 1) * size, exact=number % 8 == 0)
        pieces.append(piece)
        result = RangeResult(first=piece.begin, next=piece.end, records=each * queues)
        interval = Interval(number * each, (number + 1) * each, piece.begin, piece.end)
        intervals = {(f"topic-{queue // 8}", queue % 8): [interval] for queue in range(queues)}
        staging.write(f"scan/{number}.json", rebuild_tasks.scan_document(result, intervals, each * queues, 0))
    begun = time.perf_counter()
    scans = [rebuild_tasks.read_scan(staging.read(f"scan/{piece.number}.json") or {}) for piece in pieces]
    log = settle([(piece, result) for piece, (result, _) in zip(pieces, scans, strict=True)])
    plans = accept_all([intervals for _, intervals in scans], StoreLayout().units_per_file)
    rows = [[*key, plan.first, plan.end, plan.units, plan.blanks] for key, plan in plans.items()]
    staging.write("queues.json", {"again": [], "irregular": [], "groups": [rows]})
    seconds = time.perf_counter() - begun
    _expect("damaged stretches", len(log.damage) + len(log.misread), 0)
    _expect("units", sum(plan.units for plan in plans.values()), ranges * each * queues)
    shutil.rmtree(directory)
    return {"seconds": seconds, "us_a_range": seconds / ranges * 1e6}


def _part(directory: Path, keys: int, share: int) -> Sample:
    """One ``share``-th of the slots of an index file that has so many keys: every task looks at all of its keys."""
    shutil.rmtree(directory, ignore_errors=True)
    spills = directory / "keys"
    spills.mkdir(parents=True)
    with SpillWriter(spills, 0) as spill:
        hashes = np.random.default_rng(1).integers(0, 1 << 31, keys, np.int32)
        numbers = np.arange(keys, dtype=np.int64)
        spill.add((hashes, numbers * 200, numbers))
    layout = StoreLayout()
    target = directory / "index"
    create_file(target, layout.index_file_size)
    plan = IndexFilePlan(target.name, 0, keys)

    def build() -> None:
        slots = layout.index_slots
        build_part(target, plan, slots, layout.index_entries, (0, slots // share), [Spill(0, 0, keys)], spills)

    seconds = _timed(build)
    shutil.rmtree(directory)
    return {"seconds": seconds, "ns_a_key": seconds / keys * 1e9}


def _timed(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
