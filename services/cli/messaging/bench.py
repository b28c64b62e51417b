"""`tandem bench`: a quick measure of a cluster that runs, from where one stands."""

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.talk.connection import STORE, resolved, told
from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tandemmq.client.aio import StoreClient

    Send = Callable[[StoreClient, "_Plan"], Awaitable[None]]

_PERCENTILES = (50, 90, 99, 99.9)
_BARS = " ▁▂▃▄▅▆▇█"
_PULL_BYTES = 1 << 20


@dataclass(frozen=True)
class Measure:
    """One kind of call, measured. Times in seconds."""

    what: str
    messages: int
    calls: int
    seconds: float
    body_bytes: int
    percentiles: dict[str, float]
    """Of the time of one call, by percentile."""
    shape: tuple[int, ...]
    """Calls by time: a bucket for each doubling from 32 µs on."""

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds if self.seconds else 0.0


def bench(
    topic: Annotated[
        str, typer.Option("--topic", metavar="TOPIC", help="Where to; made if it is missing. Its messages stay.")
    ] = "tandem-bench",
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=600, metavar="S", help="How long each kind of call is measured.")
    ] = 3.0,
    size: Annotated[int, typer.Option("--size", min=0, max=4 << 20, metavar="BYTES", help="Of a body.")] = 1024,
    clients: Annotated[
        int, typer.Option("--clients", min=1, max=1000, metavar="N", help="Calls at a time, on connections of 16.")
    ] = 16,
    batch: Annotated[int, typer.Option("--batch", min=1, max=1000, metavar="N", help="Messages of a batch.")] = 64,
    address: Address = DEFAULT_ADDRESS,
    as_json: Json = False,
) -> None:
    """Measure a store that runs, in a few seconds.

    Single sends one at a time and many at a time, batches, pulls. What is measured is store, network and this Python
    program together; `make bench` has native load and peers. Times are those of one call, until its receipt: with
    SYNC_FLUSH or SYNC_MASTER that means more.

    With --json: one document, {"measures": [{"what", "messages", "seconds", "per_second", "percentiles": {"50",
    ...}}]}.
    """
    import uvloop

    address = resolved(STORE, address)
    output = Output(as_json=as_json)
    plan = _Plan(topic, seconds, os.urandom(size), clients, batch)
    with told(STORE, address):
        measures = uvloop.run(_run(address, plan, output))
    if as_json:
        found = [{**asdict(one), "per_second": round(one.rate, 1)} for one in measures]
        output.document({"address": address, "measures": found})
        return
    columns = ("", "messages/s", "bodies", *(f"p{one:g}" for one in _PERCENTILES), "a call takes")
    dropped = output.table(columns, [_row(one) for one in measures], drop=("a call takes", "bodies"))
    if "a call takes" not in dropped:
        output.say("The last column: how many calls took how long, a bar for each doubling of the time from 32 µs on.")


def _row(one: Measure) -> list[str | int]:
    return [
        one.what,
        round(one.rate),
        f"{show_bytes(round(one.rate * one.body_bytes))}/s",
        *(show_seconds(one.percentiles[f"{each:g}"]) for each in _PERCENTILES),
        spark(one.shape),
    ]


def spark(counts: tuple[int, ...]) -> str:
    """Counts as a line of bars; one call is seen beside a million."""
    most = max(counts, default=0)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most)] if count else " " for count in counts) if most else ""


@dataclass(frozen=True)
class _Plan:
    topic: str
    seconds: float
    body: bytes
    clients: int
    batch: int


async def _run(address: str, plan: _Plan, output: Output) -> list[Measure]:
    from tandemmq.client import Identity
    from tandemmq.client.aio import StoreClient

    identity = Identity.from_environment().at(address).arguments()
    connections = [StoreClient(address, **identity) for _ in range(-(-plan.clients // 16))]
    try:
        first = await _first(connections[0], plan)
        output.remark(f"measuring {address}, {plan.seconds:g} s each …")
        alone = await _measure("send, 1 at a time", 1, connections, plan, _send_one, 1)
        many = await _measure(f"send, {plan.clients} at a time", plan.clients, connections, plan, _send_one, 1)
        batches = await _measure(f"send, batches of {plan.batch}", 2, connections, plan, _send_batch, plan.batch)
        return [alone, many, batches, await _measure_pulls(connections[0], plan, first)]
    finally:
        for one in connections:
            await one.close()


async def _first(client: "StoreClient", plan: _Plan) -> tuple[int, int]:
    """Queue and offset of a first message: the topic is there, and the store answers."""
    receipt = await client.send(plan.topic, plan.body)
    return receipt.queue_id, receipt.queue_offset


async def _send_one(client: "StoreClient", plan: _Plan) -> None:
    await client.send(plan.topic, plan.body)


async def _send_batch(client: "StoreClient", plan: _Plan) -> None:
    from tandemmq.client import Outgoing

    await client.send_encoded([Outgoing(plan.topic, plan.body)] * plan.batch)


async def _measure(
    what: str, callers: int, connections: "list[StoreClient]", plan: _Plan, send: "Send", messages: int
) -> Measure:
    """Callers that call again and again until the time is over, each at least once; a call sends so many messages."""
    import asyncio

    times: list[float] = []
    begun = time.perf_counter()
    end = begun + plan.seconds

    async def caller(client: "StoreClient") -> None:
        now = time.perf_counter()
        while True:
            await send(client, plan)
            at, now = now, time.perf_counter()
            times.append(now - at)
            if now >= end:
                return

    await asyncio.gather(*(caller(connections[at // 16 % len(connections)]) for at in range(callers)))
    return _measured(what, times, len(times) * messages, time.perf_counter() - begun, plan)


async def _measure_pulls(client: "StoreClient", plan: _Plan, first: tuple[int, int]) -> Measure:
    """Reads what was just sent to one queue, from its beginning, over and over; at least once."""
    queue_id, offset = first
    times: list[float] = []
    messages = 0
    at_offset = offset
    begun = time.perf_counter()
    while not times or time.perf_counter() - begun < plan.seconds:
        at = time.perf_counter()
        pulled = await client.pull(plan.topic, queue_id, at_offset, max_messages=1000, max_bytes=_PULL_BYTES)
        times.append(time.perf_counter() - at)
        if not pulled.records and at_offset == offset:
            raise CommandFailed(f"queue {queue_id} of {plan.topic} does not give back what was sent to it")
        messages += len(pulled.records)
        at_offset = pulled.next_offset if pulled.records else offset
    return _measured("pull, 1 MiB at a time", times, messages, time.perf_counter() - begun, plan)


def _measured(what: str, times: list[float], messages: int, seconds: float, plan: _Plan) -> Measure:
    times.sort()
    percentiles = {f"{one:g}": times[min(len(times) - 1, int(len(times) * one / 100))] for one in _PERCENTILES}
    shape = [0] * 16
    for one in times:
        shape[min(len(shape) - 1, max(0, int(one / 32e-6)).bit_length())] += 1
    return Measure(what, messages, len(times), seconds, len(plan.body), percentiles, tuple(shape))
