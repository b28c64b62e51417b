"""A metadata service as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.faults.pair_process import free_port
from tests.started import started

START_SECONDS = 240.0

QUICK: dict[str, object] = {
    "metasync_initial_delay": 0,
    "metasync_interval": 100,
    "metasync_timeout": 10_000,  # patience costs nothing where an answer comes
    "flush_consumer_offset_interval": 100,
    "flush_delay_offset_interval": 100,
    "role_poll_interval": 100,
    "store_address": "",
    "shutdown_grace_ms": 200,
}
"""Settings that make the service do in tenths of a second what takes it seconds, and leave it without a store."""


class MetasyncProcess:
    """`python -m tandemmq.metasync` on a directory. Settings are given as attributes of MetasyncSettings."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.directory = directory
        # A port that the kernel gives to no outgoing connection: it is ours again after a restart, whoever dials it.
        own = {"store_path_root_dir": directory, "grpc_port": free_port()}
        self.settings: dict[str, object] = {**QUICK, **own, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory.with_name(directory.name + ".metasync.log")
        self.address = ""
        self.metrics_port = 0

    def file(self, name: str) -> Path:
        """A file of its tables."""
        return self.directory / "config" / name

    def start(self) -> Self:
        """Starts and waits until it serves; fails with its log when it does not."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            events = self.events()
            if any(event["event"] == "serving" for event in events):
                listening = next(event for event in events if event["event"] == "listening")
                self.address, self.metrics_port = listening["grpc"], listening["metrics_port"]
                return self
            assert self.process is not None
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"metasync did not start:\n{self.log.read_text()}")

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts without waiting."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment |= {"TANDEM_METRICS_PORT": "0", "TANDEM_LOG_FORMAT": "json"}
        environment |= {f"TANDEM_{name.upper()}": str(value) for name, value in self.settings.items()}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "tandemmq.metasync"], env=environment, stderr=log)
        return self.process

    def events(self) -> list[dict[str, Any]]:
        """What it has logged, line by line."""
        lines = self.log.read_text().splitlines(keepends=True)  # the last one may be half written
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def said(self, event: str) -> bool:
        """Whether it has logged an event."""
        return any(one["event"] == event for one in self.events())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops it and gives its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=START_SECONDS)

    def restart(self, number: signal.Signals = signal.SIGTERM) -> Self:
        """Stops it (or kills it) and starts it again, on the same port."""
        self.stop(number)
        return self.start()

    @contextmanager
    def stub(self) -> Iterator[MetadataStub]:
        """The generated stub."""
        with grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            yield MetadataStub(channel)

    def status(self) -> pb.StatusResponse:
        """What Status answers."""
        with self.stub() as stub:
            return stub.Status(pb.StatusRequest(), timeout=60, wait_for_ready=True)

    def table_status(self, table: "pb.Table.ValueType") -> pb.TableStatus:
        """What it says of one table."""
        return next(one for one in self.status().tables if one.table == table)

    def whole(self, table: "pb.Table.ValueType") -> list[pb.TablePage]:
        """Every page of a table."""
        with self.stub() as stub:
            return list(stub.GetTable(pb.GetTableRequest(table=table), timeout=60, wait_for_ready=True))

    def names(self, table: "pb.Table.ValueType" = pb.TOPICS) -> set[str]:
        """The names in the table of topics or groups."""
        pages = self.whole(table)
        assert pages[-1].last
        found = [topic.name for page in pages for topic in page.topics]
        found += [group.name for page in pages for group in page.groups]
        assert len(found) == pages[-1].total
        return set(found)

    def __enter__(self) -> Self:
        return started(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Waits for a condition; fails when it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)
