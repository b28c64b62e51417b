"""What operators see of what waits for its time: timers, delay levels, half messages.

Read on the event loop every few seconds, and kept as values, as `figures` does.
"""

import asyncio
from typing import NamedTuple

from tandemmq.common.timers import Timers
from tandemmq.store.delivery.delays.delays import Delays
from tandemmq.store.delivery.delays.levels import LevelState
from tandemmq.store.delivery.transactions.transactions import Transactions

_EVERY_SECONDS = 5.0
_MOST_HALVES = 1_000
"""So many half messages are looked at for the oldest of each topic: those that began first come first."""


class WaitingFigures(NamedTuple):
    """What waits. Ages in ms."""

    timers: int = 0
    """Messages that wait for a time of their own; one that was recalled counts until then."""
    timers_due: int = 0
    timers_late_ms: int = 0
    """How long the first of those that are due is."""
    timers_not_indexed: int = 0
    """Messages that the index of timers does not have yet."""
    levels: tuple[LevelState, ...] = ()
    """Delay levels at which something waits."""
    halves: tuple[tuple[str, int, int], ...] = ()
    """Topic, half messages whose transactions have not ended, age of the oldest of them."""


class WaitingKeeper:
    """Reads them now and then; a `lifecycle.MasterService`."""

    def __init__(self, delays: Delays, transactions: Transactions, timers: Timers) -> None:
        self.now = WaitingFigures()
        """As they were read last."""
        self._delays = delays
        self._transactions = transactions
        self._timers = timers
        self.delay_counts = delays.counts
        """What has become of delayed messages since the start."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="figures of what waits")

    async def stop(self) -> None:
        """End: what waits is another's business."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.now = WaitingFigures()

    async def _run(self) -> None:
        while True:
            await self._timers.sleep(_EVERY_SECONDS)
            self.now = self.read()

    def read(self) -> WaitingFigures:
        """As they are at this moment."""
        timed, levels = self._delays.timed, self._delays.levels
        return WaitingFigures(
            timed.waiting, timed.due, timed.late_ms, timed.not_indexed, tuple(levels.states()), self._halves()
        )

    def _halves(self) -> tuple[tuple[str, int, int], ...]:
        oldest: dict[str, int] = {}
        for half in self._transactions.pending(_MOST_HALVES):
            oldest[half.topic] = max(oldest.get(half.topic, 0), half.age_ms)
        counts = sorted(self._transactions.pending_by_topic().items())
        return tuple((topic, count, oldest.get(topic, 0)) for topic, count in counts)
