"""Receive and acknowledge, beside RocketMQ and NATS JetStream; delays, transactions; and what grows with what waits."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count

from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.peers.nats import Nats
from bench.peers.rocketmq_proxy import RocketMQProxy
from bench.store import NAME, Store

CONSUMERS = (1, 16, 64)
BATCHES = (1, 32)
FLUSHES = {"page": ("ASYNC_FLUSH", "page cache"), "disk": ("SYNC_FLUSH", "on disk")}
_MESSAGES = 300_000
"""What a group finds when it begins; more than it can take in a round."""
_TIMERS = {"few": 1_000, "many": 10_000_000}

Consuming = Store | RocketMQProxy | Nats


def delivery(context: Context) -> None:
    """All of it."""
    for name, (flush, where) in FLUSHES.items():
        shapes = [(consumers, batch) for consumers in CONSUMERS for batch in BATCHES]
        cases = [f"delivery.{name}-{consumers}x{batch}" for consumers, batch in shapes]
        if any(context.wants(case) for case in cases):
            _receives(context, name, flush, where)
    _inside(context)


def _receives(context: Context, name: str, flush: str, where: str) -> None:
    """Each round is a group of its own, which begins at the first message."""
    numbers = count(1)
    makers: list[Callable[[], Consuming]] = [
        lambda: Store(context.fresh(f"store-receive-{name}"), flushDiskType=flush),
        lambda: RocketMQProxy(context.fresh(f"rocketmq-proxy-{name}"), flush),
    ]
    if flush == "ASYNC_FLUSH":  # Debian's NATS never syncs for each message
        makers.append(lambda: Nats(context.fresh("nats-receive")))
    messages = _MESSAGES // 5 if context.quick else _MESSAGES
    with context.running(makers) as peers:
        for peer in peers:
            peer.fill(messages)
        for peer in peers:
            for _ in range(1 if context.quick else 4):  # the JVM compiles what is hot, the store loads what it has
                with suppress(Unavailable):
                    peer.receive(context.shape(16, 1, BATCHES[-1]), f"warm{next(numbers)}")
        context.run(
            [
                Case(
                    f"delivery.{name}-{consumers}x{batch}",
                    f"Receive and acknowledge, {consumers} consumers, {batch} at a time, {where}",
                    "rate",
                    [
                        Contestant(peer.name, partial(_round, peer, context, consumers, batch, numbers))
                        for peer in peers
                    ],
                )
                for consumers in CONSUMERS
                for batch in BATCHES
            ]
        )


def _round(peer: Consuming, context: Context, consumers: int, batch: int, numbers: Iterator[int]) -> Sample:
    return peer.receive(context.shape(consumers, 1, batch), f"group{next(numbers)}")


def _inside(context: Context) -> None:
    """Measured in a process of its own, in the store's code without a network."""

    def worker(*arguments: object) -> dict[str, Sample]:
        answer: dict[str, Sample] = json.loads(context.worker("delivery", *map(str, arguments)))
        return answer

    def case(name: str, title: str, metric: str, *arguments: object) -> Case:
        def together(rounds: int) -> dict[str, list[Sample]]:
            found: dict[str, list[Sample]] = {}
            for _ in range(rounds):
                for who, sample in worker(name, context.fresh(f"delivery-{name}"), *arguments).items():
                    found.setdefault(who, []).append(sample)
            return found

        return Case(f"delivery.{name}", title, metric, together=together, rounds=2)

    size = 10 if context.quick else 1
    context.run(
        [
            case("delayed", f"{NAME}: timed messages, in and out", "rate", 20_000 // size),
            case("late", f"{NAME}: 5,000 timed messages a second, how late", "p99_us", 5_000, 4 if size > 1 else 10),
            case("transactions", f"{NAME}: half messages and their commits", "rate", 20_000 // size),
            case(
                "timers", f"{NAME}: cost of one more timer, of a load of those due, and of a start", "us",
                *(waiting // (100 if context.quick else 1) for waiting in _TIMERS.values()),
            ),
            case("groups", f"{NAME}: 10,000 groups, the journal's base and its replay", "seconds", 10_000 // size),
            case("in-flight", f"{NAME}: a million messages in flight, memory", "anon_mb", 1_000_000 // size),
        ]
    )  # fmt: skip
