"""HeldAnswers: the answers of sends that are stored, until disk and replicas have them or will not.

All sends of one turn of the event loop wait as one, for the log as far as the last of them reaches.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol

import grpc

from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus

log = logging.getLogger(__name__)
_FAILED = "INTERNAL"


class SendTimes(Protocol):
    """Hears how long calls take."""

    def called(self, method: str, outcome: str, seconds: float) -> None:
        """A call has ended."""
        ...

    def times(self, method: str, outcome: str) -> Distribution:
        """Where `called` counts such calls; milliseconds."""
        ...


Held = tuple[DirectCall, bytes, float]
"""A call that is held, its answer, and when it began, by `time.perf_counter`."""


class AnswerCore(Protocol):
    """The compiled twin of `HeldAnswers`: `CompiledSendWay`."""

    def answer_held(self, held: list[Held]) -> None:
        """Give calls that were held their answers, which are good."""
        ...


class StoringCore(Protocol):
    """What every compiled decoder of messages says of what it has stored."""

    @property
    def end_offset(self) -> int:
        """Log offset after the message that was stored last."""
        ...

    @property
    def waits(self) -> bool:
        """Whether its request waits for disk and replicas, where sends do."""
        ...

    @property
    def taken(self) -> int:
        """Calls, or frames, that it took so far."""
        ...


class SendCore(StoringCore, Protocol):
    """The compiled twin of a decoder of requests that send: the compiled codecs of the fronts."""

    def answer(self, message: bytes, peer: bytes) -> bytes | None:
        """The good answer to a caller at a packed address. None: it is not taken, and nothing has changed."""
        ...


class CoreSends(Protocol):
    """The short way of a method, as its compiled twin sees it (`CompiledSendWay`)."""

    @property
    def core(self) -> SendCore | None:
        """Asked first, if there is one."""
        ...

    @property
    def acknowledgement(self) -> Acknowledgement:
        """What sends wait for."""
        ...

    @property
    def when_safe(self) -> "AnswerWhenSafe":
        """Answers what is stored."""
        ...

    @property
    def accepts(self) -> Callable[[DirectCall], bool] | None:
        """Asked before the core; None: all calls are taken."""
        ...

    def otherwise(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """What is done where the core is not asked, or does not take a request. See `grpc_transport.Direct`."""
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
        self.turn: HeldAnswers | None = None
        """The answers that are held in this turn, if there are any."""
        self.core: AnswerCore | None = None
        """Gives the good answers, if it is there."""

    def __call__(
        self, answer: bytes, end_offset: int, call: DirectCall, begun: float, *, wait: bool
    ) -> bytes | HeldCall:
        """Give a good answer when the log is as safe as it is to be up to an offset: now, or later.

        `begun`: of `time.perf_counter`; `wait`: whether the message waits for disk and replicas, where sends do.
        """
        acknowledgement = self._acknowledgement
        if not (wait and acknowledgement.waits):
            if acknowledgement.waits:
                acknowledgement.when_safe(end_offset, _nobody, wait=False)
            self._times.called(self._method, "SUCCESS", time.perf_counter() - begun)
            return answer
        turn = self.turn or self.begin_turn()
        turn.reach(end_offset)
        turn.held.append((call, answer, begun))
        return HELD

    def begin_turn(self) -> "HeldAnswers":
        """Hold the first answer of a turn."""
        turn = self.turn = HeldAnswers(self)
        self._acknowledgement.at_the_end_of_the_turn(self._wait)
        return turn

    def good_times(self) -> Distribution:
        """Where the times of calls that ended well are counted; milliseconds."""
        return self._times.times(self._method, "SUCCESS")

    def _wait(self) -> None:
        turn, self.turn = self.turn, None
        if turn is not None:
            self._acknowledgement.when_safe(turn.end_offset, turn, wait=True)

    def less_safe(self, answer: bytes, status: PutStatus) -> tuple[bytes, str]:
        """See LessSafe."""
        return self._less_safe(answer, status)

    def ended(self, outcome: str, seconds: float) -> None:
        """A call that was held has ended."""
        self._times.called(self._method, outcome, seconds)


class HeldAnswers:
    """Those of one turn; called with the status of their messages."""

    __slots__ = ("_way", "end_offset", "held")

    def __init__(self, way: AnswerWhenSafe) -> None:
        self._way = way
        self.end_offset = 0
        """Where the last of their messages ends."""
        self.held: list[Held] = []

    def reach(self, end_offset: int) -> None:
        """One more message ends there."""
        if end_offset > self.end_offset:
            self.end_offset = end_offset

    def __call__(self, status: PutStatus) -> None:
        """They are as safe as they are to be, or will not be."""
        if status is PutStatus.PUT_OK and self._way.core is not None:
            self._way.core.answer_held(self.held)
            return
        way, now, outcome = self._way, time.perf_counter(), "SUCCESS"
        for call, answer, begun in self.held:
            try:
                if status is not PutStatus.PUT_OK:
                    answer, outcome = self._less_safe(call, answer, status)
                if outcome != _FAILED:
                    call.answer_later(answer)
                way.ended(outcome, now - begun)
            except Exception:  # the others are stored too, and nobody else would answer them
                log.exception("a call that was held was not answered")

    def _less_safe(self, call: DirectCall, answer: bytes, status: PutStatus) -> tuple[bytes, str]:
        """What the answer becomes, and the outcome; where that cannot be said, the call ends with an error."""
        try:
            return self._way.less_safe(answer, status)
        except Exception:  # whoever sent it waits
            log.exception("a call that was held ends with an error")
            details = f"The message is stored, but not as safe as it is to be: {status.name}. See the store's log."
            call.end_with(grpc.StatusCode.INTERNAL, details, ())
            return answer, _FAILED


def _nobody(_status: PutStatus) -> None:
    """Nobody waits."""
