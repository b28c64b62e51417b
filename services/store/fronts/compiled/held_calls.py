"""CompiledHeldCalls: the good answers of receives and acknowledgements that were held until the end of a turn.

Its Python twins are `HeldReceives` and `HeldAcknowledgements`.
"""

import logging
from functools import partial

import cython
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

    def answer_receives(self, held: list) -> None:
        """Give messages out; those of a call that nobody waits for are there again."""
        now: cython.double = seconds_now()
        begun: cython.double
        long_polling: cython.bint
        for call, _request, answer, batch, begun, long_polling in held:
            try:
                if call.gone:
                    batch.release()
                    continue
                if long_polling:
                    self._polling.count(now - begun, 1)
                else:
                    self._times.count(now - begun, 1)
                call.answer_later(answer)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")

    def answer_acknowledgements(self, held: list) -> None:
        """What was acknowledged is as safe as sends are."""
        now: cython.double = seconds_now()
        begun: cython.double
        for call, _request, answer, outcome, begun in held:
            try:
                call.answer_later(answer)
                if outcome == "SUCCESS":
                    self._times.count(now - begun, 1)
                else:
                    self._called(outcome, now - begun)
            except Exception:  # nobody else would answer the others
                log.exception("a call that was held was not answered")
