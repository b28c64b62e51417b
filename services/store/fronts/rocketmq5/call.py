"""Call: one call on its way to an answer: who makes it, what it may do, how long it may take."""

import math
from typing import Any

import grpc

from tandemmq.common.access.needs import Need
from tandemmq.common.access.principal import Principal
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.fronts.rocketmq5.caller import Caller
from tandemmq.store.fronts.rocketmq5.names import group_name, topic_name

Context = grpc.aio.ServicerContext[Any, Any]


class FrontCall:
    """What a handler is given beside the request."""

    __slots__ = ("caller", "context", "method", "principal")

    def __init__(self, method: str, caller: Caller, context: Context, principal: Principal | None) -> None:
        """`principal`: who was recognized; None where everybody may do everything."""
        self.method = method
        self.caller = caller
        self.context = context
        self.principal = principal

    def topic(self, resource: pb.Resource) -> str:
        """The store's name of a topic. Raises ProtocolRefusal."""
        return topic_name(resource, self.caller.namespace)

    def group(self, resource: pb.Resource) -> str:
        """The store's name of a group. Raises ProtocolRefusal."""
        return group_name(resource, self.caller.namespace)

    def demand(self, *needs: Need) -> None:
        """All of them. Raises PermissionDenied."""
        if self.principal is not None:
            self.principal.demand(needs, self.method)

    def demand_one_of(self, first: Need, *others: Need) -> None:
        """One of them is enough. Raises PermissionDenied."""
        principal = self.principal
        if principal is not None and not any(principal.may(need) for need in (first, *others)):
            raise principal.refusal(first, self.method)

    def may(self, need: Need) -> bool:
        """Whether the caller may do that."""
        return self.principal is None or self.principal.may(need)

    @property
    def user(self) -> str:
        """Who was recognized; empty where everybody may do everything."""
        return "" if self.principal is None else self.principal.name

    def seconds_left(self) -> float:
        """Until the caller's deadline; infinite without one."""
        context: Any = self.context  # the stubs know of no calls without a deadline
        left: float | None = context.time_remaining()
        return math.inf if left is None else left
