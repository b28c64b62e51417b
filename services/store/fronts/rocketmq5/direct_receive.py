"""DirectReceiveMessage: a ReceiveMessage from the bytes of its request to those of its answers, without a task.

Plain are receives of simple consumers for messages that are there, and that the compiled core writes. All else goes the
way of every call: `receiving`.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import CallFailure, DirectCall, HeldCall
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.store.delivery.port import Wish
from tandemmq.store.fronts.receives_of_turn import PlainWish, ReceivesOfTurn
from tandemmq.store.fronts.rocketmq5.caller import caller_of
from tandemmq.store.fronts.rocketmq5.receiving import ReceiveCalls

PATH = "/apache.rocketmq.v2.MessagingService/ReceiveMessage"

_MOST_WISHES = 4_096
"""So many different requests are remembered; a consumer makes the same ones again and again, one for each queue."""
_LONGEST_WISH = 1_024


class DirectReceiveMessage:
    """See `grpc_transport.Direct`."""

    def __init__(self, receiving: ReceiveCalls, receives: ReceivesOfTurn) -> None:
        self._receiving = receiving
        self._receives = receives
        self._asked: dict[tuple[bytes, str], PlainWish] = {}
        self._wishes: dict[tuple[Wish, bytes], PlainWish] = {}

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """See `ReceivesOfTurn`."""
        begun = time.perf_counter()
        try:
            namespace = caller_of(call).named().namespace
            plain = self._asked.get((message, namespace)) or self._read(message, namespace)
            return None if plain is None else self._receives(plain, message, call, begun)
        except (TandemError, CallFailure, DecodeError):
            return None

    def _read(self, message: bytes, namespace: str) -> PlainWish | None:
        """Raises DecodeError, ProtocolRefusal."""
        if len(message) + len(namespace) > _LONGEST_WISH:
            return None
        request = calls_pb2.ReceiveMessageRequest.FromString(message)
        wish = self._receiving.plain_wish(request, namespace)
        if wish is None:
            return None
        if len(self._asked) >= _MOST_WISHES:
            self._asked.clear()
            self._wishes.clear()
        topic = request.message_queue.topic
        plain = self._wishes.get((wish, key := topic.SerializeToString()))
        if plain is None:
            plain = self._wishes[wish, key] = PlainWish(wish, self._receiving.plain_answer(topic), long_polling=True)
        self._asked[message, namespace] = plain
        return plain
