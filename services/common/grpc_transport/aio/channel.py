"""Channel: what `grpc.aio.insecure_channel` gives, on this package's transport."""

import asyncio
import logging
import random
import ssl
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc

from tandemmq.common.grpc_transport.aio.client_call import ClientCall, ClientMethod, Metadata
from tandemmq.common.grpc_transport.aio.client_methods import StreamStream, StreamUnary, UnaryStream, UnaryUnary
from tandemmq.common.grpc_transport.aio.client_protocol import ClientProtocol
from tandemmq.common.grpc_transport.aio.dialing import dial, parse
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.response import ResponseCache
from tandemmq.common.grpc_transport.rpc.status import Status

log = logging.getLogger(__name__)

State = grpc.ChannelConnectivity
_TICK_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
"""Between attempts to connect, while calls wait that are willing to."""


class Channel(grpc.aio.Channel):
    """Calls to one server, over one connection. Make it with `channel`, inside a running event loop.

    It connects when the first call wants it, and again when a call comes after the connection has failed.
    """

    def __init__(
        self,
        address: str,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        limits: Limits,
        metadata: Callable[[], Metadata] | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.target = parse(address)
        self.authority = server_name or self.target.authority
        self.secure = tls is not None
        self.limits = limits
        self.metadata = metadata
        self.responses = ResponseCache()
        self.protocols: set[ClientProtocol] = set()
        """Open connections: the one that takes calls, and those that end theirs."""
        self.waiting: dict[ClientCall, None] = {}
        """Calls that wait for a connection, or for a stream on it."""
        self._server_name = server_name
        self._tls = tls
        self._current: ClientProtocol | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        """Set when a call comes that should not wait for the next attempt."""
        self._ticking: asyncio.TimerHandle | None = None
        self._state = State.IDLE
        self._changed = asyncio.Event()
        self._closed = False

    # -- methods, as stubs ask for them -------------------------------------------------------------------------------

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: Any = False,
    ) -> UnaryUnary:
        """See grpc.aio.Channel."""
        return UnaryUnary(ClientMethod(self, method, request_serializer, response_deserializer))

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: Any = False,
    ) -> UnaryStream:
        """See grpc.aio.Channel."""
        return UnaryStream(ClientMethod(self, method, request_serializer, response_deserializer))

    def stream_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: Any = False,
    ) -> StreamUnary:
        """See grpc.aio.Channel."""
        return StreamUnary(ClientMethod(self, method, request_serializer, response_deserializer))

    def stream_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: Any = False,
    ) -> StreamStream:
        """See grpc.aio.Channel."""
        return StreamStream(ClientMethod(self, method, request_serializer, response_deserializer))

    # -- state --------------------------------------------------------------------------------------------------------

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """How the connection is; `try_to_connect`: one is made if there is none."""
        if try_to_connect and self._state in (State.IDLE, State.TRANSIENT_FAILURE):
            self._connect()
        return self._state

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Until the state is another one."""
        while self._state is last_observed_state:
            await self._changed.wait()

    async def channel_ready(self) -> None:
        """Until there is a connection; tries again and again. Raises UsageError when the channel is closed."""
        pause = _FIRST_PAUSE_SECONDS
        while self._state is not State.READY:
            if self._closed:
                raise grpc.aio.UsageError("Channel is closed.")
            self._connect()
            if self._dialing is not None:
                await asyncio.wait((self._dialing,))
            if self._current is None and not self._closed:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def __aenter__(self) -> "Channel":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """No new calls; those that run have `grace` seconds, then they are cancelled. May be called again."""
        self._closed = True
        if grace:
            deadline = self.loop.time() + grace
            while (calls := self._calls()) and self.loop.time() < deadline:
                ended = [self.loop.create_task(call.ending()) for call in calls]
                await asyncio.wait(ended, timeout=deadline - self.loop.time())
                for task in ended:
                    task.cancel()
        for call in self._calls():
            call.cancel()
        if self._dialing is not None:
            self._dialing.cancel()
            await asyncio.wait((self._dialing,))
        for protocol in list(self.protocols):
            protocol.close()
        try:
            async with asyncio.timeout(_TICK_SECONDS):
                while self.protocols:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            for protocol in list(self.protocols):
                protocol.abort()
        self._current = None
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._become(State.SHUTDOWN)

    def _calls(self) -> list[ClientCall]:
        running = [call for protocol in self.protocols for call in protocol.connection.streams.values()]
        return [*self.waiting, *(call for call in running if isinstance(call, ClientCall) and not call.over)]

    def _become(self, state: grpc.ChannelConnectivity) -> None:
        self._state = state
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # -- calls --------------------------------------------------------------------------------------------------------

    def begin(self, call: ClientCall, credentials: Any = None, compression: Any = None) -> None:
        """Start a call now, or when there is a connection. Raises UsageError."""
        if self._closed:
            call.cancel()
            raise grpc.aio.UsageError("Channel is closed.")
        if credentials is not None or compression not in (None, grpc.Compression.NoCompression):
            call.cancel()
            raise grpc.aio.UsageError("this channel takes no credentials and no compression for a call")
        if not call.over:
            self._start(call)

    def begin_again(self, call: ClientCall) -> None:
        """A call that its server did not look at; in a turn of its own, when the connection's state is settled."""
        self.loop.call_soon(self._restart, call)

    def _restart(self, call: ClientCall) -> None:
        if self._closed:
            call.cancel()
        elif not call.over:
            self._start(call)

    def _start(self, call: ClientCall) -> None:
        if call.time_remaining() == 0:
            call.give_up(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")
            return
        current = self._current
        if current is not None and not self.waiting and current.connection.usable and current.open:
            current.begin(call)
            return
        self.waiting[call] = None
        if current is None or not current.connection.takes_calls or not current.open:
            self._current = None
            self._connect()

    def serve(self) -> None:
        """Streams are free: start calls that wait for one."""
        current = self._current
        while self.waiting and current is not None and current.connection.usable and current.open:
            call = next(iter(self.waiting))
            del self.waiting[call]
            current.begin(call)

    # -- connections --------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._hurry.set()
        if self._dialing is None and not self._closed:
            self._dialing = self.loop.create_task(self._dial())
            self._dialing.add_done_callback(self._dialed)

    def _dialed(self, task: "asyncio.Task[None]") -> None:
        self._dialing = None
        if task.cancelled() or self._closed:
            return
        if (error := task.exception()) is not None:
            log.error("the channel to %s failed", self.target.text, exc_info=error)
            self._fail_waiting(str(error), patient=True)
        elif self.waiting and self._current is None:
            self._connect()

    async def _dial(self) -> None:
        """Until there is a connection, or nobody waits for one."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            self._hurry.clear()
            self._become(State.CONNECTING)
            reason = await self._attempt()
            if not reason:
                return
            self._become(State.TRANSIENT_FAILURE)
            self._fail_waiting(reason, patient=False)
            if not self.waiting:
                return
            try:
                async with asyncio.timeout(pause * random.uniform(0.8, 1.2)):
                    await self._hurry.wait()
            except TimeoutError:
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _attempt(self) -> str:
        """Makes a connection; why there is none, or nothing."""
        protocol = ClientProtocol(self)
        try:
            async with asyncio.timeout(self.limits.handshake_seconds):
                await dial(self.target, lambda: protocol, self._tls, self._server_name)
                await protocol.greeted
        except TimeoutError:
            protocol.abort()
            return "the server did not answer in time"
        except (OSError, ValueError) as error:
            protocol.abort()
            return getattr(error, "strerror", "") or str(error) or type(error).__name__
        except BaseException:
            protocol.abort()
            raise
        if not protocol.connection.takes_calls or not protocol.open:
            return protocol.why()
        self._current = protocol
        self._become(State.READY)
        if self._ticking is None:
            self._ticking = self.loop.call_later(_TICK_SECONDS, self._tick)
        self.serve()
        return ""

    def _fail_waiting(self, reason: str, patient: bool) -> None:
        """End calls that wait; `patient`: also those that would wait on."""
        details = f"failed to connect to {self.target.text}: {reason}"
        for call in [call for call in self.waiting if patient or not call.wait_for_ready]:
            call.end(Status.UNAVAILABLE, details)

    def going(self, protocol: ClientProtocol) -> None:
        """A connection takes no more calls."""
        goaway = protocol.connection.goaway
        if goaway is not None and goaway == (ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings"):
            self.limits = replace(self.limits, keepalive_seconds=2 * self.limits.keepalive_seconds)
        self._leave(protocol)

    def gone(self, protocol: ClientProtocol) -> None:
        """A connection is closed."""
        self.protocols.discard(protocol)
        self._leave(protocol)
        self._changed.set()

    def _leave(self, protocol: ClientProtocol) -> None:
        if self._current is protocol:
            self._current = None
            self._become(State.IDLE)
            if self.waiting:
                self._connect()

    def _tick(self) -> None:
        self._ticking = None
        now = self.loop.time()
        for protocol in list(self.protocols):
            try:
                protocol.tick(now)
            except Exception:
                log.exception("the connection to %s is broken off", self.target.text)
                protocol.abort()
        if self.protocols:
            self._ticking = self.loop.call_later(_TICK_SECONDS, self._tick)


def channel(
    address: str,
    *,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    metadata: Callable[[], Metadata] | None = None,
) -> Channel:
    """A channel like `grpc.aio.insecure_channel`'s, inside a running event loop (uvloop's is the fast one).

    `address`: `host:port`, `[v6]:port`, `unix:path`, `unix-abstract:name`. `tls`: for TLS, with a client certificate or
    without; ALPN is set to `h2`. `server_name`: what the server's certificate names, if that is not the host. Of
    `limits`, those of windows, messages, silence (`keepalive_…`, `idle_seconds`) and of what the server may cost apply;
    `handshake_seconds` bounds an attempt to connect. `metadata`: asked at each call for what goes with it, besides the
    call's own; for credentials that may change. Raises ValueError for what is no address.
    """
    if tls is not None:
        tls.set_alpn_protocols(["h2"])
    return Channel(address, tls, server_name, limits, metadata)
