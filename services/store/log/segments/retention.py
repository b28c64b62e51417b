"""Letting go of old files (RocketMQ: ``CleanCommitLogService``, ``CleanConsumeQueueService``).

A file's age is that of its last record, not of the file: copying a store does not make it young (trap T22). The
newest file never goes, nor one of which no manifest on disk knows yet where its messages have brought the queues: with
the power the next offset of a queue would be lost, and would go back. A full disk stops sends and says so; when there
is room again, sends go on by themselves.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tandemmq.common.slices import Slices
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import FlushFailed
from tandemmq.store.log.index.index_file import IndexFile
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.topic_retention import TopicRetention
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.scan import LogScan

log = logging.getLogger(__name__)
_HOUR_MS = 3_600_000
_FIRST_PASS_SECONDS = 60.0


class Retention:
    """Removes expired files and watches the room on disk."""

    def __init__(
        self, parts: StoreParts, flags: RunningFlags, checkpointer: Checkpointer, topics: TopicRetention
    ) -> None:
        """Prepare; `start` begins the passes. ``topics``: those that keep their messages for a shorter time."""
        self._topics = topics
        self._parts = parts
        self._flags = flags
        self._checkpointer = checkpointer
        self._task: asyncio.Task[None] | None = None
        self._last_record_times: dict[int, int] = {}
        self._said_kept = -1
        self.problem = ""
        """That old files go before they expire, and why; empty while they need not."""
        self.guards: list[Callable[[], int | None]] = []
        """Each gives the log offset from which on files are kept, whatever their age; None: it keeps none."""

    def start(self) -> None:
        """Begin the passes."""
        self._task = asyncio.create_task(self._run(), name="retention")

    async def stop(self) -> None:
        """End the passes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        interval = self._parts.config.clean_resource_interval / 1000
        await self._parts.timers.sleep(min(_FIRST_PASS_SECONDS, 6 * interval))
        while True:
            try:
                await asyncio.to_thread(self._learn)
                await self.run_once()
                await self._topics.run_once()
            except Exception as error:  # this task must outlive whatever happens in it
                log.exception("Old files or messages cannot be let go: %s", error)
                self._parts.observer.failed("retention")
            await self._parts.timers.sleep(interval)

    async def run_once(self) -> int:
        """One pass; gives the number of commit log files removed."""
        config, parts = self._parts.config, self._parts
        used = parts.disk.usage(config.store_path_root_dir).used_percent
        self._watch(used)
        hour = time.localtime(parts.clock.now_ms() / 1000).tm_hour
        limit = config.disk_space_clean_forcibly_ratio
        forced = used >= limit and config.clean_file_forcibly_enable
        self.problem = (
            f"the disk is {used} % full, so old messages go before they expire (diskSpaceCleanForciblyRatio is {limit})"
            if forced
            else ""
        )
        if hour not in config.delete_when and used < config.disk_max_used_space_ratio and not forced:
            return 0
        if not forced and not self._checkpointer.complete:
            return 0  # what a rebuild writes is not durable yet: a power cut may leave holes where messages expired
        going = await self._recorded(self._due(forced=forced))
        if not going:
            return 0
        removed: list[MappedFile] = []
        try:
            await in_thread(self._remove, going, removed)
        finally:
            self._forget(removed, "disk nearly full" if forced else "expired")
        count = len(removed)
        await in_thread(_let_go, going, removed)
        await self._after(parts.files.files[0].start)
        return count

    def _due(self, *, forced: bool) -> list[MappedFile]:
        """The oldest files, as far as they have expired, or have to go."""
        going: list[MappedFile] = []
        kept_from = min((at for at in (guard() for guard in self.guards) if at is not None), default=None)
        for file in self._parts.files.files[:-1][: self._parts.config.delete_file_batch_max]:
            if not forced and not self._expired(file):
                break
            if kept_from is not None and file.end > kept_from:
                self._say_kept(file, forced=forced)
                break  # what is needed of it is written again soon, and then it goes
            going.append(file)
        return going

    def _forget(self, removed: list[MappedFile], reason: str) -> None:
        for file in removed:
            self._parts.files.forget_first()
            log.info("Removed %s (%s)", file.path, reason)

    def _say_kept(self, file: MappedFile, *, forced: bool) -> None:
        """The disk is nearly full, and a file that is needed stays all the same: said once a file."""
        if forced and self._said_kept != file.start:
            self._said_kept = file.start
            log.warning("%s is kept though the disk is nearly full: messages in it wait to be delivered", file.path)

    def _remove(self, files: list[MappedFile], removed: list[MappedFile]) -> None:
        """Take their names away, in a thread: to free a large file takes a while. Raises OSError.

        Nobody is told of the new first offset before that is durable: a name that comes back with the power would bring
        old messages.
        """
        for file in files:
            file.remove()
            removed.append(file)
        self._parts.disk.sync_dir(self._parts.config.commit_log_dir)

    async def _recorded(self, files: list[MappedFile]) -> list[MappedFile]:
        """Those of ``files`` after which a manifest on disk knows the queues' bounds; may take a checkpoint."""
        checkpointer = self._checkpointer
        late = files and files[-1].end > checkpointer.recorded
        if late and checkpointer.complete and not self._flags.holds(Reason.FLUSH_FAILED):
            try:
                await checkpointer.take()
            except (OSError, FlushFailed) as error:
                log.error("Old files are kept: no checkpoint can be taken before they go: %s", error)
        going = [file for file in files if file.end <= checkpointer.recorded]
        if going:
            try:  # before they go: a first file that is not there, and has not expired, is missing
                await checkpointer.expire_below(going[-1].end)
            except OSError as error:
                log.error("Old files are kept: it cannot be written down that they go: %s", error)
                return []
        return going

    def _watch(self, used: int) -> None:
        """Stop or resume sends by the room on disk. Log and queues share one partition, so one flag is enough (T23)."""
        limit = self._parts.config.disk_space_warning_level_ratio
        if used >= limit:
            if self._flags.set(
                Reason.LOG_DISK_FULL, f"the disk is {used} % full (diskSpaceWarningLevelRatio is {limit})"
            ):
                log.error("No more messages are taken: the disk is %d %% full", used)
        elif self._flags.clear(Reason.LOG_DISK_FULL):
            log.info("Messages are taken again: the disk is %d %% full", used)

    def _expired(self, file: MappedFile) -> bool:
        age = self._parts.clock.now_ms() - self._last_record_time(file)
        return age >= self._parts.config.file_reserved_time * _HOUR_MS

    def _last_record_time(self, file: MappedFile) -> int:
        """Store time of a file's last record; found by walking the file once."""
        known = self._last_record_times.get(file.start)
        if known is None:
            scan = LogScan(
                self._parts.files,
                self._parts.walkers.for_bytes(file.size),
                self._parts.damage,
                check_crc=False,
                delay_levels=(),
            )
            walks = (step.walk for step in scan.steps(file.start, file.end) if step.walk is not None)
            known = max((walk.max_store_timestamp for walk in walks if walk.count), default=0)
            self._last_record_times[file.start] = known = known or int(file.path.stat().st_mtime * 1000)
        return known

    def _learn(self) -> None:
        """Walk the files that a pass will ask about, ahead of it and off the event loop."""
        for file in self._parts.files.files[: self._parts.config.delete_file_batch_max]:
            if file is self._parts.files.last or not self._expired(file):
                return

    async def _after(self, log_min: int) -> None:
        """Let queues, index and damage follow the log; a queue that is asked for before its turn follows at once."""
        parts, slices = self._parts, Slices(self._parts.timers)
        for queue in parts.queues:
            if parts.offsets.all_known:
                queue.drop_files_below(log_min)
            queue.correct_min_offset(log_min)
            await slices.pause()
        await self._drop_index_files(log_min)
        parts.damage.forget_below(log_min)
        for start in [start for start in self._last_record_times if start < log_min]:
            del self._last_record_times[start]

    async def _drop_index_files(self, log_min: int) -> None:
        """Remove the index files that speak of nothing in the log any more, in a thread.

        Where the index is being made anew, the new one has none of them.
        """
        async with self._checkpointer.paused() as in_place:
            if self._parts.index is not None and in_place:
                await in_thread(_remove_index_files, self._parts.index.forget_files_below(log_min))


def _remove_index_files(files: list[IndexFile]) -> None:
    """In a thread. Raises OSError: the next start finds those that are left."""
    try:
        for file in files:
            with suppress(FileNotFoundError):  # a new index took the place of this one meanwhile
                file.file.remove()
    finally:
        _let_go(files)


def _let_go(*lists: list[Any]) -> None:
    """Give up the last references to files, in a thread: only then are their pages and blocks freed."""
    for files in lists:
        files.clear()
