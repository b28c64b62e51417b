"""Taking over rebuilt consume queues and index while the store serves.

1. The files are checked and finished up to where dispatch has come, in a thread (`StagedFiles`), then synced.
2. A checkpoint is taken and held: from here on the manifest on disk is true of the present files and of the rebuilt
   ones (`Manifest.for_either`), since both are complete and synced up to its position. So a crash may leave any
   mixture of them in place, and the next start is right without restoring anything.
3. On the event loop, between two dispatches, the last records are added and the directories exchanged: the index, and
   queue by queue, some at a time. The objects stay the same, with all who wait at them.
4. The names are made durable, a checkpoint is taken, the old files are removed.

``tandem.adopted`` in the staging directory says that step 3 has begun. It holds old files from there on; a start that
finds it removes them, after putting in place what a crash has left nameless (`roll_forward`).
"""

import asyncio
import logging
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tandemmq.common.files.exchange import NOT_SUPPORTED
from tandemmq.common.files.replacing import make_dirs
from tandemmq.store.format.staged import FILE_NAME
from tandemmq.store.log.adoption.staged_files import STAGING_PATTERN, StagedFiles
from tandemmq.store.log.dispatch import Dispatcher
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import AdoptionRefused, StoreClosed, disk_error
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.recovery.restoring import Restoring

log = logging.getLogger(__name__)

ADOPTED = "tandem.adopted"
_ASIDE = "replaced"

_LITTLE = 256 << 10
"""So many bytes of log may be left for the event loop to add: some milliseconds, with the readable walker too."""
_ROUNDS = 50
"""After so many rounds the log grows faster than a thread can follow, and the loop does the rest."""
_QUEUES_PER_TURN = 64
"""Of the loop: an exchange and a look at the first unit take some 0.1 ms for a queue."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What was taken over. ``messages``: in the rebuilt files; ``tail_messages``: added by the store."""

    messages: int
    tail_messages: int
    queues: int
    index_entries: int
    position: int
    """Log offset up to which the files were finished before they were put in place."""
    seconds: float


