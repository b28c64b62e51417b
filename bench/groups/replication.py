"""Master and slave: how fast an empty slave catches up, what waiting for a slave adds to a send, how many may wait.

Our pair is two stores with two replicators, four processes; RocketMQ's is two brokers.
"""

import json
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.context import Context
from bench.generators import LoadShape
from bench.model import Case, Contestant, Measure, Sample
from bench.pair import TandemFollowed, TandemPair
from bench.peers.rocketmq_pair import VERSIONS, RocketMQFollowed, RocketMQPair

BARE, BARE_COLD = "bare sendfile", "bare, new pages"
Pair = TandemPair | RocketMQPair
Followed = TandemFollowed | RocketMQFollowed

_FILE = 1 << 30
"""Size of a log file, which is RocketMQ's default and ours."""
_FULL_MEGABYTES, _QUICK_MEGABYTES = 2_048 + 960, 448
_BODIES = {"1k": (1 << 10, "1 KiB"), "64k": (64 << 10, "64 KiB")}
_REST_SECONDS = 4.0
"""Before an empty slave starts: a virtual machine gives pages that were freed back to its host, which takes it a while,
and who comes at once finds them still there and is faster by far."""
_CLIENTS = (1, 64)
_WAITERS = ((1, 16), (16, 1), (1, 256), (256, 1), (16, 16))
"""Connections, and sends that wait on each."""


def replication(context: Context) -> None:
    """Catching up from a log of messages of 1 KiB and of 64 KiB; then sends to a SYNC_MASTER."""
    for size in _BODIES:
        if context.wants(f"replication.{size}"):
            _catching_up(context, size)
    cases = [*(f"added-{clients}" for clients in _CLIENTS), *(_waiting(*shape) for shape in _WAITERS)]
    if any(context.wants(f"replication.{case}") for case in cases):
        _sends(context)


# -- catching up ------------------------------------------------------------------------------------------------------


def _catching_up(context: Context, size: str) -> None:
    body, title = _BODIES[size]
    megabytes = _QUICK_MEGABYTES if context.quick else _FULL_MEGABYTES
    directory = context.fresh(f"followed-{size}")
    source = directory / "source"
    context.say(f"  writing {megabytes} MiB of log, messages of {title}")
    made = json.loads(context.worker("log", str(source), str(megabytes), str(body)))
    end, messages = made["end"], made["messages"]
    makers: list[Callable[[], Followed]] = [partial(_tandem, directory / "tandem", source, end, messages)]
    makers += [partial(_rocketmq, directory / version, version, source, end, messages) for version in VERSIONS]
    try:
        with context.running(makers) as followed:
            contestants = [Contestant(one.name, partial(_rested, one.catch_up)) for one in followed]
            for name, pages in ((BARE, "warm"), (BARE_COLD, "cold")):
                ship = partial(_ship, context, source, end, pages)
                contestants.append(Contestant(name, partial(_rested, ship)))
            name = f"replication.{size}"
            context.run([Case(name, f"An empty slave catches up, messages of {title}", "gb_s", contestants)])
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _rested(measure: Measure) -> Sample:
    time.sleep(_REST_SECONDS)
    return measure()


def _ship(context: Context, source: Path, end: int, pages: str) -> Sample:
    target = source.with_name("shipped")
    sample: Sample = json.loads(context.worker("ship", str(source), str(end), str(target), pages))
    return sample


def _tandem(directory: Path, source: Path, end: int, messages: int) -> TandemFollowed:
    """A master over the same files (links to them): nothing is sent to it."""
    shutil.copytree(source, directory / "master" / "store", copy_function=_link)
    return TandemFollowed(directory, end, messages)


def _link(source: str, target: str) -> None:
    """The log is shared, all else is copied."""
    if "commitlog" in Path(source).parts:
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)


def _rocketmq(directory: Path, version: str, source: Path, end: int, messages: int) -> RocketMQFollowed:
    """A master over a copy of the last file: no more than that is what its slave takes."""
    begin = (end - 1) // _FILE * _FILE
    log = directory / "master" / "store" / "commitlog"
    log.mkdir(parents=True)
    shutil.copy(source / "commitlog" / f"{begin:020d}", log)
    return RocketMQFollowed(directory, version, begin, end, messages * (end - begin) // end)


# -- sends ------------------------------------------------------------------------------------------------------------


def _sends(context: Context) -> None:
    seconds = 5.0 if context.quick else 12.0
    makers: list[Callable[[], Pair]] = [lambda: TandemPair(context.fresh("pair"), seconds / 4)]
    makers += [
        partial(lambda version: RocketMQPair(context.fresh(f"pair-{version}"), version, seconds), version)
        for version in VERSIONS
    ]
    with context.running(makers) as pairs:
        cases = [
            Case(
                f"replication.added-{clients}",
                f"What waiting for a slave adds to single sends, {_clients(clients)}",
                "added_p50_us",
                [Contestant(pair.name, partial(_added, pair, context.shape(clients))) for pair in pairs],
            )
            for clients in _CLIENTS
        ]
        cases += [
            Case(
                f"replication.{_waiting(*waiters)}",
                f"Single sends that wait for a slave, {_clients(waiters[0])} x {waiters[1]} in flight",
                "rate",
                [Contestant(pair.name, partial(pair.send, context.shape(*waiters))) for pair in pairs],
            )
            for waiters in _WAITERS
        ]
        context.run(cases)


def _added(pair: Pair, shape: LoadShape) -> Sample:
    """Sends that do not wait, as to an ASYNC_MASTER, and then sends that do."""
    alone, waited = pair.send(shape, no_wait=True), pair.send(shape)
    return {
        "added_p50_us": waited["p50_us"] - alone["p50_us"],
        "added_p99_us": waited["p99_us"] - alone["p99_us"],
        "p50_us": waited["p50_us"],
        "p99_us": waited["p99_us"],
        "alone_p50_us": alone["p50_us"],
        "alone_p99_us": alone["p99_us"],
        "rate": waited["rate"],
        "cpu_us": waited["cpu_us"],
        "alone_cpu_us": alone["cpu_us"],
    }


def _clients(count: int) -> str:
    return "1 client" if count == 1 else f"{count} clients"


def _waiting(connections: int, in_flight: int) -> str:
    return f"{connections}x{in_flight}"
