"""Keeps `config/timercheck`, by which timers pass from a RocketMQ 5 broker to this store and back.

Taken over: what a RocketMQ broker has delivered is not delivered again. Handed over: it reads the timers' queue from
the smallest timer on that waits, so none is lost; those after it that are delivered come again there. Its wheel
(`timerwheel`, `timerlog/`) is removed as soon as the file says so: it would go by what it has there, and deliver twice
what waits in the wheel and is read again.
"""

import asyncio
import os
from dataclasses import replace

from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.timer_check import BadTimerCheck, TimerCheck
from tandemmq.store.delivery.delays.timer_entry import BadEntries
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.journal.facts import Fact, TimersDone
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_SECONDS = 5.0
_AHEAD_MS = 600_000
"""So far a clock may have been ahead of ours."""
_LAST_OFFSET = (1 << 63) - 1


class TimerCheckFile:
    """The file; a service of the master."""

    def __init__(
        self, store: MessageStore, ledger: Ledger, index: TimerIndex, disk: Disk, wall: Clock, precision_ms: int
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._index = index
        self._disk = disk
        self._wall = wall
        self._precision = precision_ms
        self._path = store.config.store_path_root_dir / "config" / "timercheck"
        self._known: TimerCheck | None = None
        self._task: asyncio.Task[None] | None = None

    # -- before delivery begins -------------------------------------------------------------------------------------

    def facts(self) -> list[Fact]:
        """What a RocketMQ broker has delivered; nothing where it says no more than is known."""
        self._known = check = self._read()
        queue = self._store.queue(TIMER_TOPIC, 0)
        end = 0 if queue is None else queue.max_offset
        if check is None or check.ours or not check.read_ms:
            return []
        done = TimersDone(min(check.queue_offset, check.master_queue_offset, end), check.read_ms, _LAST_OFFSET)
        known = self._ledger.timers
        if known is not None and done.indexed <= known.indexed and done.due <= known.due:
            return []
        log.info("timers were delivered by a RocketMQ broker", up_to=done.due, indexed=done.indexed)
        return [done]

    def _read(self) -> TimerCheck | None:
        try:
            with os.fdopen(self._disk.open(self._path, os.O_RDONLY), "rb") as file:
                check = TimerCheck.decode(file.read())
            if check.rotten:
                log.error("timercheck has rotted: it counts as it was written", path=str(self._path))
            if check.read_ms % self._precision or check.read_ms > self._wall.now_ms() + _AHEAD_MS:
                raise BadTimerCheck(f"no broker has delivered up to {check.read_ms}")
            return replace(check, rotten=False)
        except FileNotFoundError:
            return None
        except (OSError, BadTimerCheck) as error:
            log.error("timercheck is passed over: timers may come twice", path=str(self._path), reason=str(error))
            return None

    # -- keeping it -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Write it now and then, while something has changed."""
        self._task = asyncio.create_task(self._run(), name="timercheck")

    async def stop(self) -> None:
        """Write it once more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self._write(exactly=True)

    async def _run(self) -> None:
        while True:
            await self._store.timers.sleep(_SECONDS)
            await self._write(exactly=False)

    async def _write(self, *, exactly: bool) -> None:
        """Write what is so. `exactly`: the smallest timer is looked for; else that of its file counts."""
        if self._ledger.timers is None and not self._index.indexed:
            return  # there was never a timer
        try:
            check = self.now(exactly=exactly)
            if check != self._known:
                await in_thread(self._save, check)
                self._known = check
        except (OSError, BadEntries) as error:
            log.failure("timercheck is not written", error)

    def now(self, *, exactly: bool = False) -> TimerCheck:
        """How far timers are delivered. Raises OSError, BadEntries: the smallest timer cannot be found."""
        done = self._ledger.timers
        offset = self._index.smallest_pending(done, exactly=exactly)
        before = self._known or TimerCheck()
        read_ms = 0 if done is None else done.due - done.due % self._precision
        return TimerCheck(read_ms, 0, offset, offset, before.version, ours=True)

    def _save(self, check: TimerCheck) -> None:
        make_dirs(self._disk, self._path.parent)
        write_atomically(self._disk, self._path, check.encode())
        root = self._path.parent.parent
        for path in (root / "timerwheel", *(root / "timerlog").glob("*")):
            if path.is_file():
                self._disk.unlink(path)
