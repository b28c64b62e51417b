"""HeldAcknowledgements: answers to acknowledgements that are noted, until the journal is written and safe.

All those of one turn of the event loop wait as one: the journal is written at the end of the turn. What disk or
replicas do not have in time is refused here: the handler would wait as long once more.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import JournalTurns, Outcome
from tandemmq.store.fronts.held_answer import SendTimes

log = logging.getLogger(__name__)


Refuse = Callable[[DirectCall, NotSafe], str]
"""Answers a call that was held with an error, and gives the name of that outcome."""

HeldAcknowledgement = tuple[DirectCall, bytes, bytes, str, float]
"""A call, its request, its answer, the outcome's name, and when it began."""


class AcknowledgementCore(Protocol):
    """The compiled twin: `CompiledHeldCalls`."""

    def hold_acknowledgements(self, held: list[HeldAcknowledgement], kept: list[Any], outcomes: list[Outcome]) -> None:
        """Hold calls in `held`, with the outcomes of their handles."""
        ...

    def answer_acknowledgements(self, held: list[HeldAcknowledgement]) -> None:
        """What was noted is as safe as sends are."""
        ...


class HeldAcknowledgements:
    """Those of one method."""

    def __init__(
        self,
        method: str,
        journal: JournalTurns,
        acknowledgement: Acknowledgement,
        times: SendTimes,
        refuse: Refuse,
    ) -> None:
        self._method = method
        self._refuse = refuse
        self._journal = journal
        self._acknowledgement = acknowledgement
        self._times = times
        self._turn: list[HeldAcknowledgement] = []
        self.core: AcknowledgementCore | None = None
        """Gives the good answers, if it is there."""

    def hold(self, call: DirectCall, request: bytes, answer: bytes, begun: float, outcome: str = "SUCCESS") -> HeldCall:
        """Give an answer as soon as all that is noted so far is as safe as sends are.

        Where it is not written, the handler answers to the `request`: a handle may be given back twice. `begun`: of
        `time.perf_counter`.
        """
        if not self._turn:
            self._journal.when_written(self._written)
        self._turn.append((call, request, answer, outcome, begun))
        return HELD

    def hold_all(self, kept: list[Any], outcomes: list[Outcome]) -> bool:
        """Hold all of some kept calls, with the outcomes of their handles; False, and none is, without the core."""
        if self.core is None:
            return False
        if not self._turn:
            self._journal.when_written(self._written)
        self.core.hold_acknowledgements(self._turn, kept, outcomes)
        return True

    def _written(self, lost: TandemError | None) -> None:
        held, self._turn = self._turn, []
        if lost is None and self._journal.failure is None:
            self._acknowledgement.when_safe(self._journal.end_offset, self._answering(held), wait=True)
        else:
            self._end(held, None)

    def _answering(self, held: list[HeldAcknowledgement]) -> Callable[[PutStatus], None]:
        """Answers the calls of a turn, when disk and replicas have what was noted in it, or will not."""
        return lambda status: self._end(held, status)

    def _end(self, held: list[HeldAcknowledgement], status: PutStatus | None) -> None:
        """None: it is not known to be written."""
        if status is PutStatus.PUT_OK and self.core is not None:
            self.core.answer_acknowledgements(held)
            return
        now = time.perf_counter()
        for call, request, answer, outcome, begun in held:
            try:
                if status is None:
                    call.hand_over(request)
                    continue
                if status is PutStatus.PUT_OK:
                    call.answer_later(answer)
                else:
                    outcome = self._refuse(call, NotSafe.noted(status.name))
                self._times.called(self._method, outcome, now - begun)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
