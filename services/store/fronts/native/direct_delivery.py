"""Receives and acknowledgements from the bytes of requests to those of answers, without a coroutine, task or future.

What is not the plain case is not answered here: a receive that must wait, one with renewal or an attempt id, a group
that must be made first, whatever is refused. `DeliveryServicer` does those, and says what is wrong.

All calls of one turn of the event loop wait as one for the journal, which is written at the end of the turn.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.common.guard import as_told
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import Wish
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgements
from tandemmq.store.fronts.held_receives import LARGE_BYTES, LATER_SECONDS, HeldReceives
from tandemmq.store.fronts.native import delivery_answers, delivery_requests
from tandemmq.store.fronts.native.delivery_requests import MOST_HANDLES
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import message_pb2

RECEIVE_PATH = "/tandemmq.delivery.v1.Delivery/Receive"
ACKNOWLEDGE_PATH = "/tandemmq.delivery.v1.Delivery/Acknowledge"

_MOST_WISHES = 4_096
"""So many different requests to receive are remembered; a consumer makes the same one again and again."""
_LONGEST_WISH = 1_024
_DONE = delivery_pb2.AcknowledgeResponse(outcomes=[delivery_pb2.Outcome()]).SerializeToString()
"""The answer to one handle that is dealt with; that to many is as many of these."""


class _PlainWish:
    """A request to receive that was seen before."""

    __slots__ = ("form", "later", "wish")

    def __init__(self, wish: Wish, form: message_pb2.RecordForm.ValueType) -> None:
        self.wish = wish
        self.form = form
        self.later = 0.0
        """Until then it is the handler's, by `time.perf_counter`."""


class DirectReceive:
    """See `grpc_transport.Direct`."""

    def __init__(self, delivery: Delivery, limits: PullLimits, metrics: StoreMetrics) -> None:
        self._delivery = delivery
        self._limits = limits
        self._wishes: dict[bytes, _PlainWish] = {}
        self._held = HeldReceives("Receive", delivery.journal, metrics)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: messages are given out; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            plain = self._wishes.get(message) or self._read(message)
            if plain is None or begun < plain.later or not call.has_room:
                return None
            batch = self._delivery.receive_at_once(plain.wish)
        except (TandemError, DecodeError):
            return None
        if batch is None:
            return None
        try:
            answer = delivery_answers.received(batch, plain.form).SerializeToString()
        except BaseException:
            batch.release()
            raise
        if len(answer) > LARGE_BYTES:
            plain.later = begun + LATER_SECONDS
        return self._held.hold(call, message, answer, batch, begun, long_polling=plain.wish.wait_ms > 0)

    def _read(self, message: bytes) -> _PlainWish | None:
        """Raises DecodeError, and as `delivery_requests.wish`."""
        if len(message) > _LONGEST_WISH:
            return None
        request = delivery_pb2.ReceiveRequest.FromString(message)
        plain = _PlainWish(delivery_requests.wish(request, self._limits), request.form)
        if len(self._wishes) >= _MOST_WISHES:
            self._wishes.clear()
        self._wishes[message] = plain
        return plain


class DirectAcknowledge:
    """See `grpc_transport.Direct`."""

    def __init__(self, delivery: Delivery, metrics: StoreMetrics) -> None:
        self._delivery = delivery
        self._metrics = metrics
        self._held = HeldAcknowledgements("Acknowledge", delivery.journal, delivery.acknowledgement, metrics, _refuse)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: what is dealt with is noted; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            request = delivery_pb2.AcknowledgeRequest.FromString(message)
            handles = request.handles
            if not 1 <= len(handles) <= MOST_HANDLES:
                return None
            outcomes = self._delivery.acknowledge_at_once(request.group, request.topic, handles)
        except (TandemError, DecodeError):
            return None
        if outcomes is None:
            return None
        refused = sum([one.error is not None for one in outcomes])
        if not refused:
            answer = _DONE * len(outcomes)
        else:
            told = delivery_pb2.AcknowledgeResponse(outcomes=delivery_answers.outcomes(outcomes))
            answer = told.SerializeToString()
        if refused < len(outcomes):
            return self._held.hold(call, message, answer, begun)
        self._metrics.called("Acknowledge", "SUCCESS", time.perf_counter() - begun)
        return answer  # nothing has changed: there is nothing to wait for


def _refuse(call: DirectCall, error: NotSafe) -> str:
    """See `held_acknowledgements.Refuse`."""
    call.end_with(*as_told(error, STATUSES))
    return STATUSES[error.kind].rocketmq
