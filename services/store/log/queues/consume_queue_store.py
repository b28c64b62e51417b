"""All consume queues of a store, by topic and queue id (RocketMQ: ``ConsumeQueueStore``)."""

import logging
from collections.abc import Iterable, Iterator

from tandemmq.store.format.unit import is_queue_name
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import Disk, make_dirs
from tandemmq.store.log.edges.file_cache import FileCache
from tandemmq.store.log.errors import ForeignFile
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.replica.confirmed import Confirmed

log = logging.getLogger(__name__)
_SHOWN = 60
_STRANGE_TOLD = 100


class ConsumeQueueStore:
    """The consume queues of one store directory."""

    def __init__(self, config: StoreConfig, disk: Disk, confirmed: Confirmed | None = None) -> None:
        """Stand before an unread directory; `load` reads it. ``confirmed``: what readers of the queues may see."""
        self._directory = config.consume_queue_dir
        self._file_size = config.mapped_file_size_consume_queue
        self._disk = disk
        self._cache = FileCache(disk)
        self._confirmed = confirmed
        self._queues: dict[QueueKey, ConsumeQueue] = {}
        self._strange: set[QueueKey] = set()

    def __iter__(self) -> Iterator[ConsumeQueue]:
        """Iterate over all queues, in no particular order."""
        return iter(self._queues.values())

    def __len__(self) -> int:
        """Count the queues."""
        return len(self._queues)

    def load(self, *, read_only: bool = False) -> None:
        """Find the queues on disk; ``read_only`` leaves even the leftovers of a crash where they are.

        Raises:
            FileSizeMismatch: a file's size is not what the settings say.
            ForeignFile: a directory or file that no store puts there.
        """
        if not read_only:
            make_dirs(self._disk, self._directory)
        for topic in sorted(self._directory.iterdir()):
            for directory in sorted(topic.iterdir()) if topic.is_dir() else ():
                if not directory.is_dir() or not (directory.name.isascii() and directory.name.isdigit()):
                    raise ForeignFile(
                        f"{directory} is no consume queue: their directories are named by queue id.",
                        remedy="Move it out of the directory.",
                    )
                queue = self._add(directory.parent.name, int(directory.name))
                queue.load(read_only=read_only)

    def _add(self, topic: str, queue_id: int) -> ConsumeQueue:
        directory = self._directory / topic / str(queue_id)
        queue = ConsumeQueue(directory, self._file_size, self._disk, self._cache, self._confirmed)
        self._queues[topic, queue_id] = queue
        return queue

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Give a queue, or None where there never was a message in it."""
        return self._queues.get((topic, queue_id))

    def ensure(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Give a queue, which comes into being with its first unit."""
        return self._queues.get((topic, queue_id)) or self._add(topic, queue_id)

    def forget(self, topic: str, queue_id: int) -> None:
        """Know a queue no more; its files stay."""
        self._queues.pop((topic, queue_id), None)

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

    def close(self) -> None:
        """Close the open files."""
        self._cache.close()
