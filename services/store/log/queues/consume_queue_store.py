"""All consume queues of a store, by topic and queue id (RocketMQ: ``ConsumeQueueStore``).

Ten thousand of them must not make a start slow. Where a manifest tells the bounds of a queue, its files are looked at
when it is first asked for: it is *unopened* until then.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from tandemmq.common.files.replacing import make_dirs
from tandemmq.common.slices import Slices, each
from tandemmq.store.format.unit import is_queue_name
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.file_cache import FileCache
from tandemmq.store.log.errors import ForeignFile, MisplacedDirectory, UnusableDirectory
from tandemmq.store.log.event import Event
from tandemmq.store.log.observer import Observer
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.replica.confirmed import Confirmed
from tandemmq.store.log.segments.mapped_file_queue import entries_of

log = logging.getLogger(__name__)
_SHOWN = 60
_STRANGE_TOLD = 100
_LOOKS = 2
"""So often what was appended to meanwhile is looked at in slices: it is less each time."""

Bounds = tuple[int, int]
"""First readable and next offset of a queue."""


class ConsumeQueueStore:
    """The consume queues of one store directory."""

    def __init__(
        self,
        config: StoreConfig,
        disk: Disk,
        confirmed: Confirmed | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Stand before an unread directory; `load` reads it. ``confirmed``: what readers of the queues may see."""
        self._observer = observer
        self._directory = config.consume_queue_dir
        self._broken = config.broken_dir / self._directory.name
        self._file_size = config.mapped_file_size_consume_queue
        self._disk = disk
        self._cache = FileCache(disk)
        self._confirmed = confirmed
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._unopened: dict[QueueKey, Bounds] = {}
        self._ids: dict[str, set[int]] = {}  # of both, by topic
        self._strange: set[QueueKey] = set()
        self._appended: set[QueueKey] | None = None
        """Queues that were appended to while the bounds of all are looked at."""
        self.open: Callable[[ConsumeQueue], None] = ConsumeQueue.load
        """Makes a queue that is asked for the first time ready for use."""
        self.opening: list[Callable[[ConsumeQueue], None]] = []
        """Each is told of a queue that has become ready for use, before anybody else has it."""
        self.unusable: Callable[[ConsumeQueue, UnusableDirectory], None] = _refuse
        """What becomes of a queue whose files cannot be used, nor be made anew where they are."""
        self.lost = Event()
        """A queue was opened, and some of its files are gone."""

    def __iter__(self) -> Iterator[ConsumeQueue]:
        """Iterate over all queues, in no particular order, and open them one by one. Raises as `get`."""
        yield from self.opened
        for key in list(self._unopened):
            yield self.ensure(*key)

    def __len__(self) -> int:
        """Count the queues."""
        return len(self._queues) + len(self._unopened)

    @property
    def opened(self) -> list[ConsumeQueue]:
        """Those that were asked for. No other has been changed."""
        return list(self._queues.values())

    def names(self) -> Iterator[QueueKey]:
        """Topic and queue id of all queues."""
        return chain(self._queues, self._unopened)

    def bounds(self) -> dict[QueueKey, Bounds]:
        """The bounds of every queue that ever had a message; of one that is unopened, as the manifest tells them."""
        opened = {key: (queue.min_offset, queue.max_offset) for key, queue in self._queues.items() if queue.max_offset}
        return self._unopened | opened

    async def bounds_in_slices(self, slices: Slices) -> dict[QueueKey, Bounds]:
        """As `bounds`, of the moment in which it returns. One at a time."""
        bounds, queues = dict(self._unopened), self._queues
        self._appended = set()

        def look(key: QueueKey) -> None:
            queue = queues.get(key)
            if queue is not None and queue.max_offset:
                bounds[key] = queue.min_offset, queue.max_offset

        try:
            await each(look, list(queues), slices)
            for _ in range(_LOOKS):
                again, self._appended = list(self._appended), set()
                await each(look, again, slices)
            for key in self._appended:
                look(key)
        finally:
            self._appended = None
        return bounds

    def topics(self) -> list[str]:
        """Topics of which a queue is known."""
        return list(self._ids)

    def ids(self, topic: str) -> list[int]:
        """The queues of a topic that ever had a message."""
        queues = self._queues
        return sorted(
            number
            for number in self._ids.get(topic, ())
            if (queue := queues.get((topic, number))) is None or queue.max_offset
        )

    def load(self, known: Mapping[QueueKey, Bounds] | None = None, *, read_only: bool = False) -> None:
        """Find the queues on disk. Those whose bounds are ``known`` stay unopened, but the settings are tried on one.

        ``read_only`` leaves even the leftovers of a crash where they are, and passes queues over that are `unusable`.

        Raises:
            FileSizeMismatch: a file's size is not what the settings say.
            ForeignFile: a directory or file that no store puts there; but `MisplacedDirectory` is for `unusable`.
        """
        if not read_only:
            make_dirs(self._disk, self._directory)
        for key in self._find():
            if known is not None and (bounds := known.get(key)) is not None:
                self._unopened[key] = bounds
                self._ids.setdefault(key[0], set()).add(key[1])
                continue
            queue = self._add(*key)
            try:
                queue.load(read_only=read_only)
            except MisplacedDirectory as error:
                if read_only:
                    self.forget(*key)
                else:
                    self.unusable(queue, error)
        if self._unopened:
            with suppress(MisplacedDirectory):  # whoever opens it sees to that
                self._new(*min(self._unopened)).load(read_only=True)

    def _find(self) -> Iterator[QueueKey]:
        """The queues that have directories. Raises ForeignFile."""
        for topic in entries_of(self._directory):
            name = topic.name
            for entry in entries_of(topic.path) if topic.is_dir() else ():
                number = entry.name
                if not (number.isascii() and number.isdigit() and entry.is_dir()):
                    raise ForeignFile(
                        f"{entry.path} is no consume queue: their directories are named by queue id.",
                        remedy="Move it out of the directory.",
                    )
                yield name, int(number)

    def _open(self, key: QueueKey) -> ConsumeQueue | None:
        """Open a queue that was not yet, if there is one."""
        bounds = self._unopened.pop(key, None)
        if bounds is None:
            return None
        queue = self._add(*key)
        try:
            self.open(queue)
            for told in self.opening:
                told(queue)
        except BaseException:
            del self._queues[key]
            self._unopened[key] = bounds
            raise
        return queue

    def _new(self, topic: str, queue_id: int) -> ConsumeQueue:
        directory = self._directory / topic / str(queue_id)
        return ConsumeQueue(directory, self._file_size, self._disk, self._cache, self._confirmed, self._observer)

    def _add(self, topic: str, queue_id: int) -> ConsumeQueue:
        queue = self._queues[topic, queue_id] = self._new(topic, queue_id)
        self._ids.setdefault(topic, set()).add(queue_id)
        return queue

    def set_aside(self, queue: ConsumeQueue) -> Path:
        """Move the directory of a queue that was not loaded to ``broken/``, where it stays. Raises OSError."""
        target = self._broken / queue.topic / str(queue.queue_id)
        number = 0
        while target.exists():
            number += 1
            target = target.with_name(f"{queue.queue_id}.{number}")
        make_dirs(self._disk, target.parent)
        self._disk.rename(queue.directory, target)
        self._disk.sync_dir(target.parent)
        self._disk.sync_dir(queue.directory.parent)
        return target

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Give a queue, or None where there never was a message in it.

        Raises:
            OSError: its files cannot be looked at; the next call tries again.
        """
        key = topic, queue_id
        return self._queues.get(key) or self._open(key)

    def ensure(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Give a queue, which comes into being with its first unit. Raises as `get`."""
        return self.get(topic, queue_id) or self._add(topic, queue_id)

    def forget(self, topic: str, queue_id: int) -> None:
        """Know a queue no more; its files stay."""
        if self._queues.pop((topic, queue_id), None) is not None:
            self._ids[topic].discard(queue_id)

    def nameable(self, runs: Iterable[UnitRun]) -> list[UnitRun]:
        """Those of ``runs`` whose queues can have directories; records of others are in no queue, as the log says."""
        found = []
        for run in runs:
            if is_queue_name(run.topic, run.queue_id):
                found.append(run)
            elif (run.topic, run.queue_id) not in self._strange and len(self._strange) < _STRANGE_TOLD:
                self._strange.add((run.topic, run.queue_id))
                log.warning(
                    "The record at log offset %d is in no queue: its topic %r and queue %d cannot be",
                    run.first_physical, run.topic[:_SHOWN], run.queue_id,
                )  # fmt: skip
        return found

    def append(self, runs: Iterable[UnitRun]) -> None:
        """Add the units of walked records to their queues, which must be `nameable`."""
        for run in runs:
            self.ensure(run.topic, run.queue_id).append_run(run.first_queue_offset, run.units, run.last_end_physical)
            if self._appended is not None:
                self._appended.add((run.topic, run.queue_id))

    def close(self) -> None:
        """Close the open files."""
        self._cache.close()


def _refuse(_queue: ConsumeQueue, error: UnusableDirectory) -> None:
    raise error
