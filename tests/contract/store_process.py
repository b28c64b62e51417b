"""A store service as a process of its own, with small files."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc

from tandemmq.client import StoreClient
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.core_choice import core_choice
from tests.started import started

START_SECONDS = 240.0

POLLS_WAITING = "tandem_long_polls_waiting{"

SMALL = {
    "mapped_file_size_commit_log": 128 * 1024,
    "mapped_file_size_consume_queue": 4_000,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
    "max_message_size": 32 * 1024,
    "max_pull_bytes": 1 << 20,
    "prefault_bytes": 0,
}


class StoreProcess:
    """`python -m tandemmq.store` on a directory. Settings are given as attributes of StoreSettings."""

    service = "store"

    def __init__(self, directory: Path, **settings: object) -> None:
        self.directory = directory
        self.settings: dict[str, object] = {**self.defaults(), **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory.with_name(directory.name + ".log")
        self.address = ""
        self.metrics_port = 0

    def defaults(self) -> dict[str, object]:
        """Settings of the process that a test has not given."""
        own = {"internal_port": 0, "broker_name": "broker-a", "remoting_mode": "off"}
        return {**SMALL, **own, "store_path_root_dir": self.directory}

    def start(self) -> Self:
        """Starts and waits until the store serves; fails with its log when it does not."""
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
            time.sleep(0.02)
        raise AssertionError(f"the {self.service} did not start:\n{self.log.read_text()}")

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts without waiting."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment |= {"TANDEM_GRPC_PORT": "0", "TANDEM_METRICS_PORT": "0", "TANDEM_LOG_FORMAT": "json"}
        if self.service == "store":
            environment["TANDEM_COMPILED_CORE"] = core_choice()
        environment |= {f"TANDEM_{name.upper()}": str(value) for name, value in self.settings.items()}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"tandemmq.{self.service}"], env=environment, stderr=log
            )
        return self.process

    @property
    def internal(self) -> str:
        """Where it serves other services."""
        return str(next(event["internal"] for event in self.events() if event["event"] == "listening internally"))

    def events(self) -> list[dict[str, Any]]:
        """What the store has logged, line by line; without one that it is just writing."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def wait_polls(self, count: int) -> None:
        """Waits until so many readers wait at the store for messages: then a test may send what they wait for."""
        deadline = time.monotonic() + START_SECONDS
        while (waiting := self._polls_waiting()) != count:
            assert time.monotonic() < deadline, f"{waiting} readers wait, not {count}"
            time.sleep(0.02)

    def _polls_waiting(self) -> int:
        return int(next(float(line.split()[-1]) for line in self.scrape() if line.startswith(POLLS_WAITING)))

    def scrape(self) -> list[str]:
        """The lines of its metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
            return str(answer.read(), "utf-8").splitlines()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops the store and gives its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def wait(self) -> int:
        """Waits for the store to end and gives its exit code."""
        assert self.process is not None
        return self.process.wait(timeout=START_SECONDS)

    def restart(self, number: signal.Signals = signal.SIGTERM) -> Self:
        """Stops the store (or kills it) and starts it again."""
        self.stop(number)
        return self.start()

    def client(self) -> StoreClient:
        """A client; close it."""
        return StoreClient(self.address)

    @contextmanager
    def stub(self) -> Iterator[StoreStub]:
        """The generated stub."""
        with grpc.insecure_channel(self.address, options=[("grpc.max_send_message_length", -1)]) as channel:
            yield StoreStub(channel)

    @contextmanager
    def delivery(self) -> Iterator[DeliveryStub]:
        """The generated stub for consuming as a group."""
        with grpc.insecure_channel(self.address) as channel:
            yield DeliveryStub(channel)

    def __enter__(self) -> Self:
        return started(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)
