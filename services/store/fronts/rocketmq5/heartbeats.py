"""Heartbeat and NotifyClientTermination: clients that are there, and that go."""

from collections.abc import Callable

from tandemmq.common.access.needs import group as use_group
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.store.delivery.port import ConsumingPort
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.clients import CONSUMERS, Clients
from tandemmq.store.fronts.rocketmq5.statuses import OK


class Heartbeats:
    """Hears that clients live, and that they end."""

    def __init__(self, clients: Clients, delivery: Callable[[str], ConsumingPort]) -> None:
        """`delivery` gives what is told of clients that end, for a user."""
        self._clients = clients
        self._delivery = delivery

    async def beat(self, request: calls_pb2.HeartbeatRequest, call: FrontCall) -> calls_pb2.HeartbeatResponse:
        """A client lives. Nothing need be known of it (rule 23). Raises ProtocolRefusal, PermissionDenied."""
        caller = call.caller
        if request.HasField("group") and request.group.name and request.client_type in CONSUMERS:
            group = call.group(request.group)
            call.demand(use_group(group))
            self._clients.member(caller, group, producer=False)
        self._clients.heard_of(caller)
        return calls_pb2.HeartbeatResponse(status=OK)

    async def end(
        self, request: calls_pb2.NotifyClientTerminationRequest, call: FrontCall
    ) -> calls_pb2.NotifyClientTerminationResponse:
        """A client ends: what it holds with renewal comes again. Raises ProtocolRefusal, PermissionDenied."""
        caller = call.caller
        groups = set()
        if request.HasField("group") and request.group.name:
            named = call.group(request.group)
            call.demand(use_group(named))
            groups.add(named)
        groups.update(self._clients.gone(caller))
        for group in groups:
            self._delivery(call.user).gone(group, caller.client_id)
        return calls_pb2.NotifyClientTerminationResponse(status=OK)
