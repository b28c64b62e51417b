"""Rebuilds to compare: by the job, by the store's own sequential code, and how two sets of files differ."""

import asyncio
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.spark.rebuilding.rebuild_job import RebuildReport, RebuildRequest, rebuild
from tandemmq.spark.running.runner import InProcessRunner, Runner
from tandemmq.store.format.index_layout import IndexHeader
from tandemmq.store.format.unit import is_queue_name
from tandemmq.store.format.walker import Walker, compiled_walker
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.recovery.damage import DamageList
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue
from tandemmq.store.log.segments.scan import LogScan
from tandemmq.store.log.segments.walkers import Walkers


@dataclass(frozen=True)
class Sizes:
    """What a store's files look like; sizes in bytes, levels in ms."""

    log_file: int = 1 << 20
    queue_file: int = 10_000
    slots: int = 2_000
    entries: int = 8_000
    levels: tuple[int, ...] = (1_000, 2_000, 3_000, 3_600_000)

    def config(self, root: Path, **settings: Any) -> StoreConfig:
        """Settings of a store with these sizes that looks at its whole log at start."""
        fixed: dict[str, Any] = {
            "mapped_file_size_commit_log": self.log_file,
            "mapped_file_size_consume_queue": self.queue_file,
            "max_hash_slot_num": self.slots,
            "max_index_num": self.entries,
            "message_delay_levels": self.levels,
            "file_reserved_time": 1_000_000,
            "prefault_bytes": 0,
            "compiled_walker": "always",
            "verify_whole_log_on_start": True,
        }
        return StoreConfig(root, **(fixed | settings))

    def request(self, root: Path, **more: Any) -> RebuildRequest:
        """A rebuild of such a store that leaves its result staged."""
        fixed: dict[str, Any] = {
            "delay_levels": self.levels,
            "consume_queue_file_size": self.queue_file,
            "index_slots": self.slots,
            "index_entries": self.entries,
            "publish": False,
        }
        return RebuildRequest(root, **(fixed | more))


GOLDEN_SIZES = Sizes()
"""Those of the golden stores."""


@dataclass
class Files:
    """Derived files: queue files by their path below the store, index files with entries in their order."""

    queues: dict[str, bytes]
    index: list[bytes]

    def differences(self, other: "Files") -> list[str]:
        """What differs, in words; empty where nothing does."""
        found = []
        for name in sorted(self.queues.keys() | other.queues.keys()):
            mine, theirs = self.queues.get(name), other.queues.get(name)
            if mine != theirs:
                found.append(f"{name}: {_difference(mine, theirs)}")
        if len(self.index) != len(other.index):
            found.append(f"{len(self.index)} index files, not {len(other.index)}")
        for number, (here, there) in enumerate(zip(self.index, other.index, strict=False)):
            if here != there:
                found.append(f"index file {number}: {_difference(here, there)}")
        return found


def _difference(mine: bytes | None, theirs: bytes | None) -> str:
    if mine is None or theirs is None:
        return "only the second has it" if mine is None else "only the first has it"
    if len(mine) != len(theirs):
        return f"{len(mine)} bytes, not {len(theirs)}"
    at = next(at for at, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b)
    return f"byte {at}: {mine[at - at % 20 : at + 40].hex()} … not {theirs[at - at % 20 : at + 40].hex()} …"


def files_of(root: Path) -> Files:
    """The queues and index files in a store or a staging directory.

    An index file without entries is left out: a store makes one for the first record, whether that has keys or not.
    """
    queues = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.glob("consumequeue/*/*/*"))
        if path.is_file()
    }
    index = [path.read_bytes() for path in sorted(root.glob("index/*"))]
    return Files(queues, [data for data in index if IndexHeader.unpack(data).index_count > 1])


def copy_log(root: Path, target: Path) -> Path:
    """A store with a copy of the commit log of another, and nothing else; holes are kept."""
    target.mkdir(parents=True)
    subprocess.run(["cp", "--sparse=always", "-r", root / "commitlog", target / "commitlog"], check=True)
    return target


def by_store(root: Path, target: Path, sizes: Sizes) -> MessageStore:
    """Let the store itself make queues and index of a copy of the log, at its start; gives the closed store."""

    async def once() -> MessageStore:
        store = MessageStore.open(sizes.config(copy_log(root, target)))
        store.start()
        await asyncio.wait_for(store.rebuilt(), 150)
        await store.close()
        return store

    return asyncio.run(once())


_WALKER: list[Walker] = []


def by_log_code(root: Path, target: Path, sizes: Sizes, *, rows: int = 65_536) -> Files:
    """Feed the walks of a whole log to consume queues and index as dispatch does, without a store around them.

    ``rows``: most records of one walk. Queues that cannot be are left out.
    """
    if not _WALKER:
        _WALKER.append(compiled_walker())
    target.mkdir(parents=True)
    disk, config = LocalDisk(), sizes.config(target)
    files = MappedFileQueue(root / "commitlog", sizes.log_file, disk)
    queues = ConsumeQueueStore(config, disk)
    queues.load()
    index = Index(config.index_dir, sizes.slots, sizes.entries, disk, SystemClock(), Walkers("never"))
    index.load()
    scan = LogScan(files, _WALKER[0], DamageList(target, disk), check_crc=True, delay_levels=sizes.levels, rows=rows)
    try:
        for step in scan.steps(files.files[0].start):
            if step.walk is not None and step.walk.count:
                queues.append(run for run in step.walk.runs() if is_queue_name(run.topic, run.queue_id))
                index.put(step.walk)
            step.walk = None
        return files_of(target)
    finally:
        queues.close()
        files.close()


def by_job(
    root: Path, staging: Path, sizes: Sizes, partitions: int, runner: Runner | None = None
) -> tuple[Files, RebuildReport]:
    """The rebuild, left staged in ``staging``, which is made anew."""
    if staging.exists():
        shutil.rmtree(staging)
    report = rebuild(sizes.request(root, staging=staging, partitions=partitions), runner or InProcessRunner())
    return files_of(staging), report
