"""ClassicClients: the ports of the remoting front and what is behind them, as one part of the store's life."""

from collections.abc import Mapping
from dataclasses import replace

from tandemmq.common.guard import CallGuard
from tandemmq.common.log_output import get_log
from tandemmq.common.made_certificate import FoundContext
from tandemmq.common.tls import tls_context
from tandemmq.common.wire.remoting.frames import Frame
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.connection import Connection
from tandemmq.store.fronts.remoting.dispatch import CallTimes
from tandemmq.store.fronts.remoting.front import RemotingFront
from tandemmq.store.fronts.remoting.server import PortTaken, RemotingServer
from tandemmq.store.remoting_settings import RemotingMode
from tandemmq.store.settings import StoreSettings

log = get_log(__name__)

VIP_BELOW = 2
"""The second port, for clients with the VIP channel, is so far below listenPort."""


class ClassicClients:
    """Ports are taken before the store is opened, since their number stands in records; they answer when it is open."""

    def __init__(self, settings: StoreSettings) -> None:
        """Take the ports, if classic clients are to be served. Raises PortTaken, UnreadableCertificate."""
        self._front: RemotingFront | None = None
        self.server: RemotingServer | None = None
        self.port = 0
        if settings.remoting_mode is not RemotingMode.OFF:
            self._bind(settings)

    def _bind(self, settings: StoreSettings) -> None:
        tls = FoundContext(settings).get if settings.tls_and_plain else tls_context(settings)
        server = RemotingServer(self, settings.remoting_limits(), tls)
        host = settings.grpc_host
        try:
            self.port = server.bind(host, settings.listen_port)
        except PortTaken as error:
            if settings.remoting_mode is RemotingMode.ON:
                raise
            log.warning("classic clients are not served", reason=error.explain())
            return
        self.server = server
        try:
            vip = server.bind(host, self.port - VIP_BELOW if settings.listen_port else 0)
        except PortTaken as error:
            log.warning("classic clients are not served on the VIP channel", reason=error.explain())
            vip = 0
        log.info("listening for classic clients", remoting=f"{host}:{self.port}", vip=vip)

    def known_to(self, settings: StoreSettings) -> StoreSettings:
        """The settings with the port that was taken: message ids lead there."""
        return replace(settings, listen_port=self.port) if self.port and not settings.listen_port else settings

    async def serve(
        self,
        settings: StoreSettings,
        broker: Broker,
        delivery: Delivery,
        guard: CallGuard,
        secrets: Mapping[str, str],
        metrics: CallTimes,
    ) -> None:
        """Answer from an open store from now on."""
        if self.server is not None:
            self._front = RemotingFront(broker, delivery, settings.remoting_rules(), guard, secrets, metrics)
            await self.server.start()

    def drain(self) -> None:
        """Accept no more connections; waits end with the store's."""
        if self.server is not None:
            self.server.drain()

    async def stop(self) -> None:
        """End all connections."""
        if self._front is not None:
            await self._front.stop()
        if self.server is not None:
            await self.server.stop()

    # -- `connection.Served` ----------------------------------------------------------------------------------------

    def frame(self, frame: Frame, connection: Connection) -> None:
        """See `connection.Served`."""
        if self._front is not None:
            self._front.frame(frame, connection)

    def read(self) -> None:
        """See `connection.Served`."""
        if self._front is not None:
            self._front.read()

    def lost(self, connection: Connection) -> None:
        """See `connection.Served`."""
        if self._front is not None:
            self._front.lost(connection)
