"""DirectSend: a Send from the bytes of its request to those of its answer, without a coroutine, task or future.

Whatever is not the plain case is not answered here, and nothing of it is stored: a message to a topic that must be made
first, one that is refused, one with hooks around it. `StoreServicer.Send` does those, and says what is wrong.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.fronts.native.answers import send_response
from tandemmq.store.fronts.native.requests import new_message, peer_host
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import store_pb2

PATH = "/tandemmq.store.v1.Store/Send"


class DirectSend:
    """See `grpc_transport.Direct`."""

    def __init__(self, broker: Broker, metrics: StoreMetrics) -> None:
        self._broker = broker
        self._acknowledgement = broker.acknowledgement
        self._metrics = metrics

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """The answer to a request; HELD: when disk and replicas have answered; None: it is not answered here."""
        begun = time.perf_counter()
        try:
            request = store_pb2.SendRequest.FromString(message)
            new = new_message(request.message, peer_host(call.peer()))
            wait = not request.no_wait
            stored = self._broker.store_at_once(new, wait=wait)
        except (TandemError, DecodeError):
            return None
        if stored is None:
            return None
        ready, place = stored
        if not self._acknowledgement.waits:
            return _answer(new_tuple(Receipt, (ready, place, PutStatus.PUT_OK)), begun, self._metrics)
        held = HeldSend(call, begun, self._metrics)
        self._broker.when_safe(ready, place, held, wait=wait)
        return held.outcome()


class HeldSend:
    """A send that may have to wait; called with its receipt."""

    __slots__ = ("_answer", "_begun", "_call", "_held", "_metrics")

    def __init__(self, call: DirectCall, begun: float, metrics: StoreMetrics) -> None:
        self._call = call
        self._begun = begun
        self._metrics = metrics
        self._answer: bytes | None = None
        self._held = False

    def __call__(self, receipt: Receipt) -> None:
        """It is as safe as it is to be, or will not be."""
        answer = _answer(receipt, self._begun, self._metrics)
        if self._held:
            self._call.answer_later(answer)
        else:
            self._answer = answer

    def outcome(self) -> bytes | HeldCall:
        """The answer, if it is there already; else it is given later."""
        if self._answer is not None:
            return self._answer
        self._held = True
        return HELD


def _answer(receipt: Receipt, begun: float, metrics: StoreMetrics) -> bytes:
    answer = send_response(receipt).SerializeToString()
    metrics.called("Send", "SUCCESS", time.perf_counter() - begun)
    return answer
