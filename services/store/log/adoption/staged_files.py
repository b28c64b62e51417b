"""Rebuilt consume queues and index in their staging directory: checked, and finished up to where the store has come.

A Spark job has left them there with `StagedManifest`. Everything here is the caller's alone; the store's own objects
are read only. All methods block, and may be called in a thread.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tandemmq.common.files.replacing import create_file, make_dirs
from tandemmq.store.format.record import BLANK_SIZE
from tandemmq.store.format.record_fields import has_blank_magic
from tandemmq.store.format.staged import FILE_NAME, StagedManifest, UnreadableStagedManifest
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE, Unit, is_blank, is_empty, pack_unit
from tandemmq.store.log.errors import BadStagingName, NoStaging, UnusableDirectory, UnusableStaging
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.index.index_recovery import cut_to
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.consume_queue_store import ConsumeQueueStore
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.segments.scan import LogScan, Step

STAGING_PATTERN = "tandem.rebuild*"
TAIL = "tandem.tail"
"""There once the store has begun to write into the files: they may hold more than their manifest says."""

_NAME = re.compile(r"tandem\.rebuild[A-Za-z0-9._-]{0,64}")
_WORTH_LOADING = 1 << 20
_REMEDY = "Rebuild again: tandem data rebuild."


class StagedFiles:
    """The rebuilt files of one staging directory. ``position``: log offset up to which they are complete."""

    def __init__(self, parts: StoreParts, directory: Path, manifest: StagedManifest) -> None:
        """Stand before files that nobody has looked at; use `open`."""
        self._parts = parts
        self.directory = directory
        self.manifest = manifest
        self.position = manifest.end
        self.tail_messages = 0
        staged_config = replace(parts.config, store_path_root_dir=directory)
        self.queues = ConsumeQueueStore(staged_config, parts.disk)
        self.index: Index | None = None
        self._topics = {topic for topic, _ in manifest.queues}
        self._gone: set[QueueKey] = set()

    @classmethod
    def open(cls, parts: StoreParts, name: str, dispatched: int) -> "StagedFiles":
        """Check the directory ``name`` below the store's; ``dispatched`` is where the store's own files end.

        Raises:
            BadStagingName, NoStaging, UnusableStaging: see there. OSError: the disk refused.
        """
        directory = _find(parts.config.store_path_root_dir, name)
        manifest = _read_manifest(directory)
        _check(parts, manifest, dispatched)
        staged = cls(parts, directory, manifest)
        tail = directory / TAIL
        untouched = not tail.exists()
        if untouched:
            create_file(parts.disk, tail, tail.with_name(TAIL + ".tmp"), lambda _: None)
        try:
            staged._open_queues()
            staged._open_index(tidy=untouched)
        except UnusableDirectory as error:
            raise UnusableStaging(
                f"The rebuilt files in {directory} cannot be used: {error}", remedy=_REMEDY
            ) from error
        return staged

    def close(self) -> None:
        """Let go of the files."""
        self.queues.close()
        self.index = None

    # -- looking ----------------------------------------------------------------------------------------------------

    def _open_queues(self) -> None:
        named = self.manifest.queues
        parent = _real_directory(self.directory / "consumequeue") if named else self.directory / "consumequeue"
        make_dirs(self._parts.disk, parent)
        for topic in parent.iterdir():
            for queue in topic.iterdir() if topic.is_dir() and not topic.is_symlink() else ():
                if not queue.name.isdigit() or (topic.name, int(queue.name)) not in named:
                    shutil.rmtree(queue)  # what an earlier try has made of the tail
        for key, (first, end) in named.items():
            if first < end:
                self._open_queue(key, first, end)

    def _open_queue(self, key: QueueKey, first: int, end: int) -> None:
        topic, queue_id = key
        if topic in ("", ".", "..") or "/" in topic or queue_id < 0 or first < 0:
            raise UnusableStaging(f"{topic!r} with queue {queue_id} is no queue of a store.", remedy=_REMEDY)
        queue = self.queues.ensure(topic, queue_id)
        _real_directory(queue.directory.parent)
        _real_directory(queue.directory)
        queue.load()
        room = queue.first_offset_on_disk + len(queue.files) * queue.units_per_file
        if not queue.files or queue.has_missing_file or not queue.first_offset_on_disk <= first < end <= room:
            raise UnusableStaging(
                f"The files in {queue.directory} are not all there for the messages {first:,} to {end:,}.",
                remedy=_REMEDY,
            )
        for offset in (first, end - 1):
            if not self._is_of_log(queue.unit(offset), (topic, queue_id, offset)):
                raise UnusableStaging(
                    f"Message {offset:,} of {queue.directory} is another one in the store's log.", remedy=_REMEDY
                )
        queue.min_offset = first
        queue.end_at(end)
        queue.clear_beyond_end()
        queue.correct_min_offset(_log_min(self._parts))

    def _is_of_log(self, unit: Unit | None, name: tuple[str, int, int]) -> bool:
        """Whether the log has that message where the unit says; True where it has expired or is damaged."""
        parts = self._parts
        if unit is None or is_empty(unit) or unit.physical_offset >= self.manifest.end:
            return False
        at = unit.physical_offset
        if is_blank(unit) or at < _log_min(parts) or parts.damage.covering(at) is not None:
            return True
        record = parts.records.placed(at)
        return record is None or (record.topic, record.queue_id, record.queue_offset) == name

    def _open_index(self, *, tidy: bool) -> None:
        counts, present = self.manifest.index, self._parts.index
        if counts is None or present is None:
            return
        parts = self._parts
        directory = self.directory / "index"
        if counts:
            _real_directory(directory)
        index = Index(directory, present.slots, present.entries, parts.disk, parts.clock, parts.walkers)
        index.load()
        if not cut_to(index, counts, self._store_time, parts.walkers, tidy=tidy):
            raise UnusableStaging(f"The files in {directory} are not those that were built.", remedy=_REMEDY)
        for file, (name, count) in zip(index.files, counts, strict=True):
            if count > 1 and file.entry_offset(count - 1) >= self.manifest.end:
                raise UnusableStaging(f"{directory / name} has entries of messages to come.", remedy=_REMEDY)
        index.position = self.manifest.end
        self.index = index

    def _store_time(self, physical_offset: int) -> int | None:
        record = self._parts.records.placed(physical_offset)
        return None if record is None else record.store_timestamp

    # -- finishing --------------------------------------------------------------------------------------------------

    def catch_up(self, limit: int) -> None:
        """Add what the log holds up to ``limit``, where a record ends.

        Raises:
            UnusableStaging: the log cannot be read up to there. DiskFull, OSError: the files cannot be written.
        """
        parts = self._parts
        walkers = parts.walkers
        scan = LogScan(
            parts.files,
            walkers.load() if limit - self.position > _WORTH_LOADING else walkers.best,
            parts.damage,
            check_crc=False,
            delay_levels=parts.config.message_delay_levels,
        )
        while self.position < limit:
            step = scan.step(self.position, limit)
            if step.torn_at >= 0 or (step.finished and step.position < limit):
                raise UnusableStaging(f"The log cannot be read from offset {step.position:,} to {limit:,}.")
            self._put(step)
            self.position = step.position

    def _put(self, step: Step) -> None:
        walk = step.walk
        if walk is None or not walk.count:
            return
        if self.index is not None:
            self.index.take(walk, step.position)
        for run in self.queues.nameable(walk.runs()):
            if self._takes(run.topic, run.queue_id):
                queue = self.queues.ensure(run.topic, run.queue_id)
                queue.append_run(run.first_queue_offset, run.units, run.last_end_physical)
        self.tail_messages += walk.count

    def _takes(self, topic: str, queue_id: int) -> bool:
        return (self.manifest.all_topics or topic in self._topics) and (topic, queue_id) not in self._gone

    def let_go(self, key: QueueKey) -> None:
        """A queue has been put in place: it is dispatched to from here on, and no affair of this any more."""
        self.queues.forget(*key)
        self._gone.add(key)

    def keep_end(self, present: ConsumeQueue) -> None:
        """Make a queue as long as the one that it will replace: numbers that were given away are not given again.

        What it lacks was in the log once and is damaged now, or it is yet to be dispatched a second time, the first one
        having failed: such units are kept. Any other place becomes a blank.
        """
        staged = self.queues.ensure(present.topic, present.queue_id)
        while staged.files and staged.max_offset < present.max_offset:
            offset = staged.max_offset
            try:
                unit = present.unit(offset)
            except FileNotFoundError:  # somebody has removed what is to be replaced
                unit = None
            keep = unit is not None and not is_empty(unit) and not is_blank(unit) and self._may_be(unit)
            staged.put(offset, pack_unit(*unit) if unit is not None and keep else BLANK_UNIT)
            staged.end_at(offset + 1)

    def _may_be(self, unit: Unit) -> bool:
        if unit.physical_offset >= self.position or self._parts.damage.covering(unit.physical_offset) is not None:
            return True
        return any(known["begin"] <= unit.physical_offset < known["end"] for known in self.manifest.damage)

    # -- for a crash --------------------------------------------------------------------------------------------------

    def bounds(self) -> dict[QueueKey, tuple[int, int]]:
        """First and next offset of every queue that has files."""
        return {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in self.queues if q.files}

    def sync(self) -> None:
        """Make everything that was added durable, and the names of the files too."""
        disk = self._parts.disk
        for queue in self.queues:
            for path in queue.take_dirty().files:
                _sync(self._parts, path)
        for directory in self._directories():
            disk.sync_dir(directory)
        if self.index is not None:
            for file in self.index.files:
                if file.dirty:
                    file.file.sync()
                    file.dirty = False

    def _directories(self) -> Iterator[Path]:
        topics = set()
        for queue in self.queues:
            if queue.files:
                topics.add(queue.directory.parent)
                yield queue.directory
        yield from topics
        if topics:
            yield self.directory / "consumequeue"
        if self.index is not None:
            yield self.index.directory
        yield self.directory


def _sync(parts: StoreParts, path: Path) -> None:
    fd = parts.disk.open(path, os.O_RDWR)
    try:
        parts.disk.sync(fd)
    finally:
        os.close(fd)


def _find(root: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise BadStagingName(
            f"{name!r} is no staging directory: it is the name of one in the store's directory, tandem.rebuild with an "
            "ending of letters, digits, dots, dashes and underscores."
        )
    directory = root / name
    if directory.is_symlink() or not directory.is_dir():
        raise NoStaging(f"There is no directory {directory}.", remedy="The job must write into this store's directory.")
    return directory


def _real_directory(path: Path) -> Path:
    if path.is_symlink() or not path.is_dir():
        raise UnusableStaging(f"{path} is missing, or no directory of its own.", remedy=_REMEDY)
    return path


def _read_manifest(directory: Path) -> StagedManifest:
    try:
        return StagedManifest.decode((directory / FILE_NAME).read_bytes())
    except FileNotFoundError:
        raise UnusableStaging(
            f"{directory} has no {FILE_NAME}: the rebuild has not finished.", remedy="Let it finish, or resume it."
        ) from None
    except UnreadableStagedManifest as error:
        raise UnusableStaging(f"{directory}: {error}.", remedy=_REMEDY) from error


def _check(parts: StoreParts, manifest: StagedManifest, dispatched: int) -> None:
    config, index = parts.config, parts.index
    sizes = [("mappedFileSizeConsumeQueue", manifest.consume_queue_file_size, _queue_file_size(parts))]
    if manifest.index is not None and index is not None:
        sizes.append(("maxHashSlotNum", manifest.index_slots, index.slots))
        sizes.append(("maxIndexNum", manifest.index_entries, index.entries))
    for setting, theirs, ours in sizes:
        if theirs != ours:
            raise UnusableStaging(
                f"The files were rebuilt for {setting} {theirs:,}, but this store's is {ours:,}.", remedy=_REMEDY
            )
    log_min = _log_min(parts)
    if manifest.begin > log_min:
        raise UnusableStaging(
            f"The rebuilt files begin at log offset {manifest.begin:,}, the log at {log_min:,}.", remedy=_REMEDY
        )
    if not manifest.begin <= manifest.end <= dispatched:
        raise UnusableStaging(
            f"The rebuilt files end at log offset {manifest.end:,}, but this store's queues and index at "
            f"{dispatched:,}.",
            remedy="Rebuild up to dispatched_offset of GetLog at most.",
        )
    end = manifest.end
    if end > log_min and end != dispatched and end % config.mapped_file_size_commit_log and not _begins(parts, end):
        raise UnusableStaging(f"No record begins at log offset {end:,}, where the rebuilt files end.", remedy=_REMEDY)


def _queue_file_size(parts: StoreParts) -> int:
    return parts.config.mapped_file_size_consume_queue // UNIT_SIZE * UNIT_SIZE


def _begins(parts: StoreParts, offset: int) -> bool:
    """Whether a record begins at ``offset``, or the blank at the end of a file, or damage is known there."""
    if parts.records.placed(offset) is not None or parts.damage.covering(offset) is not None:
        return True
    file = parts.files.find(offset)
    return file is None or file.end - offset < BLANK_SIZE or has_blank_magic(file.map, offset - file.start)


def _log_min(parts: StoreParts) -> int:
    return parts.files.files[0].start if parts.files.files else 0
