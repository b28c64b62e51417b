"""gRPC transports with nothing behind them: ours, grpcio's two, and a server in C on libnghttp2 as the limit."""

import time
from collections.abc import Callable
from functools import partial

from bench import payloads
from bench.connections import idle_connections
from bench.context import Context
from bench.generators import per_gigabyte
from bench.model import Case, Contestant, Sample
from bench.peers.echo import LARGE, Echo, c_echo, python_echo
from bench.peers.echo_server import SERVICE

FAST, AIO, SYNC, LIMIT = "fast", "grpcio aio", "grpcio sync", "C, nghttp2"
_SHAPES = ((1, 1), (16, 1), (64, 1), (1, 256), (8, 256))
"""Connections, and calls in flight on each."""
_WINDOW, _BATCHES_IN_FLIGHT, _BULK_IN_FLIGHT = 64, 8, 4
_CHUNK, _CHUNKS = 256 << 10, 64
_IDLE, _SETTLE_SECONDS = 1000, 1.0


def transport(context: Context) -> None:
    """Calls, streams, bulk both ways; at last, memory."""
    makers = _makers(context)
    with context.running(list(makers.values())) as peers:
        context.run([*_calls(context, peers), *_streams(context, peers), *_bulk(context, peers), _memory(peers)])
        names = [peer.name for peer in peers]
    context.run([_idle({name: makers[name] for name in names})])


def _makers(context: Context) -> dict[str, Callable[[], Echo]]:
    return {
        FAST: lambda: python_echo(FAST, "fast", context.fresh("echo-fast")),
        AIO: lambda: python_echo(AIO, "aio", context.fresh("echo-aio")),
        SYNC: lambda: python_echo(SYNC, "sync", context.fresh("echo-sync")),
        LIMIT: lambda: c_echo(LIMIT, context.fresh("echo-c")),
    }


def _calls(context: Context, peers: list[Echo]) -> list[Case]:
    cases = []
    for connections, in_flight in _SHAPES:
        shape = context.shape(connections, in_flight)
        cases.append(
            Case(
                f"transport.{connections}x{in_flight}",
                f"Unary echo of 1 KiB, {connections} connection{'s' * (connections > 1)} x {in_flight} in flight",
                "p50_us" if connections == in_flight == 1 else "rate",
                [Contestant(peer.name, partial(peer.send, shape)) for peer in peers],
            )
        )
    return cases


def _streams(context: Context, peers: list[Echo]) -> list[Case]:
    single, batch = context.shape(1, _WINDOW), context.shape(1, _BATCHES_IN_FLIGHT, payloads.BATCH)
    return [
        Case(
            "transport.stream",
            f"A stream of 1 KiB requests, each answered, {_WINDOW} in flight",
            "rate",
            [Contestant(peer.name, partial(peer.send_stream, single, payloads.body())) for peer in peers],
        ),
        Case(
            "transport.batches",
            f"A stream of batches of {payloads.BATCH} (72 KB), each answered, {_BATCHES_IN_FLIGHT} in flight; messages",
            "rate",
            [Contestant(peer.name, partial(peer.send_stream, batch)) for peer in peers],
        ),
    ]


def _bulk(context: Context, peers: list[Echo]) -> list[Case]:
    several, one, chunks = context.shape(1, _BULK_IN_FLIGHT), context.shape(), context.shape(items=_CHUNKS)
    ways: list[tuple[str, str, Callable[[Echo], Sample]]] = [
        ("download", f"Unary answers of 1 MiB, {_BULK_IN_FLIGHT} in flight",
         lambda peer: per_gigabyte(peer.download(several))),
        ("download-stream", "A stream of answers of 1 MiB",
         lambda peer: per_gigabyte(peer.download_stream(one))),
        ("upload", f"Unary requests of 1 MiB, {_BULK_IN_FLIGHT} in flight",
         lambda peer: per_gigabyte(peer.upload(several, bytes(LARGE)), LARGE)),
        ("upload-stream", f"Streams of {_CHUNKS} requests of 256 KiB, answered at the end",
         lambda peer: per_gigabyte(peer.upload_stream(chunks, bytes(_CHUNK)), _CHUNK)),
    ]  # fmt: skip
    return [
        Case(f"transport.{name}", title, "gb_s", [Contestant(peer.name, partial(measure, peer)) for peer in peers])
        for name, title, measure in ways
    ]


def _memory(peers: list[Echo]) -> Case:
    def of(peer: Echo) -> Sample:
        return {"rss_mb": peer.server.memory_mb()[0], "peak_mb": peer.server.peak_mb()}

    contestants = [Contestant(peer.name, partial(of, peer)) for peer in peers]
    return Case("transport.memory", "Memory of the servers after these runs", "rss_mb", contestants, rounds=1)


def _idle(makers: dict[str, Callable[[], Echo]]) -> Case:
    return Case(
        "transport.idle",
        f"Memory of a fresh server with {_IDLE:,} connections, idle after one call each",
        "held_mb",
        [Contestant(name, partial(_held, make)) for name, make in makers.items()],
        rounds=1,
    )


def _held(make: Callable[[], Echo]) -> Sample:
    peer = make()
    try:
        peer.start()
        before = peer.server.memory_mb()[0]
        with idle_connections(peer.server.port, f"/{SERVICE}/Get", _IDLE):
            time.sleep(_SETTLE_SECONDS)
            held = peer.server.memory_mb()[0]
        return {"rss_mb": before, "held_mb": held, "connection_kb": (held - before) * 1024 / _IDLE}
    finally:
        peer.server.discard()
