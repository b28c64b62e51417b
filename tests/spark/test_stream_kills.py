"""Streaming jobs killed with -9 in the middle, and stores under them: the sink has every message exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.contract.store_process import StoreProcess
from tests.faults.harness import SEED
from tests.faults.pair_process import free_port
from tests.spark.streams import GAVE_UP, STARTS, Load
from tests.spark.test_streaming import read_now, running, stream, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

LIVES = int(os.environ.get("TANDEM_TEST_STREAM_LIVES", "1"))
PATIENCE = 300.0


class Job:
    """`stream_job.py` as processes: the program, and its JVM."""

    def __init__(self, place: Path, options: dict[str, object]) -> None:
        command = [sys.executable, "-m", "tests.spark.stream_job", str(place)]
        command += [f"{name}={value}" for name, value in options.items()]
        self._place, self._command = place, command
        self._log = (place / "job.log").open("ab")
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, cwd=Path(__file__).parents[2]
        )

    def write(self, more: int) -> None:
        """Wait until it has written so many micro-batches more."""
        enough = batches(self._place) + more
        for _ in range(STARTS):
            begin = (self._place / "job.log").stat().st_size
            until(lambda: batches(self._place) >= enough or self.process.poll() is not None)
            if self.process.poll() is None:
                return
            told = (self._place / "job.log").read_bytes()[begin:].decode()
            assert GAVE_UP in told, told
            self.process = self._start()
        raise AssertionError(GAVE_UP)

    def virtual_machine(self) -> int:
        """The JVM's process; 0 if there is none yet."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        numbers = children.read_text().split() if children.exists() else []
        return next((int(number) for number in numbers if b"java" in _command(int(number))), 0)

    def kill(self, victim: str) -> None:
        """Kill the program, its JVM, or both; wait until both are gone."""
        java = self.virtual_machine()
        assert java
        if victim in ("program", "both"):
            self.process.kill()
        if victim in ("java", "both"):
            os.kill(java, signal.SIGKILL)
        self.finish(java)

    def finish(self, java: int = 0) -> None:
        """Wait for the end."""
        try:
            self.process.wait(PATIENCE)
            until(lambda: not (java and b"java" in _command(java)))
        finally:
            self._log.close()

    def discard(self) -> None:
        if self.process.poll() is None:
            java = self.virtual_machine()
            self.process.kill()
            if java:
                os.kill(java, signal.SIGKILL)
            self.finish(java)


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.02)


def committed(place: Path) -> dict[str, Path]:
    """The sink's log by the name of its entries: one for each micro-batch, or for all before (``.compact``)."""
    folder = place / "out" / "_spark_metadata"
    found = folder.iterdir() if folder.is_dir() else ()
    return {path.name: path for path in found if path.name.removesuffix(".compact").isdigit()}


def arrived(place: Path) -> Counter[int]:
    """The numbers in the bodies of the files that the sink's log names, as a reader of the sink would find them."""
    entries = committed(place)
    compact = max((int(name.removesuffix(".compact")) for name in entries if "compact" in name), default=-1)
    files = [
        json.loads(line)["path"].removeprefix("file://")
        for name, path in entries.items()
        if (number := int(name.removesuffix(".compact"))) > compact or (number == compact and "compact" in name)
        for line in path.read_text().splitlines()[1:]
    ]
    return Counter(int(body) for file in files for body in pq.read_table(file)["body"].to_pylist())


def batches(place: Path) -> int:
    """How many micro-batches the sink has."""
    return max((int(name.removesuffix(".compact")) for name in committed(place)), default=-1) + 1


@pytest.fixture(autouse=True)
def _registered(session: "SparkSession") -> None:
    from tandemmq.spark.data_source import CommitLogDataSource

    session.dataSource.register(CommitLogDataSource)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["files", "network"])
def test_a_killed_job_goes_on_where_it_was(session: "SparkSession", tmp_path: Path, way: str) -> None:
    """In its last life it is a query of the session, over all there is."""
    chance = random.Random(SEED)
    sys.stdout.write(f"TANDEM_SEED={SEED}\n")
    with StoreProcess(tmp_path / "store") as store:
        load = Load(store.address, "orders", pause=0.04)
        options: dict[str, object] = {"store": store.address, "maxOffsetsPerTrigger": 1000}
        if way == "files":
            options["path"] = store.directory
        load.start()
        try:
            for life in range(LIVES):
                job = Job(tmp_path, options)
                try:
                    job.write(chance.randrange(1, 4))
                    time.sleep(chance.random() * 0.5)
                    job.kill(("program", "java", "both")[life % 3])
                finally:
                    job.discard()
            load.wait(max(0, 1001 - len(load.sent)))
        finally:
            load.stop()
        del options["maxOffsetsPerTrigger"]
        read_now(stream(session, columns="body", **options), tmp_path)
    assert not load.doubtful
    assert len(load.sent) > 1000
    found = arrived(tmp_path)
    assert not load.sent - found.keys(), "messages are missing"
    assert max(found.values()) == 1, "a message twice"
    assert found.keys() == load.sent


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["files", "network"])
def test_a_query_lives_through_its_stores_restarts(session: "SparkSession", tmp_path: Path, way: str) -> None:
    chance = random.Random(SEED)
    sys.stdout.write(f"TANDEM_SEED={SEED}\n")
    with StoreProcess(tmp_path / "store", grpc_port=free_port()) as store:
        load = Load(store.address, "orders", pause=0.04)
        options: dict[str, object] = {"store": store.address, "maxOffsetsPerTrigger": 1000}
        if way == "files":
            options["path"] = store.directory
        load.start()
        with running(stream(session, columns="body", **options), tmp_path) as query:
            try:
                for _ in range(LIVES):
                    enough = batches(tmp_path) + 1
                    wait_until(lambda: batches(tmp_path) >= enough, query)  # noqa: B023 - waits here
                    store.stop(signal.SIGKILL)
                    time.sleep(chance.random() * 2)
                    store.start()
            finally:
                load.stop()
            wait_until(lambda: arrived(tmp_path).keys() >= load.sent, query)
    found = arrived(tmp_path)
    assert max(found.values()) == 1, "a message twice"
    assert load.sent <= found.keys() <= load.sent | load.doubtful
