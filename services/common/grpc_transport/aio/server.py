"""Server: what `grpc.aio.server` gives, on this package's transport."""

import asyncio
import logging
import platform
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Any

import grpc

from tandemmq.common.grpc_transport.aio.first_byte import Context as FirstByteContext
from tandemmq.common.grpc_transport.aio.first_byte import FirstByte
from tandemmq.common.grpc_transport.aio.first_step import first_step, takes_stand_ins, without_step
from tandemmq.common.grpc_transport.aio.handlers import Direct, Methods
from tandemmq.common.grpc_transport.aio.lanes import Lanes
from tandemmq.common.grpc_transport.aio.listen import BACKLOG, Bound, listen
from tandemmq.common.grpc_transport.aio.load import Load, Told
from tandemmq.common.grpc_transport.aio.protocol import Protocol
from tandemmq.common.grpc_transport.aio.turns import Turns
from tandemmq.common.grpc_transport.http2.budget import Budget
from tandemmq.common.grpc_transport.http2.headers import HeadCache
from tandemmq.common.grpc_transport.http2.limits import Limits

log = logging.getLogger(__name__)

_TICK_SECONDS = 1.0
_NO_STAND_INS = (
    "asyncio of Python %s has changed asyncio.tasks._enter_task or _leave_task, which this server begins calls with:"
    " every call gets a task of its own, which is slower; use a Python that TandemMQ was tested with"
)


