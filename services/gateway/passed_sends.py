"""PassedSends: the short way of SendMessage in a gateway: plain messages, passed on by the compiled core.

A call is held until its answer has come. That it is stored and safe is told by the core; the rest here, or by the
handler, which asks again: where the link is lost, or the store refuses because it may be about to be replaced.

A message whose link is lost may be stored, and only its own broker recognizes a copy. So handlers go on when that is
back; after SOON_SECONDS they may choose another one, as `BrokerCluster` does.
"""

import time

import grpc

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.choosing import chosen
from tandemmq.gateway.cluster import SOON_SECONDS, BrokerCluster
from tandemmq.gateway.questions import refusal
from tandemmq.gateway.remote_broker import ELSEWHERE, RemoteBroker
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.rocketmq5.direct_send import DirectSendMessage, takes_normal
from tandemmq.store.fronts.rocketmq5.passed_sends import Held, HeldCore
from tandemmq.store.fronts.rocketmq5.sending import entry_of, refused_entry
from tandemmq.store.fronts.rocketmq5.statuses import joined

log = get_log(__name__)


class PassedSends:
    """See the module. `core.answer` is the `grpc_transport.Direct`."""

    accepts = staticmethod(DirectSendMessage.accepts)

    def __init__(self, cluster: BrokerCluster, most_body: int, times: CallMetrics) -> None:
        """`most_body`: bytes of the largest body. Raises ImportError where the core is not built."""
        from tandemmq.store.fronts.rocketmq5.compiled.passed_sends import CompiledPassedSends

        self.cluster = cluster
        self.most_body = most_body
        self.times = times
        self.core = CompiledPassedSends(self, takes_normal)
        self._brokers = tuple(cluster.brokers.values())
        self._lost: dict[str, list[Held]] = {}
        """By broker: calls whose link was lost a moment ago."""
        for broker in self._brokers:
            broker.made = self._made
            broker.other_topics = self.core.look_up_again

    def get(self, topic: str) -> TopicConfig | None:
        """See `PassedWay`. Where a broker is away the handler decides who is asked."""
        first = None
        for broker in self._brokers:
            found = broker.topics.get(topic)
            if broker.link is None or found is None or not found.writable:
                return None
            first = first or found
        return first

    def choose(self, key: bytes) -> HeldCore | None:
        """See `PassedWay`; as `BrokerCluster` chooses."""
        brokers = self.cluster.brokers
        link = brokers[chosen(key.decode(), brokers)].link_with_room
        held = None if link is None else link.held
        return held.core if isinstance(held, PassedCalls) else None

    def good_times(self) -> Distribution:
        """See `PassedWay`."""
        return self.times.times("SendMessage", "SUCCESS")

    def lost(self, broker: RemoteBroker, calls: list[Held]) -> None:
        """The link was lost over which the messages of these calls were passed on."""
        if len(self._brokers) == 1:
            _hand_over(calls)  # there is no other one to which the handler could send a copy
        elif calls:
            self._lost[broker.name] = calls
            broker.timers.call_later(SOON_SECONDS, _hand_over, calls)

    def _made(self, broker: RemoteBroker, link: BrokerLink) -> None:
        link.held = held = PassedCalls(self, broker, link)
        if len(self._brokers) == 1:
            self.core.only = held.core
        _hand_over(self._lost.pop(broker.name, []))  # handlers begin in the next turn, when the link is there


class PassedCalls:
    """The `HeldSends` of one link."""

    def __init__(self, sends: PassedSends, broker: RemoteBroker, link: BrokerLink) -> None:
        from tandemmq.store.fronts.rocketmq5.compiled.passed_sends import CompiledHeldSends

        self.core = CompiledHeldSends(sends.core, link)
        self.hear, self.take = self.core.hear, self.core.take
        self._sends = sends
        self._broker = broker

    def told(self, answer: broker_pb2.Answer) -> bool:
        """See `HeldSends`."""
        held = self.core.pop(answer.id)
        if held is None:
            return False
        try:
            self._tell(held, answer)
        except Exception as error:  # noqa: BLE001 - whoever sent it waits, and so do the others; a newer store says more
            log.failure("the answer of a broker makes no sense", error, broker=self._broker.name)
            held[0].end_with(grpc.StatusCode.UNKNOWN, "The broker's answer makes no sense: see the gateway's log.", ())
        return True

    def leave(self) -> None:
        """See `HeldSends`."""
        self._sends.lost(self._broker, self.core.leave())

    def _tell(self, held: Held, answer: broker_pb2.Answer) -> None:
        call, data, begun = held
        if answer.HasField("stored"):
            entry = entry_of(self._sends.cluster.stored(self._broker, answer))
        else:
            error: TandemError = refusal(answer.refusal)
            if error.kind in ELSEWHERE:
                call.hand_over(data)
                return
            entry = refused_entry(calls_pb2.SendMessageRequest.FromString(data).messages[0], error)
        response = calls_pb2.SendMessageResponse(status=joined([entry.status]), entries=(entry,))
        code = response.status.code
        outcome = "SUCCESS" if code == pb.OK else pb.Code.Name(code)
        self._sends.times.called("SendMessage", outcome, time.perf_counter() - begun)
        call.answer_later(response.SerializeToString())


def _hand_over(calls: list[Held]) -> None:
    """Have handlers go on with calls, once."""
    for call, request, _ in calls:
        call.hand_over(request)
    calls.clear()
