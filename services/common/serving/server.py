"""ServiceHost: a gRPC server with health, reflection, metrics, TLS, error mapping and a graceful end.

A service's start-up reads as a list of steps::

    async def serve(settings: StoreSettings) -> None:
        prepare_process()
        configure_logging(settings.log_level, settings.log_format)
        store = MessageStore.open(settings.store_config())
        host = ServiceHost(settings, metrics.registry)
        host.add(add_StoreServicer_to_server, StoreServicer(store), access.RULES)
        host.on_drain(store.release_long_polls)
        host.on_close(store.close)
        await host.start()
        await host.run_until_stopped()

    def main() -> int:
        return run(serve(settings))
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import uvloop
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import Direct, Load, Server
from tandemmq.common.log_output import get_log
from tandemmq.common.metrics.metrics_endpoint import MetricsEndpoint
from tandemmq.common.processes.garbage import ShortCollections
from tandemmq.common.processes.started_pool import start_loop_threads
from tandemmq.common.serving.grpc_server import bind, load_of, make_server
from tandemmq.common.serving.grpc_status import STATUSES, StatusTable
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.serving.guarded_direct import GuardedDirect
from tandemmq.common.serving.health import SERVICE_NAME as HEALTH_SERVICE
from tandemmq.common.serving.health import HealthBoard
from tandemmq.common.serving.shutdown import StopRequest, StopSignal
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.timers import LoopTimers

if TYPE_CHECKING:
    from tandemmq.common.access.gate import Gate
    from tandemmq.common.access.rules import Rules

log = get_log(__name__)

Step = Callable[[], Awaitable[None] | None]
Servicer = TypeVar("Servicer")


class AddressTaken(TandemError):
    """The gRPC server cannot listen where the settings say."""

    kind = Kind.AWAY
    remedy = "stop who listens there, or choose another port; or the address is not this machine's"


class ServiceHost:
    """One gRPC server and everything around it. Make it inside a running event loop."""

    def __init__(
        self,
        settings: ServerSettings,
        registry: CollectorRegistry | None = None,
        statuses: StatusTable = STATUSES,
        stop: StopRequest | None = None,
        port_setting: str = "grpcPort",
    ) -> None:
        """`registry` is what the metrics endpoint shows; without one there is no endpoint.

        `statuses`: how errors are told. `stop`: who stops it; without one the signals of the process do.
        `port_setting`: by which name people know the port.
        Raises AccessFileError.
        """
        self.settings = settings
        self.health = HealthBoard()
        self.guard = CallGuard(_gate(settings), statuses)
        self.stop_signal = StopSignal() if stop is None else stop
        self.port = 0
        """The port that gRPC really listens on, once started."""
        self.metrics_port = 0
        self._registry = registry
        self._port_setting = port_setting
        self._metrics: MetricsEndpoint | None = None
        self._collections: ShortCollections | None = None
        self._stopping = False
        self._server = make_server(settings)
        self._guarded = self.guard.over(self._server)
        self._drain_steps: list[Step] = []
        self._close_steps: list[Step] = []

    def add(self, register: Callable[[Servicer, Any], None], servicer: Servicer, rules: "Rules | None" = None) -> None:
        """Registers a servicer through its generated `add_…Servicer_to_server`, guarded.

        `rules` say who may call its methods when `accessFile` is set; all of them must have one then.
        Raises MissingRule.
        """
        self._guarded.rules = rules
        register(servicer, self._guarded)

    def add_foreign(self, service: str, methods: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]") -> None:
        """Registers methods of somebody else's contract, under its name and as they are.

        They know themselves who calls, what that one may do, and how errors are told. Reflection does not show them.
        """
        self._server.add_registered_method_handlers(service, methods)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, dict(methods)),))

    def add_direct(self, path: str, direct: Direct) -> None:
        """Have plain requests to a method answered the short way; what that does not answer goes to the servicer.

        Only where our transport serves. With a gate, of callers who are known and may.
        """
        if not isinstance(self._server, Server):
            return
        if (gate := self.guard.gate) is not None:
            direct = GuardedDirect(gate, path, self._server.deserializer(path), direct)
        self._server.add_direct_method(path, direct)

    def add_direct_foreign(self, path: str, direct: Direct) -> None:
        """As `add_direct`, of somebody else's contract: the short way asks itself who calls, and whether he may."""
        if isinstance(self._server, Server):
            self._server.add_direct_method(path, direct)

    def take_bytes(self, path: str) -> None:
        """Have requests to a method given to its servicer as bytes; with a gate, or with grpcio, they are messages."""
        if self.guard.gate is None and isinstance(self._server, Server):
            self._server.take_bytes(path)

    @property
    def takes_direct(self) -> bool:
        """Whether short ways are used: our transport serves."""
        return isinstance(self._server, Server)

    def use_lanes(self) -> None:
        """Have what is direct taken by compiled code, where our transport serves. Raises ImportError: not built."""
        if isinstance(self._server, Server):
            self._server.use_lanes()

    @property
    def load(self) -> Load | None:
        """What the server holds for its callers, for metrics; None with grpcio."""
        return load_of(self._server)

    def on_drain(self, step: Step) -> None:
        """Called when stopping begins: ends long polls and streams that would else wait out the grace."""
        self._drain_steps.append(step)

    def on_close(self, step: Step) -> None:
        """Called, last added first, when no call is left."""
        self._close_steps.append(step)

    async def start(self) -> None:
        """Listens and answers; every service is NOT_SERVING until `serving`. Raises AddressTaken, MetricsPortTaken."""
        services = list(self._guarded.services)
        self.health.add_to(self._server)
        reflection.enable_server_reflection([*services, HEALTH_SERVICE, reflection.SERVICE_NAME], self._server)
        await self.health.announce(services)
        self.port = self._bind()
        try:
            self._serve_metrics()
        except BaseException:
            await self._server.stop(None)  # gives the port back
            raise
        await self._server.start()
        if self.guard.gate is not None:
            self.guard.gate.keeper.start()
        log.info("listening", grpc=f"{self.settings.grpc_host}:{self.port}", metrics_port=self.metrics_port)

    async def serving(self) -> None:
        """The services are ready: health says so from now on."""
        await self.health.serving()
        if self._collections is None:  # once: a service may come and go with its health
            self._collections = ShortCollections(LoopTimers())
            self._collections.start()
        log.info("serving", services=",".join(self._guarded.services))

    async def run_until_stopped(self, announce: Callable[[], None] | None = None) -> None:
        """Serves until SIGTERM, SIGINT or `stop_signal.request`, then stops gracefully.

        `announce` is called when signals are caught and health says SERVING: whoever hears it may use and stop us.
        """
        self.stop_signal.listen()
        await self.serving()
        if announce is not None:
            announce()
        reason = await self.stop_signal.wait()
        log.info("stopping", reason=reason, in_flight=self.guard.in_flight)
        await self.stop()

    async def stop(self) -> None:
        """Health first, then no new calls, then the calls in flight within the grace, then the close steps.

        A second stop does nothing: grpc's own must never run twice, that crashes the process.
        """
        if self._stopping:
            return
        self._stopping = True
        await self.health.stopping()
        stopped = asyncio.ensure_future(self._server.stop(self.settings.shutdown_grace_ms / 1000))
        for step in self._drain_steps:
            await _run(step)
        await stopped
        for step in reversed(self._close_steps):
            await _run(step)
        if self.guard.gate is not None:
            await self.guard.gate.keeper.close()
        if self._metrics is not None:
            self._metrics.close()
        if self._collections is not None:
            self._collections.stop()
        log.info("stopped")

    def _serve_metrics(self) -> None:
        if self._registry is not None and self.settings.metrics_enable:
            self._metrics = MetricsEndpoint(self._registry, self.settings.metrics_host, self.settings.metrics_port)
            self.metrics_port = self._metrics.port

    def _bind(self) -> int:
        try:
            return bind(self._server, self.settings)
        except RuntimeError as error:
            raise AddressTaken(f"cannot serve gRPC on {self.settings.grpc_address} ({self._port_setting})") from error


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a service's main coroutine on uvloop to its end. Raises NoThreads."""
    uvloop.run(_with_threads(main))


async def _with_threads(main: Coroutine[Any, Any, None]) -> None:
    """Threads first: a service that has begun must not fail one day because the system starts no more."""
    try:
        start_loop_threads()
    except BaseException:
        main.close()
        raise
    await main


def _gate(settings: ServerSettings) -> "Gate | None":
    """What asks callers who they are; None without an accessFile. Raises AccessFileError."""
    if settings.access_file is None:
        return None
    from tandemmq.common.access.gate import Gate
    from tandemmq.common.access.keeper import AccessKeeper

    return Gate(AccessKeeper(settings.access_file))


async def _run(step: Step) -> None:
    outcome = step()
    if inspect.isawaitable(outcome):
        await outcome
