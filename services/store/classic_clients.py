"""ClassicClients: the ports of the remoting front and what is behind them, as one part of the store's life."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import Protocol

from tandemmq.common.calling.addresses import host_port
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.identity.made_certificate import FoundContext
from tandemmq.common.log_output import get_log
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.server import RemotingServer, TlsContext
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.settings.client_port_settings import TlsMode
from tandemmq.store.assembly import modes_link, names_link
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.administration.parts import administration
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.traffic_history import TrafficCounters, TrafficHistory
from tandemmq.store.fronts.remoting.direct_send import FramesCore
from tandemmq.store.fronts.remoting.dispatch import Dispatch, RemotingTimes
from tandemmq.store.fronts.remoting.front import RemotingFront
from tandemmq.store.fronts.remoting.identity import RemotingIdentity
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.fronts.remoting.scans import SCANS
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.modes_link import ModesLink
from tandemmq.store.names_link import NamesLink
from tandemmq.store.remoting_settings import RemotingMode
from tandemmq.store.settings import StoreSettings
from tandemmq.store.table_edits import TableEdits

log = get_log(__name__)

_ANNOUNCED_SECONDS = 1.0
"""Name servers have so long to hear of a new topic before whoever made it is answered all the same."""
VIP_BELOW = 2
"""The second port, for clients with the VIP channel, is so far below listenPort."""


class ClassicMetrics(RemotingTimes, TrafficCounters, Protocol):
    """Hears of calls, and knows what came in and went out."""


class ClassicPortTaken(TandemError):
    """Classic clients cannot be served where the settings say."""

    kind = Kind.AWAY
    remedy = "Does another broker listen there? Set listenPort to another port, or remotingMode=off."


class ClassicClients:
    """Ports are taken before the store is opened, since their number stands in records; they answer when it is open."""

    def __init__(
        self, settings: StoreSettings, guard: CallGuard, secrets: Mapping[str, str], metrics: ClassicMetrics
    ) -> None:
        """Take the ports, if classic clients are to be served. `secrets`: users' signing secrets.

        Raises PortTaken, UnreadableCertificate.
        """
        self.port = 0
        self._modes: RequestModes | None = None
        self._front: RemotingFront | None = None
        self._server: RemotingServer | None = None
        self._names: NamesLink | None = None
        self._modes_link: ModesLink | None = None
        self._counters = metrics
        self._traffic: TrafficHistory | None = None
        self._grace = settings.shutdown_grace_ms / 1000
        self._dispatch = Dispatch(RemotingIdentity(guard, secrets), metrics, SCANS)
        if settings.remoting_mode is not RemotingMode.OFF:
            self._bind(settings)

    def _bind(self, settings: StoreSettings) -> None:
        tls = None if settings.tls_mode is TlsMode.DISABLED else FoundContext(settings).get
        only_tls = tls is not None and not settings.tls_and_plain
        server = RemotingServer(self._dispatch.handlers, settings.remoting_limits(), closed=self._closed)
        host = settings.grpc_host
        try:
            self.port = _taken(server, host, settings.listen_port, tls, only_tls=only_tls)
        except ClassicPortTaken as error:
            if settings.remoting_mode is RemotingMode.ON:
                raise
            log.warning("classic clients are not served", reason=error.explain())
            return
        self._server = server
        try:
            vip = self.port - VIP_BELOW if settings.listen_port else 0
            vip = _taken(server, host, vip, tls, only_tls=only_tls)
        except ClassicPortTaken as error:
            log.warning("classic clients are not served on the VIP channel", reason=error.explain())
            vip = 0
        log.info("listening for classic clients", remoting=f"{host}:{self.port}", vip=vip)

    def read_modes(self, settings: StoreSettings) -> None:
        """Read what is kept for them, when the directory is this store's alone. Raises UnreadableTable."""
        if self._server is not None:
            self._modes = RequestModes(settings.store_path_root_dir, LocalDisk(), SystemClock())

    def known_to(self, settings: StoreSettings) -> StoreSettings:
        """The settings with the port that was taken: message ids lead there."""
        return replace(settings, listen_port=self.port) if self.port and not settings.listen_port else settings

    @property
    def name_servers(self) -> Sequence[FollowedPeer]:
        """Those at which it registers, once it serves."""
        return () if self._names is None else self._names.peers

    def problems(self) -> list[str]:
        """Name servers at which it is not registered, and why."""
        return [f"{one.peer} {one.name}: {one.problem}" for one in self.name_servers if one.problem]

    async def serve(
        self,
        settings: StoreSettings,
        broker: Broker,
        delivery: Delivery,
        edits: TableEdits,
        core: FramesCore | None = None,
    ) -> None:
        """Answer from an open store from now on, and register at name servers. `core`: asked first by sends."""
        if self._server is not None:
            assert self._modes is not None, "they are read"
            names = self._names = names_link(settings, broker)
            following = self._modes_link = modes_link(settings, broker, self._modes)
            announced = partial(names.settled, _ANNOUNCED_SECONDS)
            traffic = self._traffic = TrafficHistory(self._counters, broker.store.timers, _today)
            traffic.start()
            self._front = RemotingFront(
                broker,
                delivery,
                settings.remoting_rules(),
                self._dispatch,
                self._modes,
                announced,
                core,
                traffic.came_back,
            )
            rules = AdministrationRules(
                cluster=settings.broker_cluster_name,
                broker_name=settings.broker_name,
                address=host_port(settings.own_ip(), settings.listen_port),
                edits=edits,
                properties=lambda: "".join(f"{one.name}={one.value}\n" for one in settings.describe()),
                started_ms=int(time.time() * 1000),
                announced=announced,
                traffic=traffic,
            )
            self._dispatch.add(administration(broker, delivery, self._front.clients, rules))
            if following is not None:
                following.start()
            await self._server.start()
            names.start()

    async def leave(self) -> None:
        """Unregister at name servers: nobody shall come any more."""
        if self._names is not None:
            await self._names.stop()

    async def stop(self) -> None:
        """Answer what is being worked at, and end all connections."""
        if self._traffic is not None:
            self._traffic.stop()
        if self._modes_link is not None:
            await self._modes_link.stop()
        if self._server is not None:
            await self._server.stop(self._grace if self._front is not None else 0)

    def _closed(self, connection: RemotingConnection) -> None:
        if self._front is not None:
            self._front.lost(connection)


def _today() -> date:
    """By this machine's zone."""
    return datetime.now().astimezone().date()


def _taken(server: RemotingServer, host: str, port: int, tls: TlsContext | None, *, only_tls: bool) -> int:
    """The port's number. Raises PortTaken."""
    try:
        return server.add_port(f"{host}:{port}", tls, only_tls=only_tls)
    except RuntimeError as error:
        raise ClassicPortTaken(f"cannot serve classic clients on {host}:{port}") from error
