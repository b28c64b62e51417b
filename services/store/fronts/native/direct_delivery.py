"""Receives and acknowledgements from the bytes of requests to those of answers, without a coroutine, task or future.

What is not the plain case is not answered here: a receive that must wait, one with renewal or an attempt id, a group
that must be made first, whatever is refused. `DeliveryServicer` does those, and says what is wrong.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.common.serving.guard import as_told
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import Batch, Outcome
from tandemmq.store.fronts.acknowledgements_of_turn import AcknowledgementsOfTurn, GivenBack, HandlesOf
from tandemmq.store.fronts.held_acknowledgements import AcknowledgementCore
from tandemmq.store.fronts.held_receives import ReceiveCore
from tandemmq.store.fronts.native import delivery_answers, delivery_requests
from tandemmq.store.fronts.native.delivery_requests import MOST_HANDLES
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.fronts.receives_of_turn import PlainWish, ReceivesOfTurn
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import message_pb2

RECEIVE_PATH = "/tandemmq.delivery.v1.Delivery/Receive"
ACKNOWLEDGE_PATH = "/tandemmq.delivery.v1.Delivery/Acknowledge"

Encode = Callable[[Batch], bytes]
"""Encodes what is given out."""

_MOST_WISHES = 4_096
"""So many different requests to receive are remembered; a consumer makes the same one again and again."""
_LONGEST_WISH = 1_024
_DONE = delivery_pb2.AcknowledgeResponse(outcomes=[delivery_pb2.Outcome()]).SerializeToString()
"""The answer to one handle that is dealt with; that to many is as many of these."""


class DirectReceive:
    """See `grpc_transport.Direct`."""

    def __init__(self, delivery: Delivery, limits: PullLimits, metrics: StoreMetrics) -> None:
        self._limits = limits
        self._received_by: Callable[[Encode], Encode] | None = None
        self._receives = ReceivesOfTurn("Receive", delivery, delivery.journal, metrics)
        self.wishes: dict[bytes, PlainWish] = {}
        """What requests ask for. It stays the same object, as `kept` does: the compiled core looks into it."""
        self.kept, self.kept_for = self._receives.kept, self._receives.kept_for

    def use_core(self, core: ReceiveCore, received_by: Callable[[Encode], Encode]) -> None:
        """Have the compiled core write answers with records, and give them. `received_by` is around the Python twin."""
        self._receives.use_core(core)
        self._received_by = received_by

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """See `ReceivesOfTurn`."""
        begun = time.perf_counter()
        try:
            plain = self.wishes.get(message) or self._read(message)
            return None if plain is None else self._receives(plain, message, call, begun)
        except (TandemError, DecodeError):
            return None

    def _read(self, message: bytes) -> PlainWish | None:
        """Raises DecodeError, and as `delivery_requests.wish`."""
        if len(message) > _LONGEST_WISH:
            return None
        request = delivery_pb2.ReceiveRequest.FromString(message)
        wish = delivery_requests.wish(request, self._limits)
        encode: Encode = partial(_received, form=request.form)
        if self._received_by is not None and request.form == message_pb2.RAW:
            encode = self._received_by(encode)
        plain = PlainWish(wish, encode, long_polling=wish.wait_ms > 0)
        if len(self.wishes) >= _MOST_WISHES:
            self.wishes.clear()
        self.wishes[message] = plain
        return plain


def _received(batch: Batch, form: message_pb2.RecordForm.ValueType) -> bytes:
    return delivery_answers.received(batch, form).SerializeToString()


class DirectAcknowledge:
    """See `grpc_transport.Direct`."""

    def __init__(self, delivery: Delivery, metrics: StoreMetrics) -> None:
        self._acknowledgements = AcknowledgementsOfTurn(
            "Acknowledge", delivery, delivery.journal, delivery.acknowledgement, metrics, _refuse
        )
        self.kept, self.kept_for = self._acknowledgements.kept, self._acknowledgements.kept_for
        self.given: type[GivenBack] = _Handles

    def use_core(self, core: AcknowledgementCore) -> None:
        """Have the compiled core give the good answers."""
        self._acknowledgements.use_core(core)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """See `AcknowledgementsOfTurn`."""
        begun = time.perf_counter()
        try:
            request = delivery_pb2.AcknowledgeRequest.FromString(message)
            given = _Handles(request.handles)
            if not 1 <= len(given.handles) <= MOST_HANDLES:
                return None
            return self._acknowledgements(_asked(request), given, message, call, begun)
        except (TandemError, DecodeError):
            return None

    def asked(self, head: bytes) -> HandlesOf | None:
        """Whose handles a request has that begins with `head`: its group and topic."""
        try:
            return _asked(delivery_pb2.AcknowledgeRequest.FromString(head))
        except DecodeError:
            return None


def _asked(request: delivery_pb2.AcknowledgeRequest) -> HandlesOf:
    return new_tuple(HandlesOf, (request.group, request.topic, False))


class _Handles:
    """See `acknowledgements_of_turn.GivenBack`."""

    __slots__ = ("handles",)

    def __init__(self, handles: Sequence[str]) -> None:
        self.handles = handles

    def answered(self, outcomes: Sequence[Outcome]) -> tuple[bytes, str]:
        """See `GivenBack`."""
        for one in outcomes:
            if one.error is not None:
                told = delivery_pb2.AcknowledgeResponse(outcomes=delivery_answers.outcomes(outcomes))
                return told.SerializeToString(), "SUCCESS"
        return _DONE * len(outcomes), "SUCCESS"


def _refuse(call: DirectCall, error: NotSafe) -> str:
    """See `held_acknowledgements.Refuse`."""
    call.end_with(*as_told(error, STATUSES))
    return STATUSES[error.kind].rocketmq
