"""Damaged connections to a real server process, beside a client whose calls must never fail."""

import asyncio
import json
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import IO, Any, Protocol

import grpc

from tests.faults.transport_mutations import Mutator
from tests.faults.transport_probe import PATIENCE, Served
from tests.grpc_probe import SERVICE
from tests.unit.grpc_transport.reading import Reading, split

ATTACKERS = 12
GROWTH = 48 << 20
"""Bytes that a server may gain by traffic that holds nothing."""
CAUGHT = (
    "Fatal error",
    "never retrieved",
    "never awaited",
    "Exception in callback",
    "was destroyed",
    "Exception ignored",
)
"""What asyncio and Python say of an exception that nobody caught. A handler that raises is logged as an incident."""


class Port(Protocol):
    """Where a server listens."""

    port: int


def check_complaints(complaints: IO[str]) -> None:
    """Raises AssertionError if a server has said that something escaped."""
    complaints.seek(0)
    said = complaints.read()
    escaped = [line for line in said.splitlines() if any(word in line for word in CAUGHT)]
    assert not escaped, said[:20_000]
    assert said.count("Traceback") == said.count("raised (incident"), said[:20_000]


@asynccontextmanager
async def healthy(served: Served) -> AsyncIterator[list[int]]:
    """A client that calls all the time and must never fail; gives the number of its calls so far."""
    done = [0]
    stopped = asyncio.Event()

    async def call(channel: Any) -> None:
        while not stopped.is_set():
            body = b"%d" % done[0]
            assert await channel.unary_unary(f"/{SERVICE}/Echo")(body, timeout=PATIENCE) == body
            both = channel.stream_stream(f"/{SERVICE}/Converse")(iter([b"a", b"b"]), timeout=PATIENCE)
            assert [answer async for answer in both] == [b"A", b"B"]
            done[0] += 2
            await asyncio.sleep(0.005)

    async with grpc.aio.insecure_channel(f"127.0.0.1:{served.port}") as channel:
        calls = asyncio.create_task(call(channel))
        try:
            yield done
        finally:
            stopped.set()
            await asyncio.wait_for(calls, 2 * PATIENCE)


async def running_calls(served: Served) -> int:
    """Handlers that run in the server."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{served.port}") as channel:
        unary: Any = channel.unary_unary(f"/{SERVICE}/Count")
        return int(json.loads(await unary(b"", timeout=PATIENCE))["active"])


async def until_quiet(served: Served, files: int) -> None:
    """Until all connections but a few and all their calls are gone."""
    deadline = time.monotonic() + PATIENCE
    while await running_calls(served) or served.open_files > files:
        assert time.monotonic() < deadline, (await running_calls(served), served.open_files, files)
        await asyncio.sleep(0.05)


async def attack(served: Port, parts: list[bytes], *, abort: bool) -> None:
    """One input on a connection of its own; what comes back must be legal."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    received = b""
    try:
        with suppress(ConnectionError):
            for part in parts:
                if writer.is_closing():  # the server has had enough; uvloop raises RuntimeError for a write
                    break
                writer.write(part)
                await asyncio.sleep(0)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    while found := await reader.read(1 << 18):
                        received += found
        if abort:
            plain = writer.get_extra_info("socket")
            with suppress(OSError):  # closed already
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    Reading(1 << 24).read(split(received)[0])


async def attack_with(served: Port, mutator: Mutator, first: int, inputs: int) -> None:
    """Inputs `first` to `first + inputs`, a dozen at a time."""
    numbers = iter(range(first, first + inputs))

    async def attacker() -> None:
        for number in numbers:
            parts = mutator.make(number)
            try:
                await attack(served, parts, abort=number % 5 == 0)
            except AssertionError:
                sys.stdout.write(f"input {number} of seed {mutator.seed}: {[part.hex() for part in parts]}\n")
                raise

    await asyncio.gather(*[attacker() for _ in range(ATTACKERS)])


async def under_fire(served: Served, mutator: Mutator, inputs: int) -> dict[str, int]:
    """So many inputs beside a healthy client. Raises AssertionError; gives what happened."""
    files = served.open_files
    async with healthy(served) as done:
        await attack_with(served, mutator, 0, inputs // 10)
        memory = served.memory
        await attack_with(served, mutator, inputs // 10, inputs - inputs // 10)
        growth = served.memory - memory
    assert done[0] > 10
    assert growth < GROWTH
    await until_quiet(served, files + 2)
    return {"inputs": inputs, "healthy_calls": done[0], "growth": growth}
