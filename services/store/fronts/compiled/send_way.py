"""CompiledSendWay: the short way of a method that sends, around what the core does with the bytes of a request.

Its Python twins are `DirectSend`, `DirectSendBatch` and `DirectSendMessage`, with `AnswerWhenSafe`: who calls, whether
messages are refused at present, how long the call took, and whether it is answered now or held. It has no state of its
own: calls may go either way, in any order.
"""

import logging

import cython
from cython.cimports.cpython.dict import PyDict_GetItem
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.fronts.compiled.call_times import CompiledCallTimes

from tandemmq.common.grpc_transport import HELD

_MOST_PEERS: cython.int = 4096

log = logging.getLogger(__name__)


@cython.cclass
class CompiledSendWay:
    """See the module; `grpc_transport.Direct` is `answer`."""

    def __init__(self, sends: object, peer_host: object) -> None:
        """For a `CoreSends`. `peer_host` gives the address of a caller."""
        self._core = sends.core
        self._answer = sends.core.answer
        self._acknowledgement = sends.acknowledgement
        self._when_safe = sends.when_safe
        self._times = CompiledCallTimes(sends.when_safe.good_times)
        self._otherwise = sends.otherwise
        self._accepts = sends.accepts
        self._peer_host = peer_host
        self._packed = {}

    def answer(self, message: bytes, call: object) -> object:
        """See `grpc_transport.Direct`."""
        begun: cython.double = seconds_now()
        waits: cython.bint = self._acknowledgement.waits
        if waits and self._acknowledgement.refuses:  # where nothing waits, nothing is refused
            return self._otherwise(message, call)
        if self._accepts is not None and not self._accepts(call):
            return None
        answer: object = self._answer(message, self._host(call.peer()))
        if answer is None:
            return self._otherwise(message, call)
        if not waits:
            self._times.count(seconds_now() - begun, 1)
            return answer
        if self._core.waits:
            return self._hold(answer, call, begun)
        return self._when_safe(answer, self._core.end_offset, call, begun, wait=False)

    def answer_held(self, held: list) -> None:
        """Give calls that were held their answers, which are good."""
        now: cython.double = seconds_now()
        begun: cython.double
        for call, answer, begun in held:
            try:
                call.answer_later(answer)
                self._times.count(now - begun, 1)
            except Exception:  # the others are stored too, and nobody else would answer them
                log.exception("a call that was held was not answered")

    @cython.cfunc
    def _host(self, peer: str) -> bytes:
        """The packed address of a caller, as transports name them."""
        known: cython.pointer(PyObject) = PyDict_GetItem(self._packed, peer)
        if known != cython.NULL:
            return cython.cast(object, known)
        if len(self._packed) >= _MOST_PEERS:
            self._packed.clear()
        packed: bytes = self._peer_host(peer).packed
        self._packed[peer] = packed
        return packed

    @cython.cfunc
    def _hold(self, answer: bytes, call: object, begun: cython.double) -> object:
        """What `AnswerWhenSafe` does with a send that waits."""
        turn: object = self._when_safe.turn
        if turn is None:
            turn = self._when_safe.begin_turn()
        turn.reach(self._core.end_offset)
        turn.held.append((call, answer, begun))
        return HELD
