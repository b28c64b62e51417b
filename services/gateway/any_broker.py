"""FirstBatch: a receive that names no broker gets what one of them has, or else the first message that comes to any."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.timers import Timers, first_of
from tandemmq.gateway.errors import stopping
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.store.delivery.port import Batch

LOOK_SECONDS = 0.2
"""A broker has so long to say what it has before the next one is asked as well: it may hang."""
LATE_SECONDS = 0.3
"""When the time is over and one broker has answered, the others have so long to answer too."""

Ask = Callable[[RemoteBroker, int], Coroutine[Any, Any, Batch]]
"""Receives from one broker, within so many ms. Raises StoreStopping where that is away as long."""

_NOT_HERE = frozenset({Kind.NO_SUCH_QUEUE, Kind.NOT_READABLE})
"""Refusals of a broker that has nothing of the topic to give, which others may have."""


class _Asked(NamedTuple):
    broker: RemoteBroker
    look: bool
    """It is asked for what is ready, and not waited at yet."""


class FirstBatch:
    """One receive. What a second broker gives is released: it is there again, uncounted."""

    def __init__(self, ask: Ask, timers: Timers) -> None:
        self._ask = ask
        self._timers = timers
        self._until = 0.0
        self._asked: dict[asyncio.Task[Batch], _Asked] = {}
        self._idle: list[RemoteBroker] = []
        """They have nothing ready, and are not waited at yet."""
        self._nothing: Batch | None = None
        self._refusal: TandemError | None = None

    async def of(self, brokers: Sequence[RemoteBroker], wait_ms: int) -> Batch:
        """The messages of one broker; none when the time is over.

        What is ready comes first, in the order of `brokers`, so that a busy cluster is not asked for what it must take
        back. Then all are waited at. Raises as `ask` where no broker gave anything and one has refused.
        """
        self._until = self._timers.time() + wait_ms / 1_000
        try:
            for broker in brokers:
                self._begin(broker, 0, look=True)
                await first_of(self._timers, self._asked, LOOK_SECONDS)
                if (batch := self._answered()) is not None:
                    return batch
            self._until = max(self._until, self._timers.time())
            while self._wait_at_idle():
                await first_of(self._timers, self._asked, self._patience())
                if (batch := self._answered()) is not None:
                    return batch
                if self._patience() == 0:
                    break
        finally:
            self._give_up()
        return self._none()

    def _begin(self, broker: RemoteBroker, wait_ms: int, *, look: bool) -> None:
        task = asyncio.create_task(self._ask(broker, wait_ms), name=f"receive from {broker.name}")
        self._asked[task] = _Asked(broker, look)

    def _wait_at_idle(self) -> bool:
        """Begin to wait where nothing was ready, while there is time; gives whether any broker is asked now."""
        left = round((self._until - self._timers.time()) * 1_000)
        if left > 0:
            for broker in self._idle:
                self._begin(broker, left, look=False)
            self._idle.clear()
        return bool(self._asked)

    def _patience(self) -> float | None:
        """Seconds in which another answer counts; None: as long as it takes, since there was none yet."""
        if self._nothing is None:
            return None
        return max(self._until + LATE_SECONDS - self._timers.time(), 0)

    def _answered(self) -> Batch | None:
        """The messages of one that has answered, if it had some. Raises StoreStopping when the gateway stops."""
        for task in [task for task in self._asked if task.done()]:
            broker, look = self._asked.pop(task)
            try:
                batch = task.result()
            except TandemError as error:
                if error.kind is not Kind.STOPPING:
                    self._refusal = self._refusal or error
                elif look:
                    self._idle.append(broker)
                elif self._timers.time() < self._until:
                    raise
                continue
            if batch.messages:
                return batch
            self._nothing = batch
            if look:
                self._idle.append(broker)
        return None

    def _none(self) -> Batch:
        """What a receive gives that found nothing."""
        refusal = self._refusal
        if refusal is not None and (self._nothing is None or refusal.kind not in _NOT_HERE):
            raise refusal
        if self._nothing is None:
            raise stopping()
        return self._nothing

    def _give_up(self) -> None:
        """Nobody waits for the other brokers any more."""
        for task in self._asked:
            task.cancel()
            task.add_done_callback(_release)
        self._asked.clear()


def _release(task: "asyncio.Task[Batch]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().release()
