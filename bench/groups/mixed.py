"""Sends while everything else goes on, in a large store: what they wait for is the turn of the event loop."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.process import environment, free_port
from bench.store import Store

ALONE, MIXED = "sends alone", "with all else"
TABLE = 10_000
"""Topics, and groups, of the store."""
_CLIENTS = 4
_SECONDS, _QUICK_SECONDS = 15.0, 5.0
_READY_SECONDS = 60.0
_ROOT = Path(__file__).parent.parent.parent
_LAG = "tandem_loop_lag_seconds_bucket"


def mixed(context: Context) -> None:
    """The same sends, alone and beside the works of `workers/mixing.py`."""
    table = TABLE // 10 if context.quick else TABLE
    directory, classic, metrics = context.fresh("mixed"), free_port(), free_port()
    hours = ";".join(f"{hour:02}" for hour in range(24))
    store = Store(
        directory, remotingMode="on", listenPort=classic, metricsPort=metrics, mappedFileSizeCommitLog=64 << 20,
        fileReservedTime=0, deleteWhen=hours, cleanResourceInterval=500,
    )  # fmt: skip
    _write_tables(store.root / "config", table)
    try:
        store.start()
        store.warm_up(2.0)

        def alone() -> Sample:
            shape = replace(context.shape(_CLIENTS), seconds=_QUICK_SECONDS if context.quick else _SECONDS)
            before = _lags(metrics)
            sample = store.send(shape)
            return {**sample, **_lag(before, _lags(metrics))}

        def beside() -> Sample:
            with _mixing(store.server.target, f"127.0.0.1:{classic}"):
                return alone()

        contestants = [Contestant(ALONE, alone), Contestant(MIXED, beside)]
        title = f"Single sends, {_CLIENTS} clients, in a store of {table:,} topics and groups"
        context.run([Case("mixed.send", title, "p99_us", contestants, rounds=2)])
    finally:
        store.server.discard()


def _write_tables(config: Path, number: int) -> None:
    """RocketMQ's own files, with which a store without a metadata service begins."""
    config.mkdir(parents=True)
    topics = {f"topic-{one:05}": {"readQueueNums": 8, "writeQueueNums": 8, "perm": 6} for one in range(number)}
    groups = {f"group-{one:05}": {"retryMaxTimes": 16} for one in range(number)}
    offsets = {f"topic-{one:05}@group-{one:05}": dict.fromkeys(range(2), 0) for one in range(number)}
    for name, document in (
        ("topics", {"topicConfigTable": topics}),
        ("subscriptionGroup", {"subscriptionGroupTable": groups}),
        ("consumerOffset", {"offsetTable": offsets}),
    ):
        version = {"dataVersion": {"counter": 1, "timestamp": 0, "stateVersion": 0}}
        (config / f"{name}.json").write_text(json.dumps({**document, **version}))


@contextmanager
def _mixing(target: str, classic: str) -> Iterator[None]:
    """The other works, in a process of their own. Raises Unavailable where they fail."""
    command = [sys.executable, "-m", "bench.worker", "mix", target, classic]
    with subprocess.Popen(
        command, cwd=_ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline().strip() == "ready":
                time.sleep(0.5)
                yield
            failed = process.poll() is not None
        finally:
            process.kill()
            _, complaint = process.communicate()
    if failed:
        last = complaint.strip().splitlines()[-1:] or ["no reason given"]
        raise Unavailable(f"the other works have ended: {last[0][:300]}")


def _lags(port: int) -> dict[float, float]:
    """By upper bound in seconds: how often the loop was late by no more, since the start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_READY_SECONDS) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith(_LAG)]
    return {float(line.partition('le="')[2].partition('"')[0]): float(line.rpartition(" ")[2]) for line in found}


def _lag(before: dict[float, float], after: dict[float, float]) -> Sample:
    """How late the loop was meanwhile, to the bound above, in ms."""
    counts = {bound: after[bound] - before[bound] for bound in sorted(after)}
    looks = max(counts.values())

    def least(share: float) -> float:
        return 1_000 * next(bound for bound, count in counts.items() if count >= share * looks)

    return {"lag_p99_ms": least(0.99), "lag_max_ms": least(1.0)}
