"""ReceiveMessage: a status, then messages, then the time, then the end: clients wait for the end (rule 17)."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import connection_of, framed, write_all
from tandemmq.rocketmq5.v2 import calls_pb2, settings_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.port import ANY, Batch, FilterKind, GivenMessage, Subscription, Wish
from tandemmq.store.delivery.receiving.receive_rules import MOST_INVISIBLE_MS
from tandemmq.store.fronts.broker_port import BrokerPort
from tandemmq.store.fronts.native.room import room_to_answer
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.client_settings import LONG_POLL_SECONDS, is_go
from tandemmq.store.fronts.rocketmq5.clients import Clients
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.fronts.rocketmq5.given_messages import GivenMessages
from tandemmq.store.fronts.rocketmq5.names import group_name, topic_name
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal
from tandemmq.store.fronts.rocketmq5.topic_access import TopicAccess

MOST_MESSAGES = 32
"""Of one answer, as in the reference; a push consumer divides its cache by it."""
LONGEST_POLL_SECONDS = 300.0
BEFORE_DEADLINE_SECONDS = 0.5
"""An answer that comes after the client's deadline is lost, and its messages with it until they come again."""
LONGEST_ATTEMPT_ID = 128

_PIECE = 64 << 10
"""Bytes of an answer that are written together; a message that is larger is written alone."""
_OK = calls_pb2.ReceiveMessageResponse(status=OK).SerializeToString()
_NO_MESSAGE = calls_pb2.ReceiveMessageResponse(
    status=pb.Status(code=pb.MESSAGE_NOT_FOUND, message="no message")
).SerializeToString()


class ReceiveCalls:
    """Gives messages to consumers."""

    def __init__(
        self, topics: TopicAccess, clients: Clients, port: BrokerPort, rules: FrontRules, given: GivenMessages
    ) -> None:
        self._topics = topics
        self._clients = clients
        self._port = port
        self._least_invisible_ms = rules.least_invisible_ms
        self._given = given

    async def receive(self, request: calls_pb2.ReceiveMessageRequest, call: FrontCall) -> None:
        """Write the parts of one answer. Raises ProtocolRefusal, PermissionDenied, and as `DeliveryPort.receive`."""
        wish = await self._wish(request, call)
        try:
            batch = await self._port.delivery(call.user).receive(wish, partial(room_to_answer, call.context))
        except TandemError as error:
            if error.kind is not Kind.STOPPING:
                raise
            await write_all(call.context, [_NO_MESSAGE, _time()])  # there may be some where the client asks next
            return
        try:
            await self._write(batch.messages, request.message_queue.topic, call)
            batch.sent(connection_of(call.context))
        finally:
            batch.release()

    def plain_wish(self, request: calls_pb2.ReceiveMessageRequest, namespace: str) -> Wish | None:
        """What is wanted now, whoever asks, if it is plain; None: `receive` says it. Raises ProtocolRefusal."""
        if request.auto_renew or request.attempt_id or request.batch_size < 1:
            return None
        return Wish(
            group=group_name(request.group, namespace),
            topic=topic_name(request.message_queue.topic, namespace),
            subscription=_subscription(request.filter_expression),
            most=min(request.batch_size, MOST_MESSAGES),
            invisible_ms=_invisible(request, self._least_invisible_ms),
        )

    def plain_answer(self, topic: pb.Resource) -> Callable[[Batch], bytes | None]:
        """Encodes answers with messages of a topic that are plain; None: `receive` writes them."""
        encoded = self._given.of(topic)

        def answer(batch: Batch) -> bytes | None:
            parts = [_OK]
            for given in batch.messages:
                part = encoded.at_once(given)
                if part is None:
                    return None
                parts.append(part)
            parts.append(_time())
            return framed(parts)

        return answer

    async def _write(self, messages: Sequence[GivenMessage], topic: pb.Resource, call: FrontCall) -> None:
        """The parts of an answer, as many at a time as make a piece worth sending."""
        parts = [_OK if messages else _NO_MESSAGE]
        encoded, size = self._given.of(topic, call.caller.namespace), 0
        for given in messages:
            part = encoded.at_once(given)
            if part is None:
                part = await encoded.looked_into(given)
            size += len(part)
            if size > _PIECE:
                await write_all(call.context, parts)
                parts, size = [], len(part)
            parts.append(part)
        if size > _PIECE:  # one large message: it is not copied
            await write_all(call.context, parts)
            parts = []
        parts.append(_time())
        await write_all(call.context, parts)

    async def _wish(self, request: calls_pb2.ReceiveMessageRequest, call: FrontCall) -> Wish:
        group, topic = call.group(request.group), call.topic(request.message_queue.topic)
        call.demand(use_group(group), subscribe(topic))
        await self._topics.found_or_made(topic, call)
        settings = self._clients.settings(call.caller)
        return Wish(
            group=group,
            topic=topic,
            queue=ANY,  # whatever queue is asked for: a message may lie in another one (rule 12)
            subscription=_subscription(request.filter_expression),
            most=await self._most(request, settings, call, group),
            invisible_ms=_invisible(request, self._least_invisible_ms),
            wait_ms=round(1_000 * _wait(request, settings, call)),
            renew=request.auto_renew,
            client_id=call.caller.client_id,
            attempt_id=_attempt(request),
            broker=request.message_queue.broker.name,
        )

    async def _most(
        self,
        request: calls_pb2.ReceiveMessageRequest,
        settings: settings_pb2.Settings | None,
        call: FrontCall,
        group: str,
    ) -> int:
        if request.batch_size < 1:
            raise ProtocolRefusal(pb.BAD_REQUEST, f"The batch size is {request.batch_size}: it must be at least 1.")
        if request.auto_renew and is_go(settings, call.caller.language):
            known = await self._port.find_group(group)
            if known is not None and known.consume_message_orderly:
                return 1  # it goes on with the next of a batch where one has failed
        return min(request.batch_size, MOST_MESSAGES)


