"""What gateways ask of this broker: `tandemmq.broker.v1.Broker`, on the internal port."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from tandemmq.broker.v1 import broker_pb2, broker_pb2_grpc
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import answering
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.guard import CallGuard
from tandemmq.store.broker.errors import StoreStarting, StoreStopping
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.internal.gateway_link import BrokerParts, GatewayLink
from tandemmq.store.fronts.internal.gateway_members import GatewayMembers
from tandemmq.store.fronts.internal.gateway_sends import LinkCore
from tandemmq.store.log.replica.mastership import Mastership

log = get_log(__name__)

SERVICE = broker_pb2.DESCRIPTOR.services_by_name["Broker"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class NoMaster(TandemError):
    """This store is no master now: the broker's other addresses may be."""

    kind = Kind.AWAY


class BrokerServicer(broker_pb2_grpc.BrokerServicer):
    """What each question means is written in the contract, broker.proto."""

    def __init__(self, guard: CallGuard) -> None:
        """Every call is refused with StoreStarting until `attach`. `guard` knows who gateways may vouch for."""
        self._guard = guard
        self._parts: BrokerParts | None = None
        self._links: set[GatewayLink] = set()

    def attach(self, name: str, delivery: Delivery, core: LinkCore | None = None) -> None:
        """Answer from a recovered store from now on. `name`: the broker's; `core`: where the compiled one is used."""
        members = GatewayMembers(delivery.sessions, delivery.store.timers)
        self._parts = parts = BrokerParts(name, delivery, members, core)
        self._mastership(parts).changed.listen(self._role_changed)

    def drain(self) -> None:
        """End all links: the store stops."""
        self._parts = None
        for link in tuple(self._links):
            link.stop(StoreStopping("The store stops.", remedy="Link again, there or to its successor."))

    async def Link(  # type: ignore[override]  # it writes through the context, as handlers may, and yields nothing
        self, request_iterator: AsyncIterator[Any], context: Context
    ) -> None:
        """All questions of one gateway."""
        parts = self._parts
        if parts is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        mastership = self._mastership(parts)
        if not _leads(mastership):
            raise NoMaster("This store is no master at present.", remedy="Ask at the broker's other addresses.")
        link = GatewayLink(parts, self._guard, answering(context), lambda: mastership.epoch)
        self._links.add(link)
        log.info("gateway linked", peer=context.peer())
        try:
            await link.run()
        finally:
            self._links.discard(link)
            log.info("gateway unlinked", peer=context.peer())

    def _role_changed(self) -> None:
        if self._parts is not None and not _leads(self._mastership(self._parts)):
            for link in tuple(self._links):
                link.stop(NoMaster("This store is no master any more."))

    @staticmethod
    def _mastership(parts: BrokerParts) -> Mastership:
        return parts.delivery.store.replica.mastership


def add_links_to_server(servicer: BrokerServicer, server: Any) -> None:
    """As the generated function, but requests and answers stay bytes: the compiled core reads and writes them."""
    server.add_registered_method_handlers(SERVICE, {"Link": grpc.stream_stream_rpc_method_handler(servicer.Link)})


def _leads(mastership: Mastership) -> bool:
    return not mastership.is_slave and not mastership.fenced_by
