"""HeldAnswer: the answer of a send that is stored, until disk and replicas have it or will not."""

import time
from collections.abc import Callable
from typing import Protocol

from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus


class SendTimes(Protocol):
    """Hears how long calls take."""

    def called(self, method: str, outcome: str, seconds: float) -> None:
        """A call has ended."""
        ...


LessSafe = Callable[[bytes, PutStatus], tuple[bytes, str]]
"""What a good answer becomes when the message is not as safe as it is to be, and the name of that outcome."""


class AnswerWhenSafe:
    """How the sends of one method are answered."""

    def __init__(self, method: str, acknowledgement: Acknowledgement, times: SendTimes, less_safe: LessSafe) -> None:
        self._method = method
        self._acknowledgement = acknowledgement
        self._times = times
        self._less_safe = less_safe

    def __call__(
        self, answer: bytes, end_offset: int, call: DirectCall, begun: float, *, wait: bool
    ) -> bytes | HeldCall:
        """Give a good answer when the log is as safe as it is to be up to an offset: now, or later.

        `begun`: of `time.perf_counter`; `wait`: whether the message waits for disk and replicas, where sends do.
        """
        if not self._acknowledgement.waits:
            self.ended("SUCCESS", begun)
            return answer
        held = HeldAnswer(self, call, answer, begun)
        self._acknowledgement.when_safe(end_offset, held, wait=wait)
        return held.outcome()

    def less_safe(self, answer: bytes, status: PutStatus) -> tuple[bytes, str]:
        """See LessSafe."""
        return self._less_safe(answer, status)

    def ended(self, outcome: str, begun: float) -> None:
        """The call has ended."""
        self._times.called(self._method, outcome, time.perf_counter() - begun)


class HeldAnswer:
    """One send that may have to wait; called with its status."""

    __slots__ = ("_answer", "_begun", "_call", "_held", "_safe", "_way")

    def __init__(self, way: AnswerWhenSafe, call: DirectCall, answer: bytes, begun: float) -> None:
        self._way = way
        self._call = call
        self._answer = answer
        self._begun = begun
        self._safe = self._held = False

    def __call__(self, status: PutStatus) -> None:
        """It is as safe as it is to be, or will not be."""
        outcome = "SUCCESS"
        if status is not PutStatus.PUT_OK:
            self._answer, outcome = self._way.less_safe(self._answer, status)
        self._safe = True
        self._way.ended(outcome, self._begun)
        if self._held:
            self._call.answer_later(self._answer)

    def outcome(self) -> bytes | HeldCall:
        """The answer, if it is there already; else it is given later."""
        if self._safe:
            return self._answer
        self._held = True
        return HELD