class Adoption:
    """The adoptions of one store's life, one at a time."""

    def __init__(
        self,
        parts: StoreParts,
        flags: RunningFlags,
        dispatcher: Dispatcher,
        checkpointer: Checkpointer,
        restoring: Restoring,
    ) -> None:
        """Do nothing before `start` and `adopt`."""
        self._parts = parts
        self._flags = flags
        self._dispatcher = dispatcher
        self._checkpointer = checkpointer
        self._restoring = restoring
        self._task: asyncio.Task[Adopted] | None = None
        self._clearing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to remove what an adoption that was interrupted has left behind."""
        found = _interrupted(self._parts.config.store_path_root_dir)
        if found:
            self._clearing = asyncio.create_task(self._clear(found), name="old derived files")

    async def stop(self) -> None:
        """Give up an adoption, which leaves the store as it was, or with some queues taken over and others not yet."""
        tasks = [task for task in (self._task, self._clearing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def running(self) -> bool:
        """Whether an adoption is under way."""
        return self._task is not None and not self._task.done()

    async def adopt(self, name: str) -> Adopted:
        """Take over the rebuilt files in the directory ``name`` of the store's directory. Goes on if its caller ends.

        Raises:
            AdoptionRefused, BadStagingName, NoStaging, UnusableStaging: nothing was changed.
            NotWritable: the disk refused; what is in use is complete.
            FlushFailed: the disk has failed; the store is read-only from here on.
            StoreClosed: the store is being shut down.
        """
        if self._flags.holds(Reason.CLOSED):
            raise StoreClosed("The store has been shut down.")
        self._check(self.running)
        self._task = task = asyncio.create_task(self._run(name), name="adoption")
        task.add_done_callback(_log_outcome)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise StoreClosed("The store is being shut down; the rebuilt files were not all taken over.") from None
            raise
        except OSError as error:
            raise disk_error(error, f"The rebuilt files in {name} cannot be taken over") from error

    def _check(self, running: bool = False) -> None:
        """Raises AdoptionRefused."""
        if running or self._restoring.running or not self._checkpointer.complete:
            raise AdoptionRefused(
                "Rebuilt files cannot be taken over while others are, or while the store restores its own.",
                remedy="Try again when that is over.",
            )

    async def _run(self, name: str) -> Adopted:
        await self._restoring.looked()  # a queue that has lost files is restored first
        self._check()
        begun = time.monotonic()
        staged = await in_thread(StagedFiles.open, self._parts, name, self._dispatcher.position)
        try:
            await self._catch_up(staged)
            async with self._checkpointer.held():
                # To the position of that checkpoint at least: what is below it is not walked again after a power cut.
                await in_thread(staged.catch_up, self._dispatcher.position)
                await in_thread(staged.sync)
                # One that is true whichever files a crash leaves in place.
                bounds, index = staged.bounds(), staged.index is not None
                await self._checkpointer.rewrite(lambda manifest: manifest.for_either(bounds, index=index))
                await self._catch_up(staged)
                adopted = await self._put_in_place(staged, begun)
            await self._checkpointer.take()
        finally:
            staged.close()
        await in_thread(_remove, staged.directory)
        return adopted

    async def _catch_up(self, staged: StagedFiles) -> None:
        for _ in range(_ROUNDS):
            position = self._dispatcher.position
            if position - staged.position <= _LITTLE:
                return
            await in_thread(staged.catch_up, position)

    # -- putting in place ---------------------------------------------------------------------------------------------

    async def _put_in_place(self, staged: StagedFiles, begun: float) -> Adopted:
        await in_thread(_rename_mark, self._parts.disk, staged.directory, FILE_NAME, ADOPTED)
        try:
            staged.catch_up(self._dispatcher.position)
            entries = self._replace_index(staged)
        except BaseException:
            await in_thread(_rename_mark, self._parts.disk, staged.directory, ADOPTED, FILE_NAME)
            raise
        position, waiting, queues = staged.position, list(staged.bounds()), 0
        while waiting:
            # In one turn of the loop: nothing is dispatched between the last record added and the exchange.
            staged.catch_up(self._dispatcher.position)
            for key in waiting[:_QUEUES_PER_TURN]:
                self._replace_queue(staged, key)
                queues += 1
            waiting = list(staged.bounds())
            await asyncio.sleep(0)
        await in_thread(self._sync_names)
        manifest, seconds = staged.manifest, time.monotonic() - begun
        log.info(
            "Took over %d consume queues and %d index entries, complete up to log offset %d, in %.2f s",
            queues, entries, position, seconds,
        )  # fmt: skip
        return Adopted(manifest.messages, staged.tail_messages, queues, entries, position, seconds)

    def _replace_index(self, staged: StagedFiles) -> int:
        fresh, present = staged.index, self._parts.index
        if fresh is None or present is None:
            return 0
        _put(self._parts.disk, fresh.directory, present.directory, staged.directory)
        present.take_over(fresh)
        staged.index = None
        return sum(count - 1 for _, count in present.counts())

    def _replace_queue(self, staged: StagedFiles, key: QueueKey) -> None:
        parts = self._parts
        fresh, present = staged.queues.ensure(*key), parts.queues.ensure(*key)
        staged.keep_end(present)
        _put(parts.disk, fresh.directory, present.directory, staged.directory)
        present.take_over(fresh, parts.files.files[0].start if parts.files.files else 0)
        parts.offsets.raise_to(key, present.max_offset)
        staged.let_go(key)

    def _sync_names(self) -> None:
        """Make the exchange durable; in a thread."""
        config, disk = self._parts.config, self._parts.disk
        for topic in config.consume_queue_dir.iterdir():
            if topic.is_dir():
                disk.sync_dir(topic)
        disk.sync_dir(config.consume_queue_dir)
        disk.sync_dir(config.store_path_root_dir)

    async def _clear(self, directories: list[Path]) -> None:
        for directory in directories:
            await in_thread(_remove, directory)


def _log_outcome(task: "asyncio.Task[Adopted]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        level = logging.WARNING if isinstance(error, AdoptionRefused) else logging.ERROR
        log.log(level, "Rebuilt files were not taken over: %s", error)


def _put(disk: Disk, fresh: Path, present: Path, staging: Path) -> None:
    """Put directory ``fresh`` in the place of ``present``: atomically where the system can, else by two renames.

    Raises:
        OSError: it could not be done; ``present`` is in its place.
    """
    if not present.is_dir():
        make_dirs(disk, present.parent)
        disk.rename(fresh, present)
        return
    try:
        disk.exchange(fresh, present)
        return
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
    aside = staging / _ASIDE / fresh.relative_to(staging)
    make_dirs(disk, aside.parent)
    disk.rename(present, aside)
    try:
        disk.rename(fresh, present)
    except OSError:
        disk.rename(aside, present)
        raise


def _rename_mark(disk: Disk, directory: Path, before: str, after: str) -> None:
    disk.rename(directory / before, directory / after)
    disk.sync_dir(directory)


def _remove(directory: Path) -> None:
    """Remove a staging directory, its mark last: what is left of it is removed by the next start."""
    try:
        for path in directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != ADOPTED:
                path.unlink()
        with suppress(FileNotFoundError):
            (directory / ADOPTED).unlink()
        directory.rmdir()
    except OSError as error:
        log.warning("Old consume queues and index stay behind in %s: %s", directory, error)


def _interrupted(root: Path) -> list[Path]:
    """The staging directories whose files were being put in place; a job may yet go on with any other."""
    return [path for path in root.glob(STAGING_PATTERN) if not path.is_symlink() and (path / ADOPTED).is_file()]


def roll_forward(root: Path, disk: Disk) -> None:
    """Put in place what a crash between two renames has left nameless; before queues and index are looked at.

    Only where the system cannot exchange names. The rebuilt files were complete and synced up to the manifest's
    position, as those were that they replace.
    """
    for staging in _interrupted(root):
        aside = staging / _ASIDE
        for replaced in [aside / "index", *aside.glob("consumequeue/*/*")]:
            name = replaced.relative_to(aside)
            fresh, present = staging / name, root / name
            if replaced.is_dir() and fresh.is_dir() and not present.exists():
                make_dirs(disk, present.parent)
                disk.rename(fresh, present)
                disk.sync_dir(present.parent)
                log.warning("%s was being replaced when the store was killed; the rebuilt one is in its place", present)
