"""A remoting server in the test's own loop, with handlers that the tests need."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.net.remoting.client import RemotingClient
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.net.remoting.server import RemotingServer, TlsContext
from tandemmq.common.timers import Timers
from tandemmq.common.wire.remoting.command import Command

ECHO, HOLD, REFUSE, FAIL, CALL_BACK, TOO_LARGE, AT_ONCE = range(1, 8)
PATIENCE = 30.0


class Refused(TandemError):
    kind = Kind.NOT_FOUND


class Served:
    """What the handlers do, and what they have seen."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.connections: list[RemotingConnection] = []
        self.ended: list[RemotingConnection] = []
        self.seen: list[int] = []
        self.at_once_seen: list[int] = []
        self.handlers = Handlers(
            {
                ECHO: self.echo,
                HOLD: self.hold,
                REFUSE: self.refuse,
                FAIL: self.fail,
                CALL_BACK: self.call_back,
                TOO_LARGE: lambda _, request: request.answer(0, body=bytes(17 << 20)),
                AT_ONCE: self.at_once,
            },
            lambda error: 22 if error.kind is Kind.NOT_FOUND else 1,
        )

    async def echo(self, _: RemotingConnection, request: Command) -> Command:
        await asyncio.sleep(0)
        self.seen.append(request.opaque)
        return request.answer(0, request.fields, request.body)

    def at_once(self, _: RemotingConnection, request: Command) -> Command:
        self.at_once_seen.append(request.opaque)
        return request.answer(0, None, request.body)

    async def hold(self, _: RemotingConnection, request: Command) -> Command:
        await self.let_go.wait()
        return request.answer(19)

    def refuse(self, _: RemotingConnection, request: Command) -> Command:
        raise Refused(f"there is no {request.code}")

    async def fail(self, _: RemotingConnection, request: Command) -> Command:
        await asyncio.sleep(0)
        raise KeyError("a fault")

    async def call_back(self, connection: RemotingConnection, request: Command) -> Command:
        answer = await connection.ask(Command(40, body=request.body), PATIENCE)
        return request.answer(answer.code, body=answer.body)


class Running:
    """A server that runs."""

    def __init__(self, server: RemotingServer, served: Served, port: int) -> None:
        self.server = server
        self.served = served
        self.port = port
        self.address = f"127.0.0.1:{port}"

    def client(self, handlers: Handlers | None = None, tls: ssl.SSLContext | None = None) -> RemotingClient:
        return RemotingClient(self.address, handlers, tls=tls)


@asynccontextmanager
async def serving(
    limits: RemotingLimits | None = None,
    tls: TlsContext | None = None,
    *,
    only_tls: bool = False,
    timers: Timers | None = None,
) -> AsyncIterator[Running]:
    """A server for the time of a test."""
    served = Served()
    server = RemotingServer(
        served.handlers,
        limits or RemotingLimits(),
        opened=served.connections.append,
        closed=served.ended.append,
        timers=timers,
    )
    port = server.add_port("127.0.0.1:0", tls, only_tls=only_tls)
    await server.start()
    try:
        yield Running(server, served, port)
    finally:
        served.let_go.set()
        await server.stop()