class Server(grpc.aio.Server):
    """A gRPC server on the running event loop. Make it with `server`."""

    __slots__ = ("active",)  # the compiled core counts where it lies

    def __init__(
        self,
        interceptors: Sequence[grpc.aio.ServerInterceptor],
        limits: Limits,
        compression: grpc.Compression | None,
        maximum_concurrent_rpcs: int | None,
        reuse_port: bool,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.limits = limits
        self.compression = None if compression is grpc.Compression.NoCompression else compression
        self.maximum_concurrent_rpcs = maximum_concurrent_rpcs
        self.methods = Methods(interceptors)
        self.heads = HeadCache()
        self.lanes: Lanes | None = None
        """See `use_lanes`."""
        self.protocols: set[Protocol] = set()
        """Open connections."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Those of calls whose handlers had to wait; a handler may outlive its call."""
        self.budget = Budget(limits.memory_budget)
        """What all connections hold together."""
        self.turns = Turns(self.loop, limits.turn_seconds)
        self.told = Told()
        """What peers were made to give up."""
        self.take_step = first_step
        """Calls a handler."""
        if not takes_stand_ins():
            self.take_step = without_step
            log.warning(_NO_STAND_INS, platform.python_version())
        self.active = 0
        """Calls that have begun and not ended."""
        self.turned_away = 0
        """Connections over the limit since the last tick."""
        self.stopping = False
        self._reuse_port = reuse_port
        self._bound: list[tuple[Bound, ssl.SSLContext | FirstByteContext | None]] = []
        self._listeners: list[asyncio.Server | FirstByte] = []
        self._ticking: asyncio.TimerHandle | None = None
        self._started = False
        self._empty = asyncio.Event()
        """Set while the server stops and no connection is left."""
        self._terminated = asyncio.Event()

    # -- what is served, and where ------------------------------------------------------------------------------------

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        """See grpc.aio.Server. Plain functions as handlers run on the event loop: they must not block."""
        self.methods.add_generic(tuple(generic_rpc_handlers))

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    ) -> None:
        """See grpc.aio.Server."""
        self.methods.register(service_name, method_handlers)

    def add_direct_method(self, path: str, direct: Direct) -> None:
        """Have requests to a unary method, `/package.Service/Method`, answered the short way where it can be.

        Raises KeyError: no such method is registered.
        """
        self.methods.set_direct(path, direct)

    def deserializer(self, path: str) -> Callable[[bytes], Any]:
        """What makes a message of the bytes of a method's requests. Raises KeyError: no such method is registered."""
        return self.methods.deserializer(path)

    def take_bytes(self, path: str) -> None:
        """Have the requests of a method, `/package.Service/Method`, given to its handler as bytes: see `Methods`."""
        self.methods.take_bytes(path)

    def use_lanes(self) -> None:
        """Have connections that come from now on answer plain calls of direct methods by compiled code.

        Not where each call must be looked at: with interceptors, compression, or a limit of concurrent calls.
        Raises ImportError where that code is not built.
        """
        if not self.methods.intercepted and self.compression is None and self.maximum_concurrent_rpcs is None:
            self.lanes = Lanes(self)

    def add_insecure_port(self, address: str) -> int:
        """Binds `host:port`, `[v6]:port`, `unix:path` or `unix-abstract:name`; gives the port. Raises RuntimeError."""
        return self._bind(address, None)

    def add_secure_port(self, address: str, server_credentials: ssl.SSLContext) -> int:  # type: ignore[override]
        """The same with TLS. It takes an `ssl.SSLContext`: grpc.ServerCredentials cannot be looked into.

        Raises TypeError for such, and RuntimeError when the address cannot be bound.
        """
        if not isinstance(server_credentials, ssl.SSLContext):
            raise TypeError(
                f"add_secure_port takes an ssl.SSLContext here, not {type(server_credentials).__name__}: "
                "make one with ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) and load_cert_chain"
            )
        server_credentials.set_alpn_protocols(["h2"])
        return self._bind(address, server_credentials)

    def add_mixed_port(self, address: str, context: FirstByteContext) -> int:
        """Both on one port: the first byte of each connection tells whether it is TLS. Raises RuntimeError.

        `context` gives what TLS is served with; it is asked for each such connection, and should remember. It may raise
        OSError: then the connection is closed.
        """

        async def with_alpn() -> ssl.SSLContext:
            found = await context()
            found.set_alpn_protocols(["h2"])
            return found

        return self._bind(address, with_alpn)

    def _bind(self, address: str, tls: ssl.SSLContext | FirstByteContext | None) -> int:
        if self._started:
            raise ValueError("Cannot bind a port after the server has started")
        found = listen(address, self._reuse_port)
        self._bound += [(bound, tls) for bound in found]
        return found[0].port

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Accept connections. Raises UsageError the second time."""
        if self._started:
            raise grpc.aio.UsageError("the server has been started before")
        self._started = True
        for bound, tls in self._bound:
            plain = bound.socket
            create = self.loop.create_unix_server if plain.family == socket.AF_UNIX else self.loop.create_server
            if callable(tls):
                seconds = self.limits.handshake_seconds
                self._listeners.append(FirstByte(plain, self._protocol, tls, seconds, self._is_full))
                continue
            handshake = self.limits.handshake_seconds if tls is not None else None
            self._listeners.append(
                await create(self._protocol, sock=plain, ssl=tls, backlog=BACKLOG, ssl_handshake_timeout=handshake)
            )
        self._ticking = self.loop.call_later(_TICK_SECONDS, self._tick)

    async def stop(self, grace: float | None) -> None:
        """No new connections and calls; calls that run have `grace` seconds, then they are cancelled.

        May be called again, also meanwhile: the shorter grace wins.
        """
        if not self.stopping:
            self.stopping = True
            for listener in self._listeners:
                listener.close()
            for bound, _ in self._bound:
                bound.remove(also_close=not self._started)
            for protocol in list(self.protocols):
                protocol.drain()
        self._check_empty()
        if grace:
            try:
                await asyncio.wait_for(self._empty.wait(), grace)
            except TimeoutError:
                log.info("%d calls are cancelled: the grace of %g s is over", self.active, grace)
        await self._break_off()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        if self.lanes is not None:
            self.lanes.close()
        self._terminated.set()

    async def wait_for_termination(self, timeout: float | None = None) -> bool:
        """Until the server has stopped; True when `timeout` seconds are over before."""
        try:
            await asyncio.wait_for(self._terminated.wait(), timeout)
        except TimeoutError:
            return True
        return False

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return len(self.protocols)

    @property
    def load(self) -> Load:
        """What is held for peers now, and what they were made to give up so far."""
        return Load(self.budget.used, self.budget.total, self.told, 0 if self.lanes is None else self.lanes.taken)

    def begin(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> "asyncio.Task[None]":
        """A task for a call; `stop` waits for it, whatever becomes of the call."""
        task = self.loop.create_task(work, context=context)
        self.tasks.add(task)
        task.add_done_callback(self._ended)  # not by `work`: a task that is cancelled at once never runs it
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        self._check_empty()

    def incident(self) -> str:
        """An id under which a failure is logged, and which the caller is told."""
        return secrets.token_hex(4)

    def gone(self, protocol: Protocol) -> None:
        """A connection has closed."""
        self.protocols.discard(protocol)
        self._check_empty()

    async def _break_off(self) -> None:
        """Cancel what still runs, wait for its tasks, close the connections."""
        for protocol in list(self.protocols):
            protocol.cancel_calls()
            protocol.close()
        if self.tasks:
            await asyncio.wait(set(self.tasks))
        if self.protocols:
            try:
                await asyncio.wait_for(self._empty.wait(), _TICK_SECONDS)
            except TimeoutError:
                for protocol in list(self.protocols):
                    protocol.abort()

    def _check_empty(self) -> None:
        if self.stopping and not self.protocols and not self.tasks:
            self._empty.set()

    def _is_full(self, waiting: int) -> bool:
        """Whether no more connections are taken beside so many that have not begun."""
        full = len(self.protocols) + waiting >= self.limits.max_connections
        self.turned_away += full
        return full

    def _protocol(self) -> Protocol:
        return Protocol(self)

    def _tick(self) -> None:
        self._ticking = self.loop.call_later(_TICK_SECONDS, self._tick)
        if self.turned_away:
            log.warning("%d connections were turned away: there are %d", self.turned_away, len(self.protocols))
            self.turned_away = 0
        now = self.loop.time()
        self.budget.tell()
        for protocol in list(self.protocols):
            try:
                protocol.tick(now)
            except Exception:
                log.exception("the connection of %s is broken off", protocol.peer)
                protocol.abort()


def server(
    interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    *,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    compression: grpc.Compression | None = None,
    maximum_concurrent_rpcs: int | None = None,
    reuse_port: bool = False,
) -> Server:
    """A server like `grpc.aio.server`'s, inside a running event loop (uvloop's is the fast one).

    `compression`: of all answers, for callers that accept it. `maximum_concurrent_rpcs`: more are refused with
    RESOURCE_EXHAUSTED. `reuse_port`: several processes may serve one port.
    """
    return Server(interceptors, limits, compression, maximum_concurrent_rpcs, reuse_port)
