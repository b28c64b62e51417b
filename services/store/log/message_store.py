"""The message store: one directory, opened, recovered, written, read and closed (RocketMQ: ``DefaultMessageStore``).

Everything runs on one event loop unless a docstring says otherwise; the loop is the append lock.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from tandemmq.common.files.boot import boot_id
from tandemmq.common.files.replacing import make_dirs
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.store.format.batch import BatchWriter
from tandemmq.store.format.record import Message
from tandemmq.store.log.adoption.adoption import Adoption, roll_forward
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.dispatch import Dispatcher
from tandemmq.store.log.edges.clock import Clock, SystemClock
from tandemmq.store.log.edges.disk import Disk, LocalDisk
from tandemmq.store.log.edges.offset_waiters import Told, settling
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import DiskFull, FlushFailed, NotWritable, StoreClosed, disk_errors
from tandemmq.store.log.event import Event
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.index.index_repairs import IndexRepairs
from tandemmq.store.log.marks import abort_file
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.marks.end_file import EndFile, reached_end
from tandemmq.store.log.marks.lock import StoreLock
from tandemmq.store.log.marks.manifest import read_manifest
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.observer import NullObserver, Observer
from tandemmq.store.log.parts import RecordRun, RecoveryReport, StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.queues.queue_offsets import NextOffsets
from tandemmq.store.log.queues.queue_repairs import QueueRepairs
from tandemmq.store.log.queues.time_search import offset_by_time
from tandemmq.store.log.queues.topic_retention import TopicRetention
from tandemmq.store.log.reading.bulk import TaggedRun, TagLimits, read_bulk, read_tagged
from tandemmq.store.log.reading.named_records import NamedRecords
from tandemmq.store.log.recovery.damage import DamagedRange, DamageList
from tandemmq.store.log.recovery.file_problems import FileProblem
from tandemmq.store.log.recovery.healing import Healing
from tandemmq.store.log.recovery.missing_files import check_end
from tandemmq.store.log.recovery.recovery import Recovery
from tandemmq.store.log.recovery.restoring import Restoring
from tandemmq.store.log.recovery.scrub import Scrub
from tandemmq.store.log.replica.confirmed import Confirmed
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.log.replica.replica import Replica
from tandemmq.store.log.replica.replica_group import GroupFile
from tandemmq.store.log.replica.replica_mark import zero_unfinished
from tandemmq.store.log.segments.commit_log import Appended, AppendedBatch, CommitLog, EncodedBatch
from tandemmq.store.log.segments.flush import GroupCommit
from tandemmq.store.log.segments.mapped_file_queue import MappedFileQueue
from tandemmq.store.log.segments.retention import Retention
from tandemmq.store.log.segments.syncing import Syncs
from tandemmq.store.log.segments.touching import touch_records
from tandemmq.store.log.segments.walkers import Walkers

log = logging.getLogger(__name__)


class MessageStore:
    """A store directory in use. Made by `open`; `start` begins the background work, `close` ends it cleanly."""

    def __init__(
        self, lock: StoreLock, parts: StoreParts, commit_log: CommitLog, recovery: RecoveryReport, end_file: EndFile
    ) -> None:
        """Put recovered parts together; use `open`."""
        self._lock = lock
        self._parts = parts
        self.config = parts.config
        self.timers = parts.timers
        self.clock = parts.clock
        self._seen_at_once = not parts.config.sync_flush
        self.commit_log = commit_log
        self.recovery = recovery
        self.flags = RunningFlags()
        self.observer: Observer = parts.observer
        commit_log.spoilt = self._on_flush_failed
        self._flush = GroupCommit(parts, commit_log, self._on_flushed, self._on_flush_failed, recovery.ended_at)
        self._dispatcher = Dispatcher(parts, self.flags, self._dispatch_limit, recovery.ended_at)
        self._dispatcher.last_store_timestamp = commit_log.last_store_timestamp
        self._end_file = end_file
        self._dispatcher.dispatched.listen(lambda: end_file.note(self._dispatcher.position))
        recorded = parts.manifest.position if recovery.manifest_current and parts.manifest is not None else 0
        self._checkpointer = Checkpointer(parts, self.flags, self._flush, self._dispatcher, recorded)
        self._topics = TopicRetention(parts, lambda: self.commit_log.max_offset)
        self._retention = Retention(parts, self.flags, self._checkpointer, self._topics)
        self._restoring = Restoring(parts, recovery, self._checkpointer, lambda: self.dispatched_offset)
        self.index_repairs = IndexRepairs(parts, self._restoring)
        self.repairs = QueueRepairs(parts, lambda: self.dispatched_offset)
        self.scrub = Scrub(parts, self._restoring, self.index_repairs, lambda: self.dispatched_offset)
        self.adoption = Adoption(parts, self.flags, self._dispatcher, self._checkpointer, self._restoring)
        self.healing = Healing(parts, self.flags, self._dispatcher, self._checkpointer, self._restoring, self.repairs)
        self.replica = Replica(parts, commit_log, self._flush, self._dispatcher, self.flags)
        self.grown = Event()
        """The log has grown, was flushed, or lost its oldest file."""
        self._closed = False

    # -- life -------------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        config: StoreConfig,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        timers: Timers | None = None,
        observer: Observer | None = None,
        boot: bytes | None = None,
    ) -> "MessageStore":
        """Lock, load and recover the directory. Blocks for as long as that takes.

        Raises:
            StoreLocked: another process has it; nothing was touched.
            UnusableDirectory, LogFilesMissing: its files are not what they should be; nothing was changed.
            DiskFull: there is no room for what recovery must write, such as the first file of a new store.
            DiskFailed, FlushFailed: the disk refused; try again when it is well.
        """
        boot = boot_id() if boot is None else boot
        disk, clock, timers = disk or LocalDisk(), clock or SystemClock(), timers or LoopTimers()
        root = config.store_path_root_dir
        with disk_errors(f"The store in {root} cannot be opened"):
            make_dirs(disk, root)
            lock = StoreLock(root, disk)
            try:
                return cls._open_locked(lock, config, disk, clock, timers, observer or NullObserver(), boot)
            except BaseException:
                lock.release()
                raise

    @classmethod
    def _open_locked(
        cls,
        lock: StoreLock,
        config: StoreConfig,
        disk: Disk,
        clock: Clock,
        timers: Timers,
        observer: Observer,
        boot: bytes,
    ) -> "MessageStore":
        root = config.store_path_root_dir
        exit_before = abort_file.last_exit(root)
        problems: list[FileProblem] = []
        confirmed = Confirmed(holds_back=not config.read_un_committed)
        checkpoint = CheckpointFile(root, disk, confirmed)
        known = read_manifest(root, problems)
        manifest = None if exit_before is abort_file.Exit.CRASH_OF_ANOTHER else known
        mastership = Mastership(root, disk, BrokerRole(config.broker_role))
        group = GroupFile(root, disk)
        reached = 0 if mastership.is_slave else reached_end(root, exit_before, boot, problems)
        doubt = check_end(config, manifest, checkpoint, disk, exit_before, slave=mastership.is_slave, reached=reached)
        if mastership.is_slave or mastership.fenced_by:
            mastership.name()
        files = MappedFileQueue(config.commit_log_dir, config.mapped_file_size_commit_log, disk)
        try:
            durable = manifest.position if manifest is not None else 0
            zero_unfinished(root, files, disk, exit_before, durable, problems, boot)
            roll_forward(root, disk)
            walkers = Walkers(config.compiled_walker)
            queues, index = ConsumeQueueStore(config, disk, confirmed, observer), None
            if config.message_index_enable:
                index = Index(config.index_dir, config.max_hash_slot_num, config.max_index_num, disk, clock, walkers)
                index.load()
            parts = StoreParts(
                config, disk, clock, timers, observer, files, queues, index, checkpoint, manifest,
                DamageList(root, disk, problems, expected=manifest is not None and manifest.damaged > 0),
                NextOffsets(), walkers, mastership, group, confirmed, boot,
                problems,
            )  # fmt: skip
            given = known.queues if known is not None else {}
            clean = exit_before is abort_file.Exit.CLEAN
            report = Recovery(parts, given, clean_exit=clean, doubt=doubt, reached=reached).run()
            commit_log = CommitLog(config, files, parts.offsets, clock, walkers.batch_writer())
            parts.checkpoint.resume_confirmed(mastership.role, report.ended_at)
            commit_log.resume_at(report.ended_at, report.last_store_timestamp)
            end_file = EndFile(root, disk, boot, report.ended_at)
            try:
                abort_file.write(root, disk)
                return cls(lock, parts, commit_log, report, end_file)
            except BaseException:
                end_file.close()
                raise
        except BaseException:
            files.close()
            raise

    def start(self) -> None:
        """Begin flushing, checkpoints, retention, and the rebuilds that recovery asked for. Call on the event loop."""
        for part in (self._flush, self._checkpointer, self._retention, self._restoring, self.adoption, self.scrub):
            part.start()

    def keep_from(self, guard: Callable[[], int | None]) -> None:
        """Keep files from the log offset on that `guard` says, however old they are; it may say None."""
        self._retention.guards.append(guard)

    def keep_topics(self, hours: Callable[[str], int]) -> None:
        """Keep the messages of a topic for so many ``hours``; 0: as long as the log."""
        self._topics.follow(hours)

    @property
    def rebuilding(self) -> bool:
        """Whether missing derived files are being restored."""
        return self._restoring.running

    async def rebuilt(self) -> None:
        """Wait until nothing is being rebuilt."""
        await self._restoring.wait()

    async def close(self) -> None:
        """Shut down in order: appends end, log flushed, dispatch finished, queues and index synced, checkpoint, lock.

        Dispatch ends before the index does (trap T15). ``abort`` stays if anything failed.
        """
        if self._closed:
            return
        self._closed = True
        self.flags.set(Reason.CLOSED, "the store has been shut down")
        for part in (
            self.scrub, self.healing, self._restoring, self.repairs, self.adoption, self._retention,
            self._checkpointer,
        ):  # fmt: skip
            await part.stop()
        await self._flush.flush_all()
        await self._dispatcher.drain()
        self.replica.drop_unchecked()
        self._dispatcher.stop()
        clean = not self.flags.failed and self._dispatcher.position == self.commit_log.max_offset
        try:
            self._parts.files.put_back_deleted(self._parts.files)
            await self._checkpointer.take()
        except (OSError, FlushFailed) as error:
            log.error("The last checkpoint could not be taken: %s", error)
            clean = False
        await self._flush.stop()
        self._parts.files.close()
        self._parts.queues.close()
        try:
            self.replica.close(clean=clean)
            self._end_file.close(clean=clean)
            if clean:
                abort_file.remove(self.config.store_path_root_dir, self._parts.disk)
        except OSError as error:
            log.error("This shutdown counts as a crash: %s", error)
        finally:
            self._lock.release()

    # -- append -----------------------------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether messages are taken."""
        return self.flags.writable

    @property
    def why_not_writable(self) -> str:
        """The reasons in words; empty while writable."""
        return self.flags.why

    def append(self, message: Message, *, reserved: bool = False, told: bool = True) -> Appended:
        """Append one message. Raises NotWritable, DiskFull, StoreClosed, RecordTooLarge, QueueNotReady: none stored.

        `reserved`: also where the disk is too full for messages, into the reserve of the newest log file. `told`:
        whether somebody will look for it in its queue at once; else it is there some milliseconds later.
        """
        begun = time.perf_counter()
        if not self.flags.writable and not (reserved and self.flags.only_disks_full):
            self._refuse()
        try:
            appended = self.commit_log.append(message, reserved=reserved)
        except DiskFull as error:
            raise self._disk_full(error) from error
        self._after_append(begun, 1, appended.size, told=told)
        return appended

    def append_messages(self, messages: Sequence[Message]) -> list[Appended]:
        """Append messages of one or several topics, all or none. Raises as `append`."""
        begun = time.perf_counter()
        if not self.flags.writable:
            self._refuse()
        try:
            appended = self.commit_log.append_messages(messages)
        except DiskFull as error:
            raise self._disk_full(error) from error
        self._after_append(begun, len(appended), sum([one.size for one in appended]))
        return appended

    def append_batch(self, batch: EncodedBatch) -> AppendedBatch:
        """Append a batch that the producer laid out, all or nothing. Raises as `append`, and MalformedBatch."""
        begun = time.perf_counter()
        if not self.flags.writable:
            self._refuse()
        self.commit_log.writer = self.batch_writer
        try:
            appended = self.commit_log.append_batch(batch)
        except DiskFull as error:
            raise self._disk_full(error) from error
        self._after_append(begun, appended.count, appended.end_offset - appended.physical_offsets[0])
        return appended

    def append_replica(self, offset: int, *pieces: memoryview) -> None:
        """Append bytes of the master's log, on a slave. Raises as `Replica.append`."""
        begun, before = time.perf_counter(), self.commit_log.max_offset
        try:
            self.replica.append(offset, *pieces)
        finally:
            self._after_append(begun, 0, self.commit_log.max_offset - before)

    @property
    def batch_writer(self) -> BatchWriter:
        """What measures and lays out encoded batches: the best there is at present."""
        return self._parts.walkers.batch_writer()

    def _refuse(self) -> NoReturn:
        if self._closed:
            raise StoreClosed("The store has been shut down.")
        if self.flags.holds(Reason.LOG_DISK_FULL):
            raise DiskFull(
                f"No messages are taken: {self.flags.why}.", remedy="Free disk space; sends go on by themselves."
            )
        refused = NotWritable(f"No messages are taken: {self.flags.why}.", remedy="Reads go on; see the store's log.")
        refused.master_address = self.replica.elsewhere
        raise refused

    def _disk_full(self, error: DiskFull) -> DiskFull:
        if self.flags.set(Reason.LOG_DISK_FULL, error.message.rstrip(".")):
            log.error("No more messages are taken: %s", error)
            self._parts.timers.call_later(1.0, self._try_disk_again)
        return error

    def _try_disk_again(self) -> None:
        """After a failed allocation: take messages again as soon as the partition has room for a file."""
        usage = self._parts.disk.usage(self.config.store_path_root_dir)
        enough = usage.free > 2 * self.config.mapped_file_size_commit_log
        if self._closed or (enough and usage.used_percent < self.config.disk_space_warning_level_ratio):
            self.flags.clear(Reason.LOG_DISK_FULL)
        else:
            self._parts.timers.call_later(1.0, self._try_disk_again)

    def _after_append(self, begun: float, messages: int, size: int, *, told: bool = True) -> None:
        self.grew(told=told)
        self.observer.appended(time.perf_counter() - begun, messages, size)

    def grew(self, *, told: bool = True) -> None:
        """Tell those who follow the log that there are new records in it. `told`: see `append`."""
        self.grown()  # first, so that what is waited for goes out before queues and index are seen to
        if self._seen_at_once:
            self._dispatcher.kick(told=told)

    # -- flush ------------------------------------------------------------------------------------------------------

    def when_flushed(self, end_offset: int, told: Told) -> None:
        """Tell True when the log is durable up to an offset, now or later; False if that fails or takes too long."""
        self._flush.when_flushed(end_offset, told)

    async def wait_flushed(self, end_offset: int) -> bool:
        """As `when_flushed`, awaited."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._flush.when_flushed(end_offset, settling(future))
        return await future

    def sync_by(self, syncs: Syncs) -> None:
        """Have the log made durable by another thread. Call before anything waits for that."""
        self._flush.sync_by(syncs)

    def flush_next(self) -> None:
        """Have what is in the log at the end of this turn of the loop made durable, for those who will then wait."""
        self._flush.begin_next()

    def flush_soon(self, end_offset: int) -> None:
        """Have the log made durable up to ``end_offset``, for a message nobody waits for (WAIT=false)."""
        self._flush.wait(end_offset)

    @property
    def flushed_offset(self) -> int:
        """Log offset up to which everything is durable."""
        return self._flush.flushed_offset

    def _dispatch_limit(self) -> int:
        return self.commit_log.max_offset if self._seen_at_once else self._flush.flushed_offset

    @property
    def confirm_offset(self) -> int:
        """Log offset up to which messages may be seen: durable with SYNC_FLUSH, confirmed (see `Confirmed`)."""
        return min(self._dispatch_limit(), self._parts.confirmed.limit)

    @property
    def dispatched_offset(self) -> int:
        """Log offset up to which queues and index are complete."""
        return self._dispatcher.position

    @property
    def dispatched(self) -> Event:
        """Records were given to queues, index and all else that is derived from the log."""
        return self._dispatcher.dispatched

    def catch_up(self) -> None:
        """Dispatch now what waits to be: whoever was told of a message finds it in queues, index and offsets."""
        self._dispatcher.catch_up()

    def _on_flushed(self) -> None:
        if not self._seen_at_once:
            self._dispatcher.kick(behind=True)  # answers go out first, and the next group begins
        self.grown()

    def _on_flush_failed(self, error: OSError) -> None:
        self.flags.set(Reason.FLUSH_FAILED, f"the disk failed to make messages durable: {error}")
        self._end_file.forget()
        log.critical("The store is read-only from here on, the disk failed: %s", error)
        self.observer.failed("flush")

    # -- read -------------------------------------------------------------------------------------------------------

    def queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Give a queue, or None where no message has been dispatched to it yet."""
        self._dispatcher.catch_up(told=True)
        queue = self._parts.queues.get(topic, queue_id)
        if queue is not None and queue.corrected_for < self.commit_log.min_offset:
            queue.correct_min_offset(self.commit_log.min_offset)  # retention has not come to it yet
        return queue

    def ensure_queue(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Give a queue, an empty one where there is none, for those who wait for its first message."""
        return self._parts.queues.ensure(topic, queue_id)

    def queues(self) -> Iterable[ConsumeQueue]:
        """All queues; those that were not used yet are looked at one by one, which takes a while."""
        self._dispatcher.catch_up()
        return iter(self._parts.queues)

    def queue_topics(self) -> list[str]:
        """Topics of which a queue is known."""
        self._dispatcher.catch_up()
        return self._parts.queues.topics()

    def queue_ids(self, topic: str) -> list[int]:
        """Ids of the queues of a topic that ever had a message, in order."""
        self._dispatcher.catch_up()
        return self._parts.queues.ids(topic)

    def read_record(self, physical_offset: int, size: int | None = None) -> bytes | None:
        """Give one whole record, of ``size`` if that is known; None where there is none: expired, damaged, another."""
        return self._parts.records.read(physical_offset, size, self.commit_log.max_offset)

    async def touch(self, offsets: Sequence[int]) -> None:
        """Have records that are to be read soon in memory by then; a thread waits for the disk. Best effort."""
        await in_thread(touch_records, self._parts.files, offsets)

    def use_core(self, records: RecordRun | None) -> None:
        """Have many records read by the compiled core; None: by Python."""
        self._parts.record_run = records

    def read_bulk(
        self, queue: ConsumeQueue, offset: int, max_messages: int, max_bytes: int
    ) -> tuple[int, bytes] | None:
        """Number and bytes of many records of a queue, where that is cheap; else None."""
        return read_bulk(self._parts, queue, offset, max_messages, max_bytes, self.confirm_offset)

    def read_tagged(
        self, queue: ConsumeQueue, span: range, wanted: dict[int, bytes], limits: TagLimits
    ) -> TaggedRun | None:
        """Records of a span of a queue with some tags, where that is cheap; else None. See `bulk.read_tagged`."""
        return read_tagged(self._parts, queue, span, wanted, limits, self.confirm_offset)

    def problems(self) -> list[str]:
        """What is wrong with the disk, in words."""
        return [self._retention.problem] if self._retention.problem else []

    def named_records(self, queue: ConsumeQueue) -> NamedRecords:
        """What copies the records that units of a queue name."""
        return NamedRecords(self._parts, queue, self.repairs.is_lost, self.commit_log.max_offset)

    def query_index(self, topic: str, key: str, begin_ms: int, end_ms: int, before: int | None = None) -> Iterator[int]:
        """Physical offsets that may hold ``key``, newest first; the caller compares (see `Index.query`).

        ``before``: what begins at or after that log offset need not be found.
        """
        if before is None or self._dispatcher.position < before:
            self._dispatcher.catch_up()
        index = self._parts.index
        return iter(()) if index is None else index.query(topic, key, begin_ms, end_ms)

    def index_counts(self) -> list[tuple[str, int]]:
        """Name and next entry number of every index file."""
        return [] if self._parts.index is None else self._parts.index.counts()

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """Queue offset of the first message stored at or after ``timestamp_ms``; else the end of the queue."""
        queue = self.queue(topic, queue_id)
        return 0 if queue is None else offset_by_time(self._parts, queue, timestamp_ms, self.commit_log.max_offset)

    @property
    def damage(self) -> list[DamagedRange]:
        """Damaged stretches of the log that are still there."""
        return [known for known in self._parts.damage.ranges if known.kind != "torn"]

    def note_rot(self, begin: int, end: int, reason: str) -> None:
        """Remember that log bytes ``[begin, end)`` are damaged, as a reader found: they are read around now.

        Where the list of damage cannot be written, the store knows it for as long as it runs.
        """
        try:
            self._parts.note_damage(DamagedRange(begin, end, "rot", reason))
        except OSError as error:
            log.error("The list of damage cannot be written: %s", error)
            self.observer.failed("damage")
