"""Start-up: find the end of the log, make the derived files agree with it, and say what was lost or restored.

Before the store serves, only what lies after the checkpoint is read (`docs/ARCHITECTURE.md`, "Recovery"):

1. where to begin: the manifest's position if the manifest is current, else a file chosen by the checkpoint's times;
2. consume queues get their end as of that place;
3. the log is walked from there with checksums; every record goes to its queue and to the index;
4. a torn tail is cut (copied to ``broken/``, zeroed, synced); rot is remembered and read around;
5. what was found missing (a queue, a stretch of the index, a manifest) is left to `rebuild`, while the store serves.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tandemmq.store.log.edges.disk import is_zero
from tandemmq.store.log.errors import FlushFailed, UnusableDirectory
from tandemmq.store.log.index.index_recovery import recover_index
from tandemmq.store.log.parts import RecoveryReport, StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.consume_queue_store import Bounds
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.queues.queue_recovery import QueueRecovery, has_units_behind, keep_changed
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.recovery.file_problems import FileProblem
from tandemmq.store.log.recovery.missing_files import MISSING, QUEUES, believed, find_missing
from tandemmq.store.log.segments.examining import examine
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.scan import LogScan, Step
from tandemmq.store.log.segments.tail import cut_tail

log = logging.getLogger(__name__)
_PROGRESS_SECONDS = 1.0
_DAY_MS = 86_400_000
_SAMPLE, _SAMPLE_EVERY = 4_096, 1 << 20


class Recovery:
    """One run of recovery over the parts of a store that is not serving yet."""

    def __init__(
        self,
        parts: StoreParts,
        given: Mapping[QueueKey, Bounds],
        *,
        clean_exit: bool,
        doubt: str = "",
        reached: int = 0,
    ) -> None:
        """Prepare; `run` does it. ``doubt``: what is not certain of the log's end; it is noted.

        ``given``: what a manifest knows of the queues, whether it is current or not: numbers never go back below that.
        ``reached``: how far the log of a killed store had come, where that is known (`reached_end`).
        """
        self._parts = parts
        self._given = given
        self._reached = reached
        self._report = RecoveryReport(clean_exit=clean_exit, notes=[doubt] if doubt else [])
        self._last_progress = time.monotonic()
        self._over = False

    def run(self) -> RecoveryReport:
        """Recover; afterwards log, queues, index and offsets agree, but for what the report says is to be rebuilt.

        Raises FlushFailed.
        """
        parts, report = self._parts, self._report
        begun = time.monotonic()
        self._check_manifest()
        back = self._note_missing_files()
        self._forget_what_was_overwritten()
        report.began_at = begin = self._starting_point()
        total = max(0, (parts.files.last.end if parts.files.last else 0) - begin)
        queues = QueueRecovery(parts.queues, parts.offsets, parts.manifest if report.manifest_current else None)
        parts.queues.open = lambda queue: self._open(queue, queues)
        parts.queues.unusable = self._set_aside
        queues.prepare(begin, self._record_fits)
        for queue in parts.queues if back else ():
            queue.min_offset = queue.first_offset_on_disk  # what was not readable may be again
        index_begin = recover_index(parts, begin, report, self._store_time)
        end = self._walk(begin, index_begin, total, queues)
        report.ended_at = end
        self._know_a_store_time()
        if any(known.end > self._recorded for known in parts.damage.ranges):
            queues.keep_numbers_of_damaged(parts.damage)
        report.cut_bytes = cut_tail(parts, end, report.damage)
        self._make_durable(begin)
        self._tell_units_behind(parts.queues.opened)
        if not (report.clean_exit and report.manifest_current and report.records == 0):
            for queue in parts.queues.opened:
                queue.clear_beyond_end()
        queues.finish(
            self._log_min(), self._given, whole_log=begin <= self._log_min(), ours=self._manifest_is_of_this_log
        )
        report.queues_to_rebuild = sum(queue.rebuilding for queue in parts.queues.opened)
        self._over = True
        report.damage.sort(key=lambda found: found.begin)  # missing files were found before the rest was read
        if report.damage or parts.damage.changed:
            parts.damage.save()
        for damage in report.damage:
            parts.observer.damaged(damage.kind, damage.end - damage.begin)
            log.warning("Damage in the commit log: %s", damage)
        self._tell_problems()
        report.seconds = time.monotonic() - begun
        log.info(
            "Recovered the log from offset %d to %d: %d records in %.2f s (%s exit%s)",
            begin, end, report.records, report.seconds,
            "clean" if report.clean_exit else "unclean",
            "" if report.manifest_current else ", no current manifest",
        )  # fmt: skip
        return report

    def _open(self, queue: ConsumeQueue, queues: QueueRecovery) -> None:
        """Make a queue ready that is used for the first time: during the walk, or when the store serves.

        Raises:
            OSError: its files cannot be looked at.
        """
        parts = self._parts
        try:
            queue.load()
        except UnusableDirectory as error:
            self._set_aside(queue, error)
        queues.find_end(queue)
        if not self._over:
            return
        self._tell_units_behind([queue])
        queue.clear_beyond_end()
        queue.correct_min_offset(self._log_min())
        if queue.rebuilding:
            log.warning(
                "Consume queue %d of topic %s lacks files, or its last unit is wrong; it is being rebuilt",
                queue.queue_id, queue.topic,
            )  # fmt: skip
            parts.queues.lost()

    def _set_aside(self, queue: ConsumeQueue, error: UnusableDirectory) -> None:
        """Keep the files of a queue that cannot be used where they are in nobody's way. Raises OSError."""
        kept = self._parts.queues.set_aside(queue)
        problem = FileProblem(QUEUES, f"{error.message} The queue is kept as {kept}, and made anew from the log")
        self._parts.problems.append(problem)
        if self._over:
            self._tell_problem(problem)

    def _tell_units_behind(self, queues: Iterable[ConsumeQueue]) -> None:
        """Say that queues know messages that the log does not have: their records have changed, or lay after its end.

        Where another broker has written since the manifest, units may be left of a log that it has cut.
        """
        end = self._report.ended_at
        for queue in queues if self._manifest_is_of_this_log else ():
            keep_changed(self._parts, queue, self._report.began_at, end)
        known = [queue for queue in queues if has_units_behind(queue, end)]
        if known:
            which = ", ".join(f"{queue.topic}/{queue.queue_id} from {queue.max_offset:,} on" for queue in known[:10])
            note = f"the log ends at {end:,}, but {len(known)} queues knew of messages beyond that: {which}"
            self._report.notes.append(note)
            log.warning("Messages are gone: %s", note)

    def _tell_problems(self) -> None:
        for problem in self._parts.problems:
            self._tell_problem(problem)

    def _tell_problem(self, problem: FileProblem) -> None:
        self._report.notes.append(str(problem))
        self._parts.observer.unusable(problem.file)
        log.warning("%s", problem)

    def _make_durable(self, begin: int) -> None:
        """Sync the part of the log that was read: what a killed process left in the page cache is not on disk yet.

        Only then may these records be seen, and count as flushed; a power cut would take them back.

        Raises:
            FlushFailed: the disk refused.
        """
        if not self._report.manifest_current:
            for queue in self._parts.queues:
                queue.mark_dirty()
            if self._parts.index is not None:
                self._parts.index.mark_dirty()
        elif not self._report.clean_exit:
            for queue in self._parts.queues.opened:
                queue.mark_names()
        if not self._report.records:
            return
        try:
            for file in self._parts.files:
                if file.end > begin:
                    file.sync()
        except OSError as error:
            raise FlushFailed(f"The recovered part of the commit log cannot be made durable: {error}.") from error

    def _know_a_store_time(self) -> None:
        """Where the log holds no record that tells the newest store time, take the checkpoint's, if it can be true."""
        newest = self._parts.checkpoint.value.logics
        if not self._report.last_store_timestamp and 0 < newest <= self._parts.clock.now_ms() + _DAY_MS:
            self._report.last_store_timestamp = newest

    @property
    def _recorded(self) -> int:
        """Log offset up to which the manifest knows the queues; 0 where none is current."""
        manifest = self._parts.manifest
        return manifest.position if self._report.manifest_current and manifest is not None else 0

    @property
    def _manifest_is_of_this_log(self) -> bool:
        """Whether nobody else has written since the manifest, and the log has what it knows."""
        last, manifest = self._parts.files.last, believed(self._parts.manifest, self._parts.checkpoint)
        return manifest is not None and manifest.position <= (last.end if last is not None else 0)

    @property
    def _walks_all(self) -> bool:
        """Whether the whole log is to be read: it is wanted, or the list of its damage is lost."""
        return self._parts.config.verify_whole_log_on_start or self._parts.damage.is_lost

    def _log_min(self) -> int:
        return self._parts.files.files[0].start if self._parts.files.files else 0

    # -- where to begin ---------------------------------------------------------------------------------------------

    def _check_manifest(self) -> None:
        manifest, value, files = self._parts.manifest, self._parts.checkpoint.value, self._parts.files
        self._report.manifest_current = self._manifest_is_of_this_log and not self._walks_all
        if self._report.manifest_current and manifest is not None:
            # Of what will not be walked. After a crash between the two files, the manifest's times are the newer ones.
            self._report.last_store_timestamp = max(value.logics, *manifest.checkpoint)
        if self._parts.checkpoint.problem and files.files and not self._report.manifest_current:
            self._report.notes.append(f"{self._parts.checkpoint.problem}: more of the log is read than usual")
            log.warning("%s; more of the log is read than usual", self._parts.checkpoint.problem)

    def _forget_what_was_overwritten(self) -> None:
        """Drop known damage, or those parts of it, where records stand by now.

        RocketMQ cuts a log at damage, and writes on there; a bit may have been wrong for a while only.

        With a current manifest nobody has. Valid records are there all the same where a repair was killed, which does
        not count before their queue units and index entries are there too; the next repair sees to that.
        """
        if self._report.manifest_current:
            return
        end = self._parts.files.files[-1].end if self._parts.files.files else 0
        for known in list(self._parts.damage.ranges):
            if known.kind != "rot":
                continue
            left = self._left_of(known, end)
            if left != [(known.begin, known.end)]:
                self._parts.damage.forget(known)
                self._report.index_complete = False
                for begin, behind in left:
                    self._parts.damage.add(replace(known, begin=begin, end=behind))

    def _left_of(self, known: DamagedRange, limit: int) -> list[tuple[int, int]]:
        """The stretches of a damaged range that are damaged still."""
        left, at = list[tuple[int, int]](), known.begin
        while at < known.end:
            found = examine(self._parts, at, known.end, limit=limit, fresh=True).damage
            if found is None:
                return left
            at = known.end if found.kind == "torn" else min(found.end, known.end)
            left.append((found.begin, at))
        return left

    def _note_missing_files(self) -> bool:
        """Let the list of damage name the log files that are missing now; True where some have come back."""
        damage, report = self._parts.damage, self._report
        before = [known for known in damage.ranges if known.kind == MISSING]
        manifest = believed(self._parts.manifest, self._parts.checkpoint)
        now = find_missing([file.start for file in self._parts.files], self._parts.files.file_size, before, manifest)
        places = {(found.begin, found.end) for found in now}
        back = [known for known in before if (known.begin, known.end) not in places]
        for known in back:
            damage.forget(known)
        report.damage += [found for found in now if damage.add(found)]
        return bool(back)

    def _starting_point(self) -> int:
        files, manifest = self._parts.files.files, self._parts.manifest
        if not files:
            return 0
        if self._report.manifest_current and manifest is not None:
            return max(manifest.position, files[0].start)
        if self._walks_all:
            return files[0].start
        until = self._parts.checkpoint.trusted_until(self._parts.clock.now_ms())
        for file in reversed(files):
            first = self._first_store_time(file)
            if first and (self._report.clean_exit or first <= until):
                return file.start
        return files[0].start

    def _first_store_time(self, file: MappedFile) -> int:
        """Store time of a file's first record, 0 where it has none that is whole."""
        record = self._parts.records.decoded(file.start, verify=True)
        return 0 if record is None else record.store_timestamp

    # -- the walk ---------------------------------------------------------------------------------------------------

    def _walk(self, begin: int, index_begin: int, total: int, queues: QueueRecovery) -> int:
        """Walk to the end of the log, dispatching as it goes; gives the end."""
        parts, config = self._parts, self._parts.config
        scan = LogScan(
            parts.files,
            parts.walkers.for_bytes(self._bytes_to_read(min(begin, index_begin))),
            parts.damage,
            check_crc=config.check_crc_on_recover,
            delay_levels=config.message_delay_levels,
            force_crc_property=config.force_verify_prop_crc,
            durable=self._durable,
        )
        if parts.index is not None and index_begin < begin:
            for step in scan.steps(index_begin, begin):
                if step.walk is not None:
                    parts.index.put(step.walk)
        end = begin
        for step in scan.steps(begin):
            self._take(step, queues, max(begin, index_begin))
            end = step.torn_at if step.torn_at >= 0 else step.position
            self._progress(end - begin, total)
        if parts.index is not None:
            parts.index.position = end
        parts.observer.recovering("log", total, total)
        return end

    @property
    def _durable(self) -> int:
        """Log offset below which all was there once. A slave's log may be cut all the same: its master sends it."""
        manifest = believed(self._parts.manifest, self._parts.checkpoint)
        known = 0 if manifest is None or self._parts.mastership.is_slave else manifest.position
        return max(known, self._reached)

    def _take(self, step: Step, queues: QueueRecovery, index_from: int) -> None:
        parts, report = self._parts, self._report
        if step.walk is not None and step.walk.count:
            report.records += step.walk.count
            report.last_store_timestamp = max(report.last_store_timestamp, step.walk.max_store_timestamp)
            queues.take(step.walk.runs(), parts.damage)
            if parts.index is not None:
                parts.index.put(step.walk, index_from)
        if step.damage is not None and parts.damage.add(step.damage):
            report.damage.append(step.damage)

    def _bytes_to_read(self, begin: int) -> int:
        """A guess at the amount of log after ``begin``: up to the first sample of a file that is all zeros."""
        amount = 0
        for file in self._parts.files:
            for at in range(max(begin - file.start, 0), file.size, _SAMPLE_EVERY):
                if is_zero(file.map[at : at + _SAMPLE]):
                    break
                amount += _SAMPLE_EVERY
        return amount

    def _progress(self, done: int, total: int) -> None:
        self._parts.observer.recovering("log", done, total)
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_SECONDS:
            self._last_progress = now
            log.info("Recovering: %d of %d MiB of the log read", done >> 20, total >> 20)

    # -- looking things up ------------------------------------------------------------------------------------------

    def _store_time(self, physical_offset: int) -> int | None:
        record = self._parts.records.placed(physical_offset)
        return None if record is None else record.store_timestamp

    def _record_fits(self, topic: str, queue_id: int, queue_offset: int, physical_offset: int) -> bool:
        """Whether the record at ``physical_offset`` is the one that a unit says it is.

        True where the log has expired, or is known to be damaged.
        """
        if self._parts.files.find(physical_offset) is None:
            return self._parts.files.first_from(physical_offset) is not None  # expired, or in a missing file
        if self._parts.damage.covering(physical_offset) is not None:
            return True  # whatever can be read there now, the number was given away once
        return self._parts.records.named(physical_offset, (topic, queue_id), queue_offset) is not None
