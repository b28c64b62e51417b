"""The settings of a node's services."""

import asyncio

from tandemmq.admin.cluster.nodes import SERVICES, KnownNode, Nodes
from tandemmq.admin.errors import AdminError, BadAdminRequest
from tandemmq.admin.v1 import admin_pb2
from tandemmq.node.v1 import node_pb2


async def read_configuration(nodes: Nodes, request: admin_pb2.GetConfigurationRequest) -> admin_pb2.Configuration:
    """See admin.proto. Raises NoSuchNode, BadAdminRequest."""
    node = nodes.named(request.node)
    if request.service and request.service not in SERVICES:
        raise BadAdminRequest(f"there is no service {request.service!r}: known are {', '.join(SERVICES)}")
    wanted = [request.service] if request.service else list(SERVICES)
    answers = await asyncio.gather(*(_describe(node, service) for service in wanted))
    return admin_pb2.Configuration(
        services=[one for one in answers if isinstance(one, node_pb2.DescribeResponse)],
        missing=[one for one in answers if isinstance(one, admin_pb2.ServiceState)],
    )


async def _describe(node: KnownNode, service: str) -> node_pb2.DescribeResponse | admin_pb2.ServiceState:
    request = node_pb2.DescribeRequest(settings=True)
    try:
        return await node.ask(service, node.describe[service].Describe(request))
    except AdminError as error:
        reason = str(getattr(error, "reason", error.message))
        return admin_pb2.ServiceState(service=service, address=node.address_of[service], reason=reason)
