"""HeldAcknowledgements: answers to acknowledgements that are noted, until the journal is written and safe.

All those of one turn of the event loop wait as one: the journal is written at the end of the turn.
"""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.port import JournalTurns
from tandemmq.store.fronts.held_answer import SendTimes

log = logging.getLogger(__name__)


class _Held(NamedTuple):
    call: DirectCall
    request: bytes
    answer: bytes
    outcome: str
    begun: float


class HeldAcknowledgements:
    """Those of one method."""

    def __init__(self, method: str, journal: JournalTurns, acknowledgement: Acknowledgement, times: SendTimes) -> None:
        self._method = method
        self._journal = journal
        self._acknowledgement = acknowledgement
        self._times = times
        self._turn: list[_Held] = []

    def hold(self, call: DirectCall, request: bytes, answer: bytes, begun: float, outcome: str = "SUCCESS") -> HeldCall:
        """Give an answer as soon as all that is noted so far is as safe as sends are.

        Where that does not come to be, the handler answers to the `request`: a handle may be given back twice. `begun`:
        of `time.perf_counter`.
        """
        if not self._turn:
            self._journal.when_written(self._written)
        self._turn.append(_Held(call, request, answer, outcome, begun))
        return HELD

    def _written(self, lost: TandemError | None) -> None:
        held, self._turn = self._turn, []
        if lost is None and self._journal.failure is None:
            self._acknowledgement.when_safe(self._journal.end_offset, self._answering(held), wait=True)
        else:
            self._end(held, good=False)

    def _answering(self, held: list[_Held]) -> Callable[[PutStatus], None]:
        """Answers the calls of a turn, when disk and replicas have what was noted in it, or will not."""
        return lambda status: self._end(held, good=status is PutStatus.PUT_OK)

    def _end(self, held: list[_Held], *, good: bool) -> None:
        now = time.perf_counter()
        for one in held:
            try:
                if good:
                    self._times.called(self._method, one.outcome, now - one.begun)
                    one.call.answer_later(one.answer)
                else:
                    one.call.hand_over(one.request)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
