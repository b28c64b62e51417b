"""RocketMQ5Front: the service of official RocketMQ 5 clients, under the path that they call.

The messages are in a package of ours, so there is no generated code that registers them: the table of methods is here.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from tandemmq.common.serving.guard import CallGuard
from tandemmq.rocketmq5.v2 import calls_pb2, telemetry_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.fronts.broker_port import BrokerPort
from tandemmq.store.fronts.rocketmq5.acks import Acks, encoded
from tandemmq.store.fronts.rocketmq5.answered import Answered, CallTimes
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.client_metrics import SERVICE as METRICS_SERVICE
from tandemmq.store.fronts.rocketmq5.client_metrics import OtlpMetrics
from tandemmq.store.fronts.rocketmq5.client_settings import SettingsAnswers
from tandemmq.store.fronts.rocketmq5.clients import Clients
from tandemmq.store.fronts.rocketmq5.consumer_core import ConsumerCore
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.fronts.rocketmq5.given_messages import GivenMessages
from tandemmq.store.fronts.rocketmq5.heartbeats import Heartbeats
from tandemmq.store.fronts.rocketmq5.identity import SigningIdentity
from tandemmq.store.fronts.rocketmq5.offsets import OffsetReads, Offsets
from tandemmq.store.fronts.rocketmq5.receipts import Receipts
from tandemmq.store.fronts.rocketmq5.receiving import ReceiveCalls
from tandemmq.store.fronts.rocketmq5.routes import Routes
from tandemmq.store.fronts.rocketmq5.sending import Sending
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal
from tandemmq.store.fronts.rocketmq5.telemetry import Telemetry
from tandemmq.store.fronts.rocketmq5.topic_access import TopicAccess
from tandemmq.store.fronts.rocketmq5.transactions import TransactionCalls

SERVICE = "apache.rocketmq.v2.MessagingService"


@dataclass(slots=True)
class _Parts:
    """What answers, once the store is open."""

    routes: Routes
    sending: Sending
    heartbeats: Heartbeats
    telemetry: Telemetry
    receiving: ReceiveCalls
    receipts: Receipts
    transactions: TransactionCalls
    offsets: Offsets


class RocketMQ5Front:
    """All calls of the service, and of the metrics endpoint beside it."""

    def __init__(self, rules: FrontRules, guard: CallGuard, metrics: CallTimes, secrets: Mapping[str, str]) -> None:
        """Every call is refused with StoreStarting until `attach`. `secrets`: users' signing secrets."""
        self._rules = rules
        self.identity = SigningIdentity(guard, secrets)
        """Who calls."""
        self._answered = Answered(self.identity, guard, metrics)
        self._attached: _Parts | None = None
        self._core: ConsumerCore | None = None
        self.metrics = OtlpMetrics()

    def attach(
        self,
        port: BrokerPort,
        own: Callable[[], str],
        offsets: OffsetReads | None = None,
        core: ConsumerCore | None = None,
    ) -> None:
        """Answer from a recovered store, or a cluster, from now on. `own`: this server's `host:port`.

        `offsets`: what is read by offset; None where brokers are behind a gateway. `core`: where the compiled one is
        used.
        """
        self._core = core
        rules = self._rules
        topics = TopicAccess(port, auto_create=rules.auto_create_topics, queues=rules.queues_of_new_topics)
        clients = Clients(port.sessions)

        self._attached = _Parts(
            Routes(topics, port, own, rules.advertised),
            Sending(port, topics, rules.most_body, rules.longest_delay_ms),
            Heartbeats(clients, port.delivery),
            Telemetry(clients, SettingsAnswers(rules.most_body, port), port.sessions.timers),
            ReceiveCalls(topics, clients, port, rules, GivenMessages(rules.most_body, core and core.given)),
            Receipts(clients, port.delivery),
            TransactionCalls(port.delivery),
            Offsets(offsets, rules.most_body),
        )

    def drain(self) -> None:
        """End the streams; clients are told to connect anew. Receives that wait are ended by delivery itself."""
        if self._attached is not None:
            self._attached.telemetry.stop()

    @property
    def receiving(self) -> ReceiveCalls:
        """What gives messages to consumers. Raises StoreStarting."""
        return self._parts.receiving

    @property
    def receipts(self) -> Receipts:
        """What hears what became of messages. Raises StoreStarting."""
        return self._parts.receipts

    @property
    def _parts(self) -> _Parts:
        """What answers. Raises StoreStarting."""
        if self._attached is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        return self._attached

    # -- registering ------------------------------------------------------------------------------------------------

    def services(self) -> "dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]]":
        """Handlers of methods, by service and name."""
        export: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(self.metrics.export)
        return {SERVICE: self._methods(), METRICS_SERVICE: {"Export": export}}

    def _methods(self) -> "dict[str, grpc.RpcMethodHandler[Any, Any]]":
        unary: dict[str, tuple[str, str]] = {
            "QueryRoute": ("routes", "route"),
            "QueryAssignment": ("routes", "assignment"),
            "Heartbeat": ("heartbeats", "beat"),
            "NotifyClientTermination": ("heartbeats", "end"),
            "SendMessage": ("sending", "send"),
            "ChangeInvisibleDuration": ("receipts", "change"),
            "ForwardMessageToDeadLetterQueue": ("receipts", "forward"),
            "EndTransaction": ("transactions", "end"),
            "RecallMessage": ("transactions", "recall"),
            "UpdateOffset": ("offsets", "update"),
            "GetOffset": ("offsets", "get"),
            "QueryOffset": ("offsets", "query"),
        }
        methods = {name: self._unary(name, *where) for name, where in unary.items()}
        answer = calls_pb2.SyncLiteSubscriptionResponse
        methods["SyncLiteSubscription"] = grpc.unary_unary_rpc_method_handler(
            self._answered.unary("SyncLiteSubscription", _no_lite_topics, answer),
            calls_pb2.SyncLiteSubscriptionRequest.FromString,
            answer.SerializeToString,
        )
        methods["AckMessage"] = grpc.unary_unary_rpc_method_handler(
            self._answered.unary("AckMessage", self._acknowledge, calls_pb2.AckMessageResponse), self._acks, encoded
        )
        methods["ReceiveMessage"] = grpc.unary_stream_rpc_method_handler(
            self._answered.streamed("ReceiveMessage", self._receive, calls_pb2.ReceiveMessageResponse),
            calls_pb2.ReceiveMessageRequest.FromString,
        )
        methods["PullMessage"] = grpc.unary_stream_rpc_method_handler(
            self._answered.streamed("PullMessage", self._pull, calls_pb2.PullMessageResponse),
            calls_pb2.PullMessageRequest.FromString,
        )
        methods["Telemetry"] = grpc.stream_stream_rpc_method_handler(
            self._answered.duplex("Telemetry", self._telemetry),
            telemetry_pb2.TelemetryCommand.FromString,
            telemetry_pb2.TelemetryCommand.SerializeToString,
        )
        return methods

    def _unary(self, name: str, part: str, method: str) -> "grpc.RpcMethodHandler[Any, Any]":
        """A method with one request and one answer, by RocketMQ's naming of both."""
        request, answer = getattr(calls_pb2, f"{name}Request"), getattr(calls_pb2, f"{name}Response")

        async def handler(given: Any, call: FrontCall) -> Any:
            return await getattr(getattr(self._parts, part), method)(given, call)

        guarded: Any = self._answered.unary(name, handler, answer)
        return grpc.unary_unary_rpc_method_handler(guarded, request.FromString, answer.SerializeToString)

    def _acks(self, data: bytes) -> Acks:
        return Acks(data, self._core and self._core.acks)

    async def _acknowledge(self, acks: Acks, call: FrontCall) -> Any:
        return await self._parts.receipts.acknowledge(acks, call)

    async def _receive(self, request: calls_pb2.ReceiveMessageRequest, call: FrontCall) -> None:
        await self._parts.receiving.receive(request, call)

    async def _pull(self, request: calls_pb2.PullMessageRequest, call: FrontCall) -> None:
        await self._parts.offsets.pull(request, call)

    def _telemetry(self, requests: AsyncIterator[Any], call: FrontCall) -> AsyncIterator[Any]:
        return self._parts.telemetry.serve(requests, call)


async def _no_lite_topics(request: calls_pb2.SyncLiteSubscriptionRequest, call: FrontCall) -> Any:
    raise ProtocolRefusal(pb.UNSUPPORTED, "Lite topics are not supported.")
