"""DirectReceiveMessage: a ReceiveMessage from the bytes of its request to those of its answers, without a task.

Plain are receives of simple consumers for messages that are there, and that the compiled core writes. All else goes the
way of every call: `receiving`.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import CallFailure, DirectCall, HeldCall, framed
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.store.delivery.port import AtOncePort
from tandemmq.store.fronts.held_receives import LARGE_BYTES, LATER_SECONDS, HeldReceives
from tandemmq.store.fronts.rocketmq5.caller import caller_of
from tandemmq.store.fronts.rocketmq5.receiving import ReceiveCalls

PATH = "/apache.rocketmq.v2.MessagingService/ReceiveMessage"

_MOST_LATER = 1_024
"""Topics that are left to the handler: they had a large answer, or a message that is not plain."""


class DirectReceiveMessage:
    """See `grpc_transport.Direct`."""

    def __init__(self, receiving: ReceiveCalls, delivery: AtOncePort, held: HeldReceives) -> None:
        self._receiving = receiving
        self._delivery = delivery
        self._held = held
        self._later: dict[str, float] = {}

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: messages are given out; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            request = calls_pb2.ReceiveMessageRequest.FromString(message)
            wish = self._receiving.plain_wish(request, caller_of(call).named())
            if wish is None or not call.has_room or self._is_for_later(wish.topic, begun):
                return None
            batches = self._delivery.receive_at_once(wish)
        except (TandemError, CallFailure, DecodeError):
            return None
        if not batches:
            return None
        [batch] = batches
        try:
            parts = self._receiving.plain_parts(batch.messages, request.message_queue.topic)
        except BaseException:
            batch.release()
            raise
        if parts is None:
            self._leave_for_later(wish.topic, begun)
            batch.release()
            return None
        answer = framed(parts)
        if len(answer) > LARGE_BYTES:
            self._leave_for_later(wish.topic, begun)
        return self._held.hold(call, message, answer, batch, begun, long_polling=True)

    def _is_for_later(self, topic: str, now: float) -> bool:
        return bool(self._later) and self._later.get(topic, 0.0) > now

    def _leave_for_later(self, topic: str, now: float) -> None:
        if len(self._later) >= _MOST_LATER:
            self._later.clear()
        self._later[topic] = now + LATER_SECONDS
