"""Acknowledge, change, forward: what became of messages that were given out.

Push consumers repeat such a call for ever unless it is answered OK, or INVALID_RECEIPT_HANDLE where it is one of the
first two (rule 20).
"""

from collections.abc import Callable

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.common.errors import Kind, TandemError
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.port import ConsumingPort
from tandemmq.store.fronts.rocketmq5.acks import Acks, EncodedAnswer
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.caller import Caller
from tandemmq.store.fronts.rocketmq5.client_settings import is_go, is_push
from tandemmq.store.fronts.rocketmq5.clients import Clients
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal, status_of

MOST_ENTRIES = 1024

LEAST_NACK_MS = 1_000
"""Node's push consumer asks for milliseconds where it means seconds, and would get the message in a hot loop."""

_STALE = (Kind.BAD_HANDLE, Kind.HANDLE_EXPIRED)


class Receipts:
    """Hears what became of messages."""

    def __init__(self, clients: Clients, delivery: Callable[[str], ConsumingPort]) -> None:
        self._clients = clients
        self._delivery = delivery

    async def acknowledge(self, acks: Acks, call: FrontCall) -> calls_pb2.AckMessageResponse | EncodedAnswer:
        """Messages are dealt with. Raises ProtocolRefusal, PermissionDenied, NotDelivering."""
        group, topic = self._demanded(acks.group, acks.topic, call)
        in_time = self.in_time(acks, call.caller)
        return acks.answer(await self._delivery(call.user).acknowledge(group, topic, acks.handles, in_time=in_time))

    def in_time(self, acks: Acks, caller: Caller) -> bool:
        """Whether they have to come in time (`DeliveryPort.acknowledge`). Raises ProtocolRefusal: none, or too many."""
        if not 1 <= len(acks.handles) <= MOST_ENTRIES:
            raise ProtocolRefusal(
                pb.BAD_REQUEST, f"The request has {len(acks.handles):,} entries: allowed is 1 to {MOST_ENTRIES:,}."
            )
        settings = self._clients.settings(caller)
        return not is_go(settings, caller.language)  # its simple consumer does not hear of refusals

    async def change(
        self, request: calls_pb2.ChangeInvisibleDurationRequest, call: FrontCall
    ) -> calls_pb2.ChangeInvisibleDurationResponse:
        """A message comes again later. The handle is in each answer, refusals too (rule 21). Raises nothing typed."""
        handle = request.receipt_handle
        try:
            group, topic = self._demanded(request.group, request.topic, call)
            asked = request.invisible_duration
            milliseconds = asked.seconds * 1_000 + asked.nanos // 1_000_000
            if milliseconds < 0:
                raise ProtocolRefusal(pb.ILLEGAL_INVISIBLE_TIME, f"The invisible time is {milliseconds} ms.")
            if self._hurries(call):
                milliseconds = max(milliseconds, LEAST_NACK_MS)
            handle = await self._delivery(call.user).change_invisible(group, topic, handle, milliseconds)
        except TandemError as error:
            return calls_pb2.ChangeInvisibleDurationResponse(status=status_of(error), receipt_handle=handle)
        return calls_pb2.ChangeInvisibleDurationResponse(status=OK, receipt_handle=handle)

    async def forward(
        self, request: calls_pb2.ForwardMessageToDeadLetterQueueRequest, call: FrontCall
    ) -> calls_pb2.ForwardMessageToDeadLetterQueueResponse:
        """A message goes to the dead letters; a stale handle is no error (rule 20).

        Raises ProtocolRefusal, PermissionDenied, NotDelivering.
        """
        group, topic = self._demanded(request.group, request.topic, call)
        try:
            await self._delivery(call.user).forward(group, topic, request.receipt_handle)
        except TandemError as error:
            if error.kind not in _STALE:
                raise
        return calls_pb2.ForwardMessageToDeadLetterQueueResponse(status=OK)

    def _demanded(self, group: pb.Resource, topic: pb.Resource, call: FrontCall) -> tuple[str, str]:
        names = call.group(group), call.topic(topic)
        call.demand(use_group(names[0]), subscribe(names[1]))
        return names

    def _hurries(self, call: FrontCall) -> bool:
        settings = self._clients.settings(call.caller)
        if settings is None:
            return call.caller.language.upper() == "HTTP"  # what Node says of itself
        return is_push(settings) and settings.user_agent.language == pb.NODE_JS
