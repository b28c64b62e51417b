"""PassedReceives: the short way of ReceiveMessage in a gateway, for simple consumers and messages that are there.

The broker is asked for what it has now. A call is held until its answer has come. Where there is nothing, the link is
lost or the store refuses, the handler asks again, and waits.
"""

import time
from functools import partial
from typing import NamedTuple

from google.protobuf.message import DecodeError

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, CallFailure, DirectCall, HeldCall
from tandemmq.common.log_output import get_log
from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.gateway import questions
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.cluster import BrokerCluster
from tandemmq.gateway.cluster_delivery import GatewayBatch
from tandemmq.gateway.questions import Answer, Question
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.fronts.receives_of_turn import LARGE_BYTES, LATER_SECONDS, PlainWish
from tandemmq.store.fronts.rocketmq5.caller import caller_of
from tandemmq.store.fronts.rocketmq5.receiving import ReceiveCalls

log = get_log(__name__)

_MOST_WISHES = 4_096
"""So many different requests are remembered; a consumer makes the same ones again and again."""
_LONGEST_WISH = 1_024


class Known(NamedTuple):
    """A request that came before."""

    plain: PlainWish
    broker: str
    """Whose queue it names; it may be none that is here."""
    asked: broker_pb2.Receive


class PassedReceive(NamedTuple):
    """A call that waits for its answer."""

    call: DirectCall
    request: bytes
    begun: float
    known: Known


class PassedReceives:
    """See the module; it is a `grpc_transport.Direct`."""

    def __init__(self, cluster: BrokerCluster, receiving: ReceiveCalls, times: CallMetrics) -> None:
        self._cluster = cluster
        self._receiving = receiving
        self._times = times
        self._known: dict[tuple[bytes, str], Known] = {}

    def __call__(self, message: bytes, call: DirectCall) -> HeldCall | None:
        """HELD: a broker is asked for what it has; None: the handler answers."""
        begun = time.perf_counter()
        try:
            namespace = caller_of(call).named().namespace
            known = self._known.get((message, namespace)) or self._read(message, namespace)
        except (TandemError, CallFailure, DecodeError):
            return None
        if known is None or begun < known.plain.later or not call.has_room or self._cluster.stopping:
            return None
        broker = self._broker(known)
        link = None if broker is None else broker.link_with_room
        if broker is None or link is None:
            return None
        held = PassedReceive(call, message, begun, known)
        link.pass_on(Question(receive=known.asked), partial(self._heard, held, broker, link))
        return HELD

    def _read(self, message: bytes, namespace: str) -> Known | None:
        """Raises DecodeError, ProtocolRefusal."""
        if len(message) + len(namespace) > _LONGEST_WISH:
            return None
        request = calls_pb2.ReceiveMessageRequest.FromString(message)
        wish = self._receiving.plain_wish(request, namespace)
        if wish is None:
            return None
        if len(self._known) >= _MOST_WISHES:
            self._known.clear()
        plain = PlainWish(wish, self._receiving.plain_answer(request.message_queue.topic), long_polling=True)
        known = Known(plain, request.message_queue.broker.name, questions.receive(wish, 0).receive)
        self._known[message, namespace] = known
        return known

    def _broker(self, known: Known) -> RemoteBroker | None:
        """Who is asked; None where that is not plain: topic or group may have to be made, or there is more than one."""
        brokers = self._cluster.brokers
        wish = known.plain.wish
        if any(one.topics.get(wish.topic) is None for one in brokers.values()):
            return None
        broker = brokers.get(known.broker) or (next(iter(brokers.values())) if len(brokers) == 1 else None)
        if broker is None or (len(brokers) > 1 and broker.groups.get(wish.group) is None):
            return None
        return broker

    def _heard(self, held: PassedReceive, broker: RemoteBroker, link: BrokerLink, answer: Answer | None) -> None:
        call, request, begun, known = held
        if answer is None or not answer.given.messages:
            call.hand_over(request)
            return
        begin = self._cluster.tokens.begin(broker.name)
        messages = [
            GivenMessage(one.topic, one.record, one.number, begin + one.handle, one.invisible_ms)
            for one in answer.given.messages
        ]
        batch = GatewayBatch(messages, link, answer.id, answer.given.bytes)
        if call.gone:
            batch.release()
            return
        if not call.has_room:  # its peer does not read: the handler asks again when there is room to answer
            batch.release()
            call.hand_over(request)
            return
        try:
            data = known.plain.answer(batch)
        except Exception as error:  # noqa: BLE001 - whoever asked waits
            log.failure("messages were given out, and not answered with", error, broker=broker.name)
            data = None
        if data is None or len(data) > LARGE_BYTES:
            known.plain.later = begun + LATER_SECONDS
        if data is None:
            batch.release()
            call.hand_over(request)
            return
        self._times.called("ReceiveMessage", "SUCCESS", time.perf_counter() - begun, long_polling=True)
        call.answer_later(data)
        batch.sent(_connected)


def _connected() -> bool:
    """To the store, the connection is the link of this gateway."""
    return True