def _subscription(given: pb.FilterExpression) -> Subscription:
    if given.type not in (pb.FILTER_TYPE_UNSPECIFIED, pb.TAG, pb.SQL):
        raise ProtocolRefusal(pb.ILLEGAL_FILTER_EXPRESSION, f"Filter type {int(given.type)} is none.")
    kind = FilterKind.SQL if given.type == pb.SQL else FilterKind.TAG
    return Subscription(given.expression.strip() or "*", kind)


def _invisible(request: calls_pb2.ReceiveMessageRequest, least: int) -> int:
    if not request.HasField("invisible_duration"):
        return 0
    given = _milliseconds(request.invisible_duration)
    if given < least:
        if request.auto_renew:
            return 0
        raise _illegal_invisible("small", given, f"at least {least:,}")
    if given > MOST_INVISIBLE_MS:
        raise _illegal_invisible("large", given, f"at most {MOST_INVISIBLE_MS:,}")
    return given


def _illegal_invisible(what: str, given: int, bound: str) -> ProtocolRefusal:
    """RocketMQ's words, for which programs look."""
    return ProtocolRefusal(
        pb.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too {what}: {given:,} ms.", remedy=f"Ask for {bound} ms."
    )


def _attempt(request: calls_pb2.ReceiveMessageRequest) -> str:
    if len(request.attempt_id) > LONGEST_ATTEMPT_ID:
        raise ProtocolRefusal(pb.BAD_REQUEST, f"The attempt id has over {LONGEST_ATTEMPT_ID} characters.")
    return request.attempt_id


def _wait(request: calls_pb2.ReceiveMessageRequest, settings: settings_pb2.Settings | None, call: FrontCall) -> float:
    """Seconds to wait for a message: as asked, or as the client's settings say; in time for its deadline (rule 19)."""
    left = call.seconds_left()
    if request.HasField("long_polling_timeout"):
        return seconds_to_wait(request.long_polling_timeout, call)
    if settings is not None and settings.subscription.HasField("long_polling_timeout"):
        asked = _milliseconds(settings.subscription.long_polling_timeout) / 1_000
    elif settings is not None and settings.HasField("request_timeout") and math.isfinite(left):
        asked = left - _milliseconds(settings.request_timeout) / 1_000
    else:
        asked = float(LONG_POLL_SECONDS)
    return _in_time(asked, left)


def seconds_to_wait(asked: Duration, call: FrontCall) -> float:
    """Seconds of a long poll: as asked, and in time for the client's deadline. Raises ProtocolRefusal."""
    milliseconds = _milliseconds(asked)
    if milliseconds < 0:
        raise ProtocolRefusal(pb.ILLEGAL_POLLING_TIME, f"The time of the long poll is {milliseconds} ms.")
    return _in_time(milliseconds / 1_000, call.seconds_left())


def _in_time(asked: float, left: float) -> float:
    return max(0.0, min(asked, LONGEST_POLL_SECONDS, left - BEFORE_DEADLINE_SECONDS))


def _milliseconds(given: Duration) -> int:
    return given.seconds * 1_000 + given.nanos // 1_000_000


def _time() -> bytes:
    now = time.time_ns()
    at = Timestamp(seconds=now // 10**9, nanos=now % 10**9)
    return calls_pb2.ReceiveMessageResponse(delivery_timestamp=at).SerializeToString()
