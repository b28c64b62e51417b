"""What the tests of this directory share: a server of either kind with handlers of the test's own, and patience."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import grpc
import pytest

from tests.grpc_probe import SERVICE, Probe, add_probe, make_server

T = TypeVar("T")

OWN = "tandemmq.test.Own"
"""The service of a test's own handlers."""
PATIENCE = 40.0
"""Seconds after which something that must happen will not."""
CLIENT_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # a connection for each channel
]
KINDS: dict[str, tuple[Callable[..., Any], str]] = {
    "unary": (grpc.unary_unary_rpc_method_handler, "unary_unary"),
    "into": (grpc.stream_unary_rpc_method_handler, "stream_unary"),
    "out": (grpc.unary_stream_rpc_method_handler, "unary_stream"),
    "both": (grpc.stream_stream_rpc_method_handler, "stream_stream"),
}


class Hosted:
    """A server that serves the probe and a test's handlers, and a channel to it."""

    def __init__(self, server: grpc.aio.Server, probe: Probe, target: str, channel: Any) -> None:
        self.server = server
        self.probe = probe
        self.target = target
        self.channel = channel

    def own(self, kind: str, channel: Any = None) -> Any:
        """The caller of the test's own handler of a kind."""
        return getattr(channel or self.channel, KINDS[kind][1])(f"/{OWN}/{kind}")

    def method(self, name: str, channel: Any = None) -> Any:
        """The caller of a method of the probe."""
        kind = {"Collect": "into", "Repeat": "out", "Drip": "out", "Converse": "both"}.get(name, "unary")
        return getattr(channel or self.channel, KINDS[kind][1])(f"/{SERVICE}/{name}")

    @property
    def unary(self) -> Any:
        """Calls the test's handler of this kind, as do the next three."""
        return self.own("unary")

    @property
    def into(self) -> Any:
        return self.own("into")

    @property
    def out(self) -> Any:
        return self.own("out")

    @property
    def both(self) -> Any:
        return self.own("both")


def add_own(server: Any, deserializer: Any = None, serializer: Any = None, **behaviors: Any) -> None:
    """Registers a test's handlers (by kind: unary, into, out, both) as generated code does."""
    handlers = {kind: KINDS[kind][0](behavior, deserializer, serializer) for kind, behavior in behaviors.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(OWN, handlers),))
    server.add_registered_method_handlers(OWN, handlers)


@asynccontextmanager
async def hosted(
    transport: str,
    *,
    address: str = "127.0.0.1:0",
    deserializer: Any = None,
    serializer: Any = None,
    prepare: Callable[[grpc.aio.Server], None] | None = None,
    server_options: dict[str, Any] | None = None,
    client_compression: grpc.Compression | None = None,
    client_options: Sequence[tuple[str, Any]] = (),
    **behaviors: Any,
) -> AsyncIterator[Hosted]:
    """A server on `address` and a channel to it; both are closed at the end. `prepare` is called before the start."""
    server = make_server(transport, **(server_options or {}))
    probe = Probe()
    add_probe(probe, server)
    add_own(server, deserializer, serializer, **behaviors)
    if prepare is not None:
        prepare(server)
    port = server.add_insecure_port(address)
    await server.start()
    target = address if address.startswith("unix") else f"{address.rpartition(':')[0]}:{port}"
    try:
        async with channel_to(target, options=client_options, compression=client_compression) as channel:
            yield Hosted(server, probe, target, channel)
    finally:
        await server.stop(None)


@asynccontextmanager
async def channel_to(
    target: str,
    credentials: grpc.ChannelCredentials | None = None,
    options: Sequence[tuple[str, Any]] = (),
    compression: grpc.Compression | None = None,
) -> AsyncIterator[Any]:
    """A channel with a connection of its own."""
    options = [*CLIENT_OPTIONS, *options]
    if credentials is None:
        channel = grpc.aio.insecure_channel(target, options, compression)
    else:
        channel = grpc.aio.secure_channel(target, credentials, options, compression)
    async with channel:
        yield channel


async def until(condition: Callable[[], bool]) -> None:
    """Waits until something has become true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def within(awaitable: Awaitable[T]) -> T:
    """The outcome of what must not take long."""
    async with asyncio.timeout(PATIENCE):
        return await awaitable


async def in_time(attempt: Callable[[float], Awaitable[bool]]) -> None:
    """Has something tried with a deadline of so many seconds; with a longer one if it came before what it is to end.

    `attempt` says whether its handler had begun by then: on a slow machine that takes longer than a test wants to wait.
    """
    for seconds in (0.2, 2.0, 20.0):
        if await attempt(seconds):
            return
    raise AssertionError("no handler has begun within 20 s")


async def failure(call: Any) -> grpc.aio.AioRpcError:
    """How a call failed: of a unary answer, or of a stream read to its end."""
    unary = isinstance(call, grpc.aio.UnaryUnaryCall | grpc.aio.StreamUnaryCall)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await within(call if unary else _drained(call))
    return caught.value


async def _drained(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def everything(call: Any) -> list[Any]:
    """All answers of a stream."""
    return [answer async for answer in call]


async def sending(*requests: Any) -> AsyncIterator[Any]:
    """A stream of requests."""
    for request in requests:
        yield request


async def settled(hosted: Hosted) -> None:
    """Waits until no handler of the probe runs."""
    await until(lambda: hosted.probe.active == 0)
