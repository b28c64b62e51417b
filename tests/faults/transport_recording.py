"""Seeds from life: what a real grpcio client sends to our server, recorded by a proxy between them."""

import asyncio
from typing import Any

import grpc
import uvloop

from tests.faults.transport_seeds import Seed, split
from tests.grpc_probe import SERVICE, Probe, add_probe, make_server


class Recorder:
    """A proxy that remembers what clients said, one entry for each connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.said: list[bytearray] = []
        self._passing: set[asyncio.Future[Any]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own_reader, own_writer = await asyncio.open_connection("127.0.0.1", self._port)
        said = bytearray()
        self.said.append(said)
        passing = asyncio.gather(_pass_on(reader, own_writer, said), _pass_on(own_reader, writer, bytearray()))
        self._passing.add(passing)
        await passing

    async def ended(self) -> None:
        """Both sides of every connection have closed it."""
        await asyncio.gather(*self._passing)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, copy: bytearray) -> None:
    try:
        while part := await reader.read(1 << 16):
            copy += part
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def record() -> list[Seed]:
    """A few connections of calls of all kinds; somewhat different each time, as clients choose when to ping."""
    return uvloop.run(_record())


async def _record() -> list[Seed]:
    server = make_server("fast")
    add_probe(Probe(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    recorder = Recorder(port)
    proxy = await asyncio.start_server(recorder, "127.0.0.1", 0)
    address = f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    for calls in (_plain_calls, _streams, _endings):
        async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            await calls(channel)
    proxy.close()
    await server.stop(None)
    await recorder.ended()
    return [split(bytes(said)) for said in recorder.said]


def _path(method: str) -> str:
    return f"/{SERVICE}/{method}"


async def _plain_calls(channel: Any) -> None:
    metadata = (("x-text", "some"), ("x-some-bin", b"\x00\xff"))
    for body in (b"", b"hello", b"x" * 3000):
        await channel.unary_unary(_path("Echo"))(body, metadata=metadata, timeout=30)
    await channel.unary_unary(_path("Mirror"))(b"", metadata=metadata)
    await channel.unary_unary(_path("Echo"))(b"z" * 500, compression=grpc.Compression.Gzip)


async def _streams(channel: Any) -> None:
    await channel.stream_unary(_path("Collect"))(iter([b"one", b"two", b"three"]))
    assert [answer async for answer in channel.unary_stream(_path("Repeat"))(b"5:2000")]
    both = channel.stream_stream(_path("Converse"))()
    for _ in range(3):
        await both.write(b"word")
        await both.read()
    await both.done_writing()
    await both.code()


async def _endings(channel: Any) -> None:
    both = channel.stream_stream(_path("Converse"))(timeout=30)
    await both.write(b"word")
    await both.read()
    both.cancel()
    for method, body in (("Wait", b""), ("Fail", b"NOT_FOUND"), ("Nowhere", b"")):
        try:
            await channel.unary_unary(_path(method))(body, timeout=0.05)
        except grpc.aio.AioRpcError:
            continue
