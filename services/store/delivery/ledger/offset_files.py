"""`config/consumerOffset.json` and `config/delayOffset.json` on disk: read before delivery begins, and kept.

Where a metadata service is, it is the one that writes them; here they are only read.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tandemmq.common.documents import java_json
from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.store.delivery.journal.facts import Fact, Place
from tandemmq.store.delivery.journal.images import (
    MARK,
    OFFSETS,
    VERSION,
    cursors_of_image,
    levels_of_image,
    read_levels,
    read_offsets,
    with_cursors,
)
from tandemmq.store.delivery.ledger.durable_cursors import CursorChanges, DurableCursors
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_SECONDS = 5.0
"""As RocketMQ's flushConsumerOffsetInterval."""


class OffsetFiles:
    """The two files. A service of the master where `keeps` is said: then it writes them."""

    def __init__(self, store: MessageStore, cursors: DurableCursors, disk: Disk, clock: Clock, *, keeps: bool) -> None:
        self._store = store
        self._cursors = cursors
        self._disk = disk
        self._clock = clock
        self._keeps = keeps
        folder = store.config.store_path_root_dir / "config"
        self._offsets_path, self._levels_path = folder / "consumerOffset.json", folder / "delayOffset.json"
        self._offsets: dict[str, Any] = {}
        self._levels: dict[str, Any] = {}
        self._task: asyncio.Task[None] | None = None
        self._told = False

    # -- before delivery begins -------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Read both, in a thread."""
        self._offsets, self._levels = await in_thread(
            lambda: (self._read(self._offsets_path), self._read(self._levels_path))
        )

    def facts(self, ledger: Ledger, records: int) -> Iterator[Fact | None]:
        """What the files say that the journal does not, in small steps: None is one that found nothing.

        Facts may be applied to the ledger as they come.

        `records`: queue offset after the journal's last record. An image of ours that reflects no more than that says
        nothing new of what the journal knows.
        """
        try:
            if self._offsets:
                less, javas = _reflects_less(self._offsets, records), self._is_javas(self._offsets)
                for one in read_offsets(self._offsets):
                    if not (less and (ledger.progress(one.place) is not None or one.place in ledger.forgotten)):
                        yield from cursors_of_image((one,), ledger, self._end, backwards=javas)
                    yield None
        except ValueError as error:
            log.error("consumer offsets are passed over", path=str(self._offsets_path), reason=str(error))
        try:
            if self._levels:
                levels = read_levels(self._levels)
                if _reflects_less(self._levels, records):
                    levels = {level: offset for level, offset in levels.items() if level not in ledger.levels}
                yield from levels_of_image(levels, ledger, backwards=self._is_javas(self._levels))
        except ValueError as error:
            log.error("delay offsets are passed over", path=str(self._levels_path), reason=str(error))

    def _is_javas(self, document: dict[str, Any]) -> bool:
        return self._keeps and MARK not in document

    def _end(self, place: Place) -> int | None:
        queue = self._store.queue(place.topic, place.queue)
        return None if queue is None else queue.max_offset

    def _read(self, path: Path) -> dict[str, Any]:
        """The document, or that of its back-up; empty where there is none that can be read."""
        for one in (path, path.with_name(path.name + ".bak")):
            try:
                with os.fdopen(self._disk.open(one, os.O_RDONLY), "rb") as file:
                    return java_json.loads(file.read())
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                log.error("a file of offsets cannot be read", path=str(one), reason=str(error))
        return {}

    # -- keeping them -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write them now and then, while there is something new."""
        if self._keeps:
            self._task = asyncio.create_task(self._run(), name="files of offsets")

    async def stop(self) -> None:
        """Write them once more, where that may be."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self.write()

    async def _run(self) -> None:
        while True:
            await self._store.timers.sleep(_SECONDS)
            await self.write()

    async def write(self) -> None:
        """Write what is durable and was not written yet. A disk that refuses is asked again later."""
        changes = await self._cursors.take()
        if changes is None:
            return
        try:
            await in_thread(self._write, changes)
            self._told = False
        except OSError as error:
            self._cursors.put_back(changes)
            if not self._told:
                log.error("offsets are not written", path=str(self._offsets_path), reason=error.strerror or str(error))
            self._told = True

    def _write(self, changes: CursorChanges) -> None:
        make_dirs(self._disk, self._offsets_path.parent)
        if changes.cursors or changes.gone:
            with_cursors(self._offsets, changes.cursors, changes.gone, changes.mark)
            self._save(self._offsets_path, self._offsets)
        if changes.levels:
            table = self._levels.setdefault(OFFSETS, {})
            table.update({str(level): offset for level, offset in changes.levels.items()})
            self._levels[MARK] = changes.mark
            self._save(self._levels_path, self._levels)

    def _save(self, path: Path, document: dict[str, Any]) -> None:
        found = document.get(VERSION)
        before = dict(found) if isinstance(found, dict) else {"stateVersion": 0}
        counter = before.get("counter", 0)
        epoch = self._store.replica.mastership.epoch
        document[VERSION] = {
            **before,
            "stateVersion": max(epoch if epoch > 1 else 0, before.get("stateVersion", 0)),
            "counter": counter + 1 if type(counter) is int else 1,
            "timestamp": self._clock.now_ms(),
        }
        write_atomically(self._disk, path, java_json.dumps_table(document))


def _reflects_less(document: dict[str, Any], records: int) -> bool:
    mark = document.get(MARK)
    return type(mark) is int and mark <= records
