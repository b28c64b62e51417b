"""Receives and acknowledgements from the bytes of requests to those of answers, without a coroutine, task or future.

What is not the plain case is not answered here: a receive that must wait, one with renewal or an attempt id, a group
that must be made first, whatever is refused. `DeliveryServicer` does those, and says what is wrong.

All calls of one turn of the event loop wait as one for the journal, which is written at the end of the turn. Those that
ask for the same are looked after together then, but for the first of them.
"""

import logging
import time
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.common.guard import as_told
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import Batch, Outcome, Wish
from tandemmq.store.fronts.calls_of_turn import CallsOfTurn, KeptCall, hand_over
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgements
from tandemmq.store.fronts.held_receives import LARGE_BYTES, LATER_SECONDS, HeldReceives
from tandemmq.store.fronts.native import delivery_answers, delivery_requests
from tandemmq.store.fronts.native.delivery_requests import MOST_HANDLES
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import message_pb2

log = logging.getLogger(__name__)

RECEIVE_PATH = "/tandemmq.delivery.v1.Delivery/Receive"
ACKNOWLEDGE_PATH = "/tandemmq.delivery.v1.Delivery/Acknowledge"

_MOST_WISHES = 4_096
"""So many different requests to receive are remembered; a consumer makes the same one again and again."""
_LONGEST_WISH = 1_024
_FEW_HANDLES = 64
"""Requests with more handles are answered by themselves."""
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
        self._same = CallsOfTurn[_PlainWish, None](delivery.journal, self._give_together)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: messages are given out, or may be at the end of the turn; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            plain = self._wishes.get(message) or self._read(message)
            if plain is None or begun < plain.later or not call.has_room:
                return None
            if self._same.keep(plain, call, message, begun, None):
                return HELD
            batches = self._delivery.receive_at_once(plain.wish)
        except (TandemError, DecodeError):
            return None
        if not batches:
            return None
        self._same.first(plain)
        return self._give(plain, batches[0], call, message, begun)

    def _give(self, plain: _PlainWish, batch: Batch, call: DirectCall, message: bytes, begun: float) -> HeldCall:
        try:
            answer = delivery_answers.received(batch, plain.form).SerializeToString()
        except BaseException:
            batch.release()
            raise
        if len(answer) > LARGE_BYTES:
            plain.later = begun + LATER_SECONDS
        return self._held.hold(call, message, answer, batch, begun, long_polling=plain.wish.wait_ms > 0)

    def _give_together(self, plain: _PlainWish, kept: list[KeptCall[None]]) -> None:
        """Give each call its messages; the handler has them where there are none at all, or answers are large."""
        kept = [one for one in kept if not one.call.gone]
        try:
            batches = self._delivery.receive_at_once(plain.wish, len(kept)) if kept else ()
        except TandemError:
            batches = ()
        for (call, request, begun, _), batch in zip(kept, batches, strict=False):
            try:
                self._give(plain, batch, call, request, begun)
            except Exception:  # the others have theirs
                log.exception("messages were given out, and not answered with")
                call.hand_over(request)
        rest = kept[len(batches) :]
        if not batches or time.perf_counter() < plain.later:
            hand_over(rest)
        elif rest:
            self._same.again(plain, rest)

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
        self._same = CallsOfTurn[tuple[str, str], Sequence[str]](delivery.journal, self._take_together)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: what is dealt with is noted, or is at the end of the turn; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            request = delivery_pb2.AcknowledgeRequest.FromString(message)
            handles = request.handles
            if not 1 <= len(handles) <= MOST_HANDLES:
                return None
            asked = request.group, request.topic
            if len(handles) <= _FEW_HANDLES and self._same.keep(asked, call, message, begun, handles):
                return HELD
            outcomes = self._delivery.acknowledge_at_once(*asked, handles)
        except (TandemError, DecodeError):
            return None
        if outcomes is None:
            return None
        answer, changed = _answer_of(outcomes)
        if changed:
            self._same.first(asked)
            return self._held.hold(call, message, answer, begun)
        self._metrics.called("Acknowledge", "SUCCESS", time.perf_counter() - begun)
        return answer  # nothing has changed: there is nothing to wait for

    def _take_together(self, asked: tuple[str, str], kept: list[KeptCall[Sequence[str]]]) -> None:
        """Take back the handles of all calls; the handler has them where that cannot be said at once."""
        try:
            outcomes = self._delivery.acknowledge_at_once(*asked, [handle for one in kept for handle in one.said])
        except TandemError:
            outcomes = None
        if outcomes is None:
            hand_over(kept)
            return
        at = 0
        for call, request, begun, handles in kept:
            answer, _ = _answer_of(outcomes[at : at + len(handles)])
            at += len(handles)
            self._held.hold(call, request, answer, begun)


def _answer_of(outcomes: Sequence[Outcome]) -> tuple[bytes, bool]:
    """The answer to an acknowledgement, and whether it has changed anything."""
    refused = sum([one.error is not None for one in outcomes])
    if not refused:
        return _DONE * len(outcomes), True
    told = delivery_pb2.AcknowledgeResponse(outcomes=delivery_answers.outcomes(outcomes))
    return told.SerializeToString(), refused < len(outcomes)


def _refuse(call: DirectCall, error: NotSafe) -> str:
    """See `held_acknowledgements.Refuse`."""
    call.end_with(*as_told(error, STATUSES))
    return STATUSES[error.kind].rocketmq
