"""Clients of RocketMQ 5: SendMessage, and ReceiveMessage with AckMessage, beside RocketMQ's proxy in local mode."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count

from bench.context import Context
from bench.gateways import GatedStore
from bench.model import Case, Contestant, Sample, Unavailable
from bench.peers.rocketmq_proxy import RocketMQProxy

CLIENTS = (1, 16, 64)
BATCH = 32
_GATEWAYS = (0, 1, 2)
_MESSAGES = 300_000
_FLUSH = "ASYNC_FLUSH"

Served = GatedStore | RocketMQProxy


def rocketmq5(context: Context) -> None:
    """All of it. CPU a message is the store's alone, where there are gateways; the proxy's is that of its JVM."""
    makers: list[Callable[[], Served]] = [
        *(partial(_gated, context, gateways) for gateways in _GATEWAYS),
        lambda: RocketMQProxy(context.fresh("rocketmq-proxy-v2"), _FLUSH),
    ]
    numbers = count(1)
    with context.running(makers) as peers:
        for peer in peers:
            peer.fill(1)  # RocketMQ makes no topic for clients of RocketMQ 5
            with suppress(Unavailable):  # the JVM compiles what is hot, the store loads what it has
                peer.send(context.shape(16))
        context.run(
            [
                Case(
                    f"rocketmq5.send-{clients}", f"SendMessage, {clients} clients, page cache", "rate",
                    [Contestant(peer.name, partial(peer.send, context.shape(clients))) for peer in peers],
                )
                for clients in CLIENTS
            ]
        )  # fmt: skip
        for peer in peers:
            peer.fill(_MESSAGES // 5 if context.quick else _MESSAGES)
            with suppress(Unavailable):
                peer.receive(context.shape(16, 1, BATCH), f"warm{next(numbers)}")
        context.run(
            [
                Case(
                    f"rocketmq5.receive-{clients}",
                    f"ReceiveMessage and AckMessage, {clients} clients, {BATCH} at a time, page cache", "rate",
                    [Contestant(peer.name, partial(_received, peer, context, clients, numbers)) for peer in peers],
                )
                for clients in CLIENTS
            ]
        )  # fmt: skip


def _gated(context: Context, gateways: int) -> GatedStore:
    return GatedStore(context.fresh(f"v2-{gateways}"), gateways, flushDiskType=_FLUSH)


def _received(peer: Served, context: Context, clients: int, numbers: Iterator[int]) -> Sample:
    return peer.receive(context.shape(clients, 1, BATCH), f"group{next(numbers)}")
