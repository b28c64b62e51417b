"""The nodes: for each the stubs of its services, and which of them takes a broker's changes."""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from grpc_health.v1.health_pb2_grpc import HealthStub

from tandemmq.admin.cluster.channels import make_dialers
from tandemmq.admin.cluster.node_addresses import NodeAddresses
from tandemmq.admin.errors import CallRefused, NoSuchNode, NotPossible, ServiceAway
from tandemmq.admin.settings import AdminSettings
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.node.v1.node_pb2_grpc import NodeStub
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub

if TYPE_CHECKING:
    from tandemmq.delivery.v1.operations_pb2_grpc import OperationsAsyncStub
    from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataAsyncStub
    from tandemmq.node.v1.node_pb2_grpc import NodeAsyncStub
    from tandemmq.replication.v1.replication_pb2_grpc import ReplicationAsyncStub
    from tandemmq.store.v1.store_pb2_grpc import StoreAsyncStub

Answer = TypeVar("Answer")

SERVICES = ("store", "replicator", "metasync")


class KnownNode:
    """One node. Stubs are for calls; nothing is sent before the first."""

    def __init__(self, addresses: NodeAddresses, dialers: Mapping[str, Dialer], timeout: float, timers: Timers) -> None:
        """`dialers`: by service; `timeout`: seconds that a call through `ask` may take."""
        self.timers = timers
        self.addresses = addresses
        self.timeout = timeout
        self.address_of = {
            "store": addresses.store, "replicator": addresses.replicator, "metasync": addresses.metasync,
        }  # fmt: skip
        self.channels = {service: dialers[service].channel(address) for service, address in self.address_of.items()}
        self.store: StoreAsyncStub = StoreStub(self.channels["store"])
        self.operations: OperationsAsyncStub = OperationsStub(self.channels["store"])
        self.replicator: ReplicationAsyncStub = ReplicationStub(self.channels["replicator"])
        self.metasync: MetadataAsyncStub = MetadataStub(self.channels["metasync"])
        self.describe: dict[str, NodeAsyncStub] = {service: NodeStub(one) for service, one in self.channels.items()}
        self.health: dict[str, Any] = {service: HealthStub(one) for service, one in self.channels.items()}

    @property
    def name(self) -> str:
        """As the settings call it."""
        return self.addresses.name

    async def ask(self, service: str, call: Awaitable[Answer], seconds: float | None = None) -> Answer:
        """What a call of `service` answers, within `seconds` if given.

        Raises ServiceAway if it does not answer, CallRefused if it refuses, NotPossible if it does not know admin.
        """
        try:
            async with time_limit(self.timers, self.timeout if seconds is None else seconds):
                return await call
        except TimeoutError:
            raise ServiceAway(service, self.name, self.address_of[service], "no answer in time") from None
        except grpc.aio.AioRpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                reason = error.details() or error.code().name
                raise ServiceAway(service, self.name, self.address_of[service], reason) from error
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:  # not our caller: we are not known there
                raise NotPossible(
                    f"the {service} of node {self.name} does not know who admin is: {error.details()}",
                    remedy="admin's serviceUser and serviceSecretFile must be a user of that service's accessFile",
                ) from error
            raise CallRefused(error.details() or error.code().name, error.code().name) from error

    async def close(self) -> None:
        """Ends the connections."""
        for one in self.channels.values():
            await one.close(None)


class Nodes:
    """All nodes, in the order of the settings."""

    def __init__(self, settings: AdminSettings, timers: Timers | None = None) -> None:
        """Make it inside the running event loop. Raises UnreadableCertificate, UnreadableSecret."""
        self.timers: Timers = timers or LoopTimers()
        dialers = make_dialers(settings)
        timeout = settings.admin_timeout / 1000
        self.all = tuple(KnownNode(one, dialers, timeout, self.timers) for one in settings.nodes)

    def named(self, name: str) -> KnownNode:
        """One node. Raises NoSuchNode."""
        for node in self.all:
            if node.name == name:
                return node
        raise NoSuchNode(f"there is no node {name!r}: known are {', '.join(node.name for node in self.all)}")

    async def close(self) -> None:
        """Ends all connections."""
        for node in self.all:
            await node.close()
