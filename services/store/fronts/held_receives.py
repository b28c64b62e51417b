"""HeldReceives: answers to receives that have given out messages, until the journal is written.

All those of one turn of the event loop wait as one: the journal is written at the end of the turn.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.delivery.port import Batch, JournalTurns

log = logging.getLogger(__name__)


class ReceiveTimes(Protocol):
    """Hears how long calls take."""

    def called(self, method: str, outcome: str, seconds: float, *, long_polling: bool = False) -> None:
        """A call has ended."""
        ...


HeldReceive = tuple[DirectCall, bytes, bytes, Batch, float, bool]
"""A call, its request, its answer and what that gives out, when it began, and whether it would have waited."""


class ReceiveCore(Protocol):
    """The compiled twin: `CompiledHeldCalls`."""

    def all_wait(self, kept: list[Any]) -> bool:
        """Whether somebody waits for each of some calls that are kept, and its answer may leave."""
        ...

    def hold_receives(
        self,
        held: list[HeldReceive],
        kept: list[Any],
        batches: list[Batch],
        answer_of: Callable[[Batch], bytes | None],
        largest: int,
        long_polling: bool,
        /,
    ) -> int:
        """Hold the first of some calls in `held`, each with what it gets: how many."""
        ...

    def answer_receives(self, held: list[HeldReceive]) -> None:
        """What these give out is in the log, or the log does not take it, which is not waited for."""
        ...


class HeldReceives:
    """Those of one method."""

    def __init__(self, method: str, journal: JournalTurns, times: ReceiveTimes) -> None:
        self._method = method
        self._journal = journal
        self._times = times
        self._turn: list[HeldReceive] = []
        self.core: ReceiveCore | None = None
        """Gives the answers, if it is there."""

    def hold(
        self, call: DirectCall, request: bytes, answer: bytes, batch: Batch, begun: float, *, long_polling: bool
    ) -> HeldCall:
        """Give an answer at the end of the turn; where nobody waits for it then, its messages are there again.

        `begun`: of `time.perf_counter`; `long_polling`: whether the call would have waited.
        """
        if not self._turn:
            self._journal.when_written(self._written)
        self._turn.append((call, request, answer, batch, begun, long_polling))
        return HELD

    def hold_first(
        self,
        kept: list[Any],
        batches: Sequence[Batch],
        answer_of: Callable[[Batch], bytes | None],
        *,
        largest: int,
        long_polling: bool,
    ) -> int:
        """Hold as many of the first of some kept calls as the core does, each with what it gets: how many.

        Those whose answers have more than `largest` bytes are left to `hold`, and all after the first of them.
        """
        if self.core is None or not isinstance(batches, list):
            return 0
        before = len(self._turn)
        count = self.core.hold_receives(self._turn, kept, batches, answer_of, largest, long_polling)
        if count and not before:
            self._journal.when_written(self._written)
        return count

    def _written(self, lost: TandemError | None) -> None:
        """What was given out is in the log, or the log does not take it, which is not waited for."""
        held, self._turn = self._turn, []
        if lost is None and self.core is not None:
            self.core.answer_receives(held)
            return
        now = time.perf_counter()
        for call, request, answer, batch, begun, long_polling in held:
            try:
                if lost is not None:
                    call.hand_over(request)  # the handler says who the master is
                elif call.gone:
                    batch.release()
                else:
                    self._times.called(self._method, "SUCCESS", now - begun, long_polling=long_polling)
                    call.answer_later(answer)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
