"""CompiledHeldCalls: the good answers of receives and acknowledgements that were held until the end of a turn.

Its Python twins are `HeldReceives` and `HeldAcknowledgements`.
"""

import logging
from functools import partial

import cython
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane_call import LaneCall
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.fronts.compiled.call_times import CompiledCallTimes

log = logging.getLogger(__name__)


@cython.cclass
class CompiledHeldCalls:
    """Those of one method."""

    def __init__(self, method: str, times: object) -> None:
        """`times` are the metrics in which calls are counted."""
        self._times = CompiledCallTimes(partial(times.times, method, "SUCCESS"))
        self._polling = CompiledCallTimes(partial(times.times, method, "SUCCESS", long_polling=True))
        self._called = partial(times.called, method)

    def all_wait(self, kept: list) -> bool:
        """Whether somebody waits for each of some calls that are kept, and its answer may leave."""
        for one in kept:
            call: object = cython.cast(tuple, one)[0]
            if type(call) is LaneCall:
                if cython.cast(LaneCall, call).is_gone() or not cython.cast(LaneCall, call).may_have():
                    return False
            elif call.gone or not call.has_room:
                return False
        return True

    def hold_receives(
        self, held: list, kept: list, batches: list, answer_of: object, largest: int, long_polling: bool
    ) -> int:
        """Hold the first of some calls, each with what it gets, in `held`: how many.

        It stops before one that Python has to look at: its answer is large, or fails.
        """
        most: cython.Py_ssize_t = largest
        count: cython.Py_ssize_t = min(len(kept), len(batches))
        i: cython.Py_ssize_t
        for i in range(count):
            batch: object = batches[i]
            try:
                answer: object = answer_of(batch)
            except Exception:  # noqa: BLE001 - Python meets it too, and says so
                return i
            if type(answer) is not bytes or len(cython.cast(bytes, answer)) > most:
                return i
            call, request, begun, _ = cython.cast(tuple, kept[i])
            held.append((call, request, answer, batch, begun, long_polling))
        return count

    def hold_acknowledgements(self, held: list, kept: list, outcomes: list) -> None:
        """Hold calls with the outcomes of their handles, in `held`."""
        at: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        for call, request, begun, given in kept:
            end = at + len(given.handles)
            answer, outcome = given.answered(outcomes[at:end])
            held.append((call, request, answer, outcome, begun))
            at = end

    def answer_receives(self, held: list) -> None:
        """Give messages out; those of a call that nobody waits for are there again."""
        now: cython.double = seconds_now()
        begun: cython.double
        long_polling: cython.bint
        for call, _request, answer, batch, begun, long_polling in held:
            try:
                if is_gone(call):
                    batch.release()
                    continue
                if long_polling:
                    self._polling.gather(now - begun)
                else:
                    self._times.gather(now - begun)
                give(call, answer)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
        self._times.tell()
        self._polling.tell()

    def answer_acknowledgements(self, held: list) -> None:
        """What was acknowledged is as safe as sends are."""
        now: cython.double = seconds_now()
        begun: cython.double
        for call, _request, answer, outcome, begun in held:
            try:
                give(call, answer)
                if outcome == "SUCCESS":
                    self._times.gather(now - begun)
                else:
                    self._called(outcome, now - begun)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
        self._times.tell()


@cython.cfunc
@cython.exceptval(-1, check=False)
def is_gone(call: object) -> cython.int:
    """Whether nobody waits for the answer to a call."""
    return cython.cast(LaneCall, call).is_gone() if type(call) is LaneCall else call.gone


@cython.cfunc
@cython.exceptval(-1, check=False)
def give(call: object, answer: bytes) -> cython.int:
    """Answer a call that was held."""
    if type(call) is LaneCall:
        cython.cast(LaneCall, call).answer_later(answer)
    else:
        call.answer_later(answer)
    return 1
