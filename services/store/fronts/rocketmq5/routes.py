"""QueryRoute and QueryAssignment: which queues a topic has, and what a push consumer receives from.

Clients are sent where they came: the endpoints of a request are echoed, unless the settings say an address. Who comes
through another network, a mapped port or a proxy reaches the broker by what it has dialled, and by nothing else.

A client may have dialled a list of both nodes of a pair. It takes one that accepts a connection, which a slave does
too: so both tell it the address of the master alone, where they find their own in the list.
"""

from collections.abc import Callable
from ipaddress import ip_address

from tandemmq.common.access.needs import Action, group, publish, subscribe
from tandemmq.common.grpc_transport import dialled
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.broker_port import BrokerPort
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.message_types import accepted
from tandemmq.store.fronts.rocketmq5.statuses import OK
from tandemmq.store.fronts.rocketmq5.topic_access import TopicAccess

ANY_QUEUE = -1
MOST_ADDRESSES = 16


class Routes:
    """Says where queues are: here, whatever broker has them."""

    def __init__(
        self,
        topics: TopicAccess,
        port: BrokerPort,
        own: Callable[[], str],
        advertised: str | None = None,
    ) -> None:
        """`own`: this server's `host:port`, for those who do not say what they have dialled; `advertised`: for all."""
        self._topics = topics
        self._port = port
        self._own = own
        self._advertised = advertised

    async def route(self, request: calls_pb2.QueryRouteRequest, call: FrontCall) -> calls_pb2.QueryRouteResponse:
        """The queues of a topic. Raises ProtocolRefusal, PermissionDenied."""
        name = call.topic(request.topic)
        call.demand_one_of(subscribe(name, Action.VIEW), publish(name))
        endpoints = self._endpoints(request.endpoints, call)
        queues = [
            pb.MessageQueue(
                topic=request.topic,
                id=queue,
                permission=_permission(config, queue),
                broker=pb.Broker(name=broker, id=0, endpoints=endpoints),
                accept_message_types=accepted(config),
            )
            for broker, config in await self._topics.everywhere(name, call)
            for queue in range(max(config.read_queues, config.write_queues))
        ]
        return calls_pb2.QueryRouteResponse(status=OK, message_queues=queues)

    async def assignment(
        self, request: calls_pb2.QueryAssignmentRequest, call: FrontCall
    ) -> calls_pb2.QueryAssignmentResponse:
        """What a push consumer receives from. Raises ProtocolRefusal, PermissionDenied."""
        name, consumers = call.topic(request.topic), call.group(request.group)
        call.demand(subscribe(name), group(consumers))
        brokers = await self._topics.everywhere(name, call)
        known = await self._port.find_group(consumers)
        ordered = known is not None and known.consume_message_orderly
        endpoints = self._endpoints(request.endpoints, call)
        assignments = [
            calls_pb2.Assignment(
                message_queue=pb.MessageQueue(
                    topic=request.topic,
                    id=number,
                    permission=pb.READ_WRITE,
                    broker=pb.Broker(name=broker, id=0, endpoints=endpoints),
                )
            )
            for broker, config in brokers
            if config.readable and config.read_queues
            for number in (range(config.read_queues) if ordered else [ANY_QUEUE])
        ]
        return calls_pb2.QueryAssignmentResponse(status=OK, assignments=assignments)

    def _endpoints(self, asked: pb.Endpoints, call: FrontCall) -> pb.Endpoints:
        if self._advertised is not None:
            return endpoints_of(self._advertised)
        if 1 <= len(asked.addresses) <= MOST_ADDRESSES and asked.scheme != pb.ADDRESS_SCHEME_UNSPECIFIED:
            return asked if len(asked.addresses) == 1 else self._of_master(asked, call)
        if asked.addresses:
            first = asked.addresses[0]
            return pb.Endpoints(scheme=_scheme(first.host), addresses=[first])
        return endpoints_of(self._own())

    def _of_master(self, asked: pb.Endpoints, call: FrontCall) -> pb.Endpoints:
        """Of a list of addresses this node's, if it is the master, or else the others; all where it is not in it."""
        own = dialled(call.context)
        leads = self._port.leads
        addresses = [one for one in asked.addresses if ((one.host, one.port) == own) is leads]
        return pb.Endpoints(scheme=asked.scheme, addresses=addresses) if addresses else asked


def endpoints_of(address: str) -> pb.Endpoints:
    """`host:port` as endpoints."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    return pb.Endpoints(scheme=_scheme(host), addresses=[pb.Address(host=host, port=int(port))])


def _scheme(host: str) -> pb.AddressScheme.ValueType:
    try:
        return pb.IPv4 if ip_address(host.strip("[]")).version == 4 else pb.IPv6
    except ValueError:
        return pb.DOMAIN_NAME


def _permission(config: TopicConfig, queue: int) -> pb.Permission.ValueType:
    readable = config.readable and queue < config.read_queues
    writable = config.writable and queue < config.write_queues
    if readable and writable:
        return pb.READ_WRITE
    if readable:
        return pb.READ
    return pb.WRITE if writable else pb.NONE
