"""Start on an empty directory to the first answer, and what idles then; how long calls of the command line take."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.peers.rocketmq import RocketMQ
from bench.process import ServerProcess, disk_mb, environment, tree_memory_mb
from bench.store import NAME, Store
from bench.whole_node import WholeNode

_IDLE_SECONDS = 2.0
NODE = "tandem up"
COMMANDS = {
    "--version": ("--version",),
    "--help": ("--help",),
    "send": ("send", "bench", "one espresso"),
    "topic list": ("topic", "list"),
    "check": ("check",),
}
"""Of `tandem`, by what is shown."""
UNANSWERED = "send, nobody answers"
_NOBODY = ("send", "bench", "one espresso", "--address", "127.0.0.1:1")


def start(context: Context) -> None:
    """Ours with both profiles, and RocketMQ, which has no smaller one."""
    contestants = [
        Contestant(f"{NAME}, embedded", lambda: _ours(context, "embedded")),
        Contestant(f"{NAME}, server", lambda: _ours(context, "server")),
        Contestant("RocketMQ", lambda: _theirs(context)),
    ]
    context.run([Case("start.empty", "Start to the first answer, and idle", "seconds", contestants, rounds=3)])
    node = [Contestant(NODE, lambda: _node(context))]
    context.run([Case("start.node", "Start of a whole node to the first answer, and idle", "seconds", node, rounds=3)])
    if context.wants("start.calls"):
        _calls(context)


def _node(context: Context) -> Sample:
    node = WholeNode(context.fresh("start-node"))
    try:
        seconds = node.start()
        time.sleep(_IDLE_SECONDS)
        resident, anonymous = tree_memory_mb(node.server.pid)
        return {"seconds": seconds, "rss_mb": resident, "anon_mb": anonymous}
    finally:
        node.server.discard()


def _calls(context: Context) -> None:
    """Against a node that runs."""
    node = WholeNode(context.fresh("start-calls"))
    try:
        node.start()
        node.call("topic", "list")  # once everything answers
        calls = [
            Contestant(f"tandem {shown}", partial(_call, partial(node.call, *words)))
            for shown, words in COMMANDS.items()
        ]
        calls.append(Contestant(f"tandem {UNANSWERED}", partial(_call, _unanswered)))
        context.run([Case("start.calls", "Calls of the command line", "seconds", calls)])
    finally:
        node.server.discard()


def _unanswered() -> None:
    """Raises Unavailable: somebody did answer."""
    command = [sys.executable, "-m", "tandemmq.cli.entry", *_NOBODY]
    if subprocess.run(command, env=environment(), capture_output=True, check=False).returncode != 1:
        raise Unavailable("a call of a port where nobody listens did not fail")


def _call(call: Callable[[], None]) -> Sample:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    call()
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "cpu_us": used * 1e6}


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
