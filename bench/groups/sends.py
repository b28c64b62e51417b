"""Sends of 1 KiB messages: into the page cache, and to the disk."""

from collections.abc import Callable
from functools import partial

from bench.context import Context
from bench.generators import LoadShape
from bench.model import Case, Contestant, Sample
from bench.payloads import BATCH
from bench.peers.echo import Echo, bare_grpcio
from bench.peers.nats import Nats
from bench.peers.redis import Redis
from bench.peers.rocketmq import RocketMQ
from bench.store import TRANSPORTS, Store

Peer = Store | RocketMQ | Nats | Redis | Echo
_PIPELINES = ((1, 256), (8, 256))
"""Connections, and single sends in flight on each."""
_IN_FLIGHT = 8
"""Requests in flight where one client sends batches."""


def sends(context: Context) -> None:
    """Acknowledged from the page cache: ASYNC_FLUSH, JetStream's file store, appendfsync everysec."""
    warm_up = 5.0 if context.quick else 12.0
    makers: list[Callable[[], Peer]] = [
        *_stores(context, "ASYNC_FLUSH"),
        lambda: RocketMQ(context.fresh("rocketmq-async"), "ASYNC_FLUSH", warm_up),
        lambda: Nats(context.fresh("nats")),
        lambda: Redis(context.fresh("redis-everysec"), "everysec"),
        lambda: bare_grpcio(context.fresh("grpcio")),
    ]
    with context.running(makers) as peers:
        _warm_up(peers, warm_up / 4)
        cases = [_single("send", "page cache", context.shape(clients), peers) for clients in (1, 16, 64)]
        cases += [_pipelined("send", "page cache", context.shape(*pipeline), peers) for pipeline in _PIPELINES]
        context.run(cases + _bulk("send", "page cache", context, peers))


def durable(context: Context) -> None:
    """Acknowledged from the disk: SYNC_FLUSH, appendfsync always."""
    warm_up = 5.0 if context.quick else 12.0
    makers: list[Callable[[], Peer]] = [
        *_stores(context, "SYNC_FLUSH"),
        lambda: RocketMQ(context.fresh("rocketmq-sync"), "SYNC_FLUSH", warm_up),
        lambda: Redis(context.fresh("redis-always"), "always"),
    ]
    with context.running(makers) as peers:
        _warm_up(peers, warm_up / 4)
        cases = [_single("durable", "on disk", context.shape(clients), peers) for clients in (1, 16, 64, 256)]
        cases += [_pipelined("durable", "on disk", context.shape(*pipeline), peers) for pipeline in _PIPELINES]
        context.run(cases + _bulk("durable", "on disk", context, peers))


def _stores(context: Context, flush: str) -> list[Callable[[], Store]]:
    """The store on either transport."""

    def make(transport: str) -> Store:
        return Store(context.fresh(f"store-{flush.lower()}-{transport}"), transport=transport, flushDiskType=flush)

    return [partial(make, transport) for transport in TRANSPORTS]


def _warm_up(peers: list[Peer], seconds: float) -> None:
    for peer in peers:
        if isinstance(peer, Store):
            peer.warm_up(seconds)


def _single(group: str, where: str, shape: LoadShape, peers: list[Peer]) -> Case:
    clients = "1 client" if shape.connections == 1 else f"{shape.connections} clients"
    return Case(
        f"{group}.{shape.connections}",
        f"Single sends, {clients}, {where}",
        "p50_us" if shape.connections == 1 else "rate",
        [Contestant(peer.name, partial(peer.send, shape)) for peer in peers],
    )


def _pipelined(group: str, where: str, shape: LoadShape, peers: list[Peer]) -> Case:
    connections = "1 connection" if shape.connections == 1 else f"{shape.connections} connections"
    return Case(
        f"{group}.{shape.connections}x{shape.in_flight}",
        f"Single sends, {connections} x {shape.in_flight} in flight, {where}",
        "rate",
        [Contestant(peer.name, partial(peer.send, shape)) for peer in peers],
    )


def _bulk(group: str, where: str, context: Context, peers: list[Peer]) -> list[Case]:
    """Batches from one client; everybody in the form that suits him, 512 messages in flight."""
    shape = context.shape(1, _IN_FLIGHT, BATCH)
    contestants: list[Contestant] = []
    for peer in peers:
        if isinstance(peer, Store):
            contestants += _ways(peer, shape)
        elif isinstance(peer, Nats):
            single = context.shape(1, _IN_FLIGHT * BATCH)
            contestants.append(Contestant(f"{peer.name}, pipelined", partial(peer.send, single)))
        elif isinstance(peer, Echo):
            contestants.append(Contestant(f"{peer.name}, stream", partial(peer.send_stream, shape)))
        else:
            contestants.append(Contestant(peer.name, partial(peer.send, shape)))
    return [
        Case(f"{group}.batch", f"Batches of {BATCH}, 1 client, {_IN_FLIGHT} in flight, {where}", "rate", contestants)
    ]


def _ways(store: Store, shape: LoadShape) -> list[Contestant]:
    ways: dict[str, Callable[[LoadShape], Sample]] = {
        "encoded": store.send_encoded,
        "stream": store.send_stream,
        "decoded": store.send_decoded,
    }
    return [Contestant(f"{store.name}, {way}", partial(send, shape)) for way, send in ways.items()]
