"""Start on an empty directory to the first answer, and what the idle service then takes."""

import time
from collections.abc import Callable

from bench.context import Context
from bench.model import Case, Contestant, Sample
from bench.peers.rocketmq import RocketMQ
from bench.process import ServerProcess, disk_mb
from bench.store import NAME, Store

_IDLE_SECONDS = 2.0


def start(context: Context) -> None:
    """Ours with both profiles, and RocketMQ, which has no smaller one."""
    contestants = [
        Contestant(f"{NAME}, embedded", lambda: _ours(context, "embedded")),
        Contestant(f"{NAME}, server", lambda: _ours(context, "server")),
        Contestant("RocketMQ", lambda: _theirs(context)),
    ]
    context.run([Case("start.empty", "Start to the first answer, and idle", "seconds", contestants, rounds=3)])


def _ours(context: Context, profile: str) -> Sample:
    store = Store(context.fresh(f"start-{profile}"), profile=profile)
    return _started(store.server, store.start)


def _theirs(context: Context) -> Sample:
    broker = RocketMQ(context.fresh("start-rocketmq"), "ASYNC_FLUSH", warm_up=0)
    return _started(broker.server, broker.server.start)


def _started(server: ServerProcess, begin: Callable[[], float]) -> Sample:
    try:
        seconds = begin()
        time.sleep(_IDLE_SECONDS)
        resident, anonymous = server.memory_mb()
        return {
            "seconds": seconds,
            "rss_mb": resident,
            "anon_mb": anonymous,
            "disk_mb": disk_mb(server.directory),
        }
    finally:
        server.discard()
