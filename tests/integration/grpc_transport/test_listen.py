"""Where a server listens: ports, families, unix sockets, several at once, shared and taken ones."""

import asyncio
import logging
import os
import socket
import struct
from pathlib import Path

import grpc
import pytest

from tests.grpc_probe import Probe, add_probe, make_server
from tests.integration.grpc_transport.hosting import PATIENCE, Hosted, channel_to, hosted, settled, until, within
from tests.integration.grpc_transport.wire import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    frame,
    header_block,
    message,
    settings,
    wired,
)

PROBE_ECHO = "/tandemmq.test.Probe/Echo"


async def echo(target: str) -> None:
    """A call over a connection of its own."""
    async with channel_to(target) as channel:
        assert await within(channel.unary_unary(PROBE_ECHO)(b"x", timeout=60)) == b"x"


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "localhost:0", "[::]:0", "0.0.0.0:0"])
async def test_every_family(transport: str, address: str) -> None:
    async with hosted(transport, address=address) as server:
        port = int(server.target.rpartition(":")[2])
        assert port > 0
        if "::" in address:
            await echo(f"[::1]:{port}")
        if address not in ("[::1]:0",):
            await echo(f"127.0.0.1:{port}")


async def test_a_unix_socket(transport: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with hosted(transport, address=f"unix:{path}") as server:
        assert path.is_socket()
        assert await server.method("Echo")(b"x") == b"x"
        await echo(f"unix:{path}")
        await echo(f"unix://{path}")
    assert not path.exists()


async def test_a_unix_socket_that_a_killed_server_left(transport: str, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    assert path.is_socket()
    async with hosted(transport, address=f"unix:{path}") as server:
        assert await server.method("Echo")(b"x") == b"x"


async def test_an_abstract_unix_socket(transport: str) -> None:
    address = f"unix-abstract:tandemmq-test-{os.getpid()}-{transport}"
    async with hosted(transport, address=address) as server:
        assert await server.method("Echo")(b"x") == b"x"


async def test_several_ports_of_one_server(transport: str, tmp_path: Path) -> None:
    ports: list[int] = []

    def prepare(server: grpc.aio.Server) -> None:
        ports.extend(server.add_insecure_port("127.0.0.1:0") for _ in range(2))
        server.add_insecure_port(f"unix:{tmp_path / 'socket'}")

    async with hosted(transport, prepare=prepare) as server:
        assert len(set(ports)) == 2
        for target in (server.target, *(f"127.0.0.1:{port}" for port in ports), f"unix:{tmp_path / 'socket'}"):
            await echo(target)


async def test_a_taken_port_is_an_error_that_names_it(transport: str) -> None:
    async with hosted(transport) as server:
        other = make_server(transport)
        with pytest.raises(RuntimeError, match=server.target):
            other.add_insecure_port(server.target)
        await other.stop(None)


@pytest.mark.parametrize(
    "address", ["nowhere.invalid:0", "127.0.0.1:notaport", "192.0.2.1:0", "unix:/nonexistent/dir/socket"]
)
async def test_what_is_no_address_of_ours_is_an_error(transport: str, address: str) -> None:
    server = make_server(transport)
    with pytest.raises(RuntimeError):
        server.add_insecure_port(address)
    await server.stop(None)


async def test_a_port_can_be_shared_on_request(transport: str) -> None:
    async with hosted(transport, server_options={"reuse_port": True}) as server:
        second = make_server(transport, reuse_port=True)
        add_probe(Probe(), second)
        port = int(server.target.rpartition(":")[2])
        assert second.add_insecure_port(server.target) == port
        await second.start()
        for _ in range(10):
            await echo(server.target)
        await second.stop(None)
        await echo(server.target)


async def test_callers_that_are_gone_before_they_are_accepted(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(transport) as server:
        host, _, port = server.target.rpartition(":")
        for number in range(100):  # all of them before the event loop has its turn
            caller = socket.create_connection((host, int(port)))
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if number % 2:
                caller.send(PREFACE)
            caller.close()
        assert await within(server.method("Echo")(b"lives")) == b"lives"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


STATES = {
    "nothing": b"",
    "half a preface": PREFACE[:10],
    "a preface": PREFACE,
    "settings": PREFACE + settings(),
    "half a frame": PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, header_block(PROBE_ECHO))[:30],
    "a head": PREFACE + settings() + frame(HEADERS, END_HEADERS, 1, header_block(PROBE_ECHO)),
    "half a message": PREFACE
    + settings()
    + frame(HEADERS, END_HEADERS, 1, header_block(PROBE_ECHO))
    + frame(DATA, 0, 1, message(b"m" * 100)[:50]),
    "a call that waits": PREFACE
    + settings()
    + frame(HEADERS, END_HEADERS, 1, header_block("/tandemmq.test.Probe/Wait"))
    + frame(DATA, END_STREAM, 1, message(b"")),
    "an endless answer": PREFACE
    + settings()
    + frame(HEADERS, END_HEADERS, 1, header_block("/tandemmq.test.Probe/Drip"))
    + frame(DATA, END_STREAM, 1, message(b"")),
    "a goodbye": PREFACE + settings() + frame(GOAWAY, 0, 0, bytes(8)),
    "no HTTP/2 at all": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("politely", [True, False])
async def test_connections_that_end_in_every_state_leave_nothing(
    transport: str, politely: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with hosted(transport) as server:
        host, _, port = server.target.rpartition(":")
        for sent in list(STATES.values()) * 3:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            if sent:
                await within(reader.read(1))  # the server has seen it, or at least us
            if politely:
                writer.close()
            else:
                writer.transport.abort()
        await settled(server)
        if transport == "fast":
            await until(lambda: server.server.connections == 0)  # type: ignore[attr-defined]
        assert await within(server.method("Echo")(b"lives")) == b"lives"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_pings_are_answered_with_what_they_carry(transport: str) -> None:
    async with hosted(transport) as server, wired(server.target) as wire:
        assert (await wire.answer(wire.call("Echo", b"x"))).status == "0"
        wire.write(frame(PING, 0, 0, b"12345678"))
        await wire.wait_for(lambda: any(each[1] == ACK and each[3] == b"12345678" for each in wire.arrived(PING)))


async def test_keep_alive_of_a_caller_keeps_a_quiet_call_open(transport: str) -> None:
    options = [
        ("grpc.keepalive_time_ms", 100),
        ("grpc.keepalive_timeout_ms", 30_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    async with hosted(transport) as server, channel_to(server.target, options=options) as channel:
        waiting = server.method("Wait", channel)(b"")
        for _ in range(2 if transport == "grpcio" else 8):
            await asyncio.sleep(0.1)
            assert not waiting.done()
        assert await server.method("Echo", channel)(b"x") == b"x"
        waiting.cancel()


async def count_connections(server: Hosted) -> int:
    return int(server.server.connections)  # type: ignore[attr-defined]


async def test_connections_are_counted(transport: str) -> None:
    if transport == "grpcio":
        pytest.skip("grpcio does not tell")
    async with hosted(transport) as server:
        assert await count_connections(server) == 0
        async with wired(server.target) as one, wired(server.target) as two:
            for wire in (one, two):
                await wire.answer(wire.call("Echo", b"x"))
            assert await count_connections(server) == 2
        async with asyncio.timeout(PATIENCE):
            while await count_connections(server):
                await asyncio.sleep(0.005)
