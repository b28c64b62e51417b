"""AcknowledgementsOfTurn: acknowledgements of one turn of the event loop, those for one group and topic together.

They are taken at once at the end of the turn, and answered when the journal is written, and as safe as sends are.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.delivery.port import AtOncePort, JournalTurns, Outcome
from tandemmq.store.fronts.calls_of_turn import CallsOfTurn, KeptCall, hand_over
from tandemmq.store.fronts.held_acknowledgements import AcknowledgementCore, HeldAcknowledgements, Refuse
from tandemmq.store.fronts.held_answer import SendTimes

FEW_HANDLES = 64
"""Requests with more handles are answered by themselves."""


class HandlesOf(NamedTuple):
    """Whose handles are given back."""

    group: str
    topic: str
    in_time: bool = False
    """See `DeliveryPort.acknowledge`."""


class GivenBack(Protocol):
    """What one request gives back."""

    @property
    def handles(self) -> Sequence[str]:
        """The handles; one at least."""
        ...

    def answered(self, outcomes: Sequence[Outcome]) -> tuple[bytes, str]:
        """The bytes of the answer to the request, and the name of its outcome."""
        ...


class AcknowledgementsOfTurn:
    """Those of one method."""

    def __init__(
        self,
        method: str,
        delivery: AtOncePort,
        journal: JournalTurns,
        acknowledgement: Acknowledgement,
        times: SendTimes,
        refuse: Refuse,
    ) -> None:
        self._method = method
        self._delivery = delivery
        self._times = times
        self._held = HeldAcknowledgements(method, journal, acknowledgement, times, refuse)
        self._same = CallsOfTurn[HandlesOf, GivenBack](journal, self._take_together)
        self.kept, self.kept_for = self._same.kept, self._same.kept_for
        """See `CallsOfTurn`."""

    def use_core(self, core: AcknowledgementCore) -> None:
        """Have the compiled core give the answers of a turn."""
        self._held.core = core

    def __call__(
        self, asked: HandlesOf, given: GivenBack, message: bytes, call: DirectCall, begun: float
    ) -> bytes | HeldCall | None:
        """HELD: what is dealt with is noted at the end of the turn, or now; None: nothing is, the handler answers.

        `message`: the bytes of the request; `begun`: of `time.perf_counter`. Raises as
        `AtOncePort.acknowledge_at_once`.
        """
        if len(given.handles) <= FEW_HANDLES:
            return HELD if self._same.keep(asked, call, message, begun, given) else None
        outcomes = self._delivery.acknowledge_at_once(asked.group, asked.topic, given.handles, in_time=asked.in_time)
        if outcomes is None:
            return None
        answer, outcome = given.answered(outcomes)
        if any(one.error is None for one in outcomes):
            return self._held.hold(call, message, answer, begun, outcome)
        self._times.called(self._method, outcome, time.perf_counter() - begun)
        return answer  # nothing has changed: there is nothing to wait for

    def _take_together(self, asked: HandlesOf, kept: list[KeptCall[GivenBack]]) -> None:
        """Take back the handles of all calls; the handler has them where that cannot be said at once."""
        handles = [handle for one in kept for handle in one.said.handles]
        try:
            outcomes = self._delivery.acknowledge_at_once(asked.group, asked.topic, handles, in_time=asked.in_time)
        except TandemError:
            outcomes = None
        if outcomes is None:
            hand_over(kept)
            return
        if self._held.hold_all(kept, outcomes):
            return
        at = 0
        for call, request, begun, given in kept:
            end = at + len(given.handles)
            answer, outcome = given.answered(outcomes[at:end])
            self._held.hold(call, request, answer, begun, outcome)
            at = end
