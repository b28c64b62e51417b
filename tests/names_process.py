"""A name server as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tandemmq.common.documents import java_json
from tests.faults.pair_process import free_port
from tests.interop.remoting import Answer, Remoting
from tests.started import started

START_SECONDS = 240.0
REGISTER_BROKER, GET_ROUTE, GET_CLUSTER = 103, 105, 106
TOPIC_NOT_EXIST = 17


class NamesProcess:
    """`tandem serve names --json`. Settings are given as attributes of NamingSettings."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.directory = directory
        own = {"names_directory": directory, "names_port": free_port(), "grpc_port": 0, "metrics_port": 0}
        self.settings: dict[str, object] = {**own, **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.told: dict[str, Any] = {}
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / "names.log"

    @property
    def address(self) -> str:
        """Where it tells names."""
        return f"127.0.0.1:{self.settings['names_port']}"

    def start(self) -> Self:
        """Starts and waits until it serves; fails with its log when it does not."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment |= {f"TANDEM_{name.upper()}": str(value) for name, value in self.settings.items()}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tandemmq.cli.main", "names", "--json"],
                env=environment,
                stderr=log,
                stdout=subprocess.PIPE,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the name server did not start:\n{self.log.read_text()}"
        self.told = json.loads(line)
        return self

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops it and gives its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(timeout=START_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def connect(self) -> Remoting:
        """A connection."""
        return Remoting(int(str(self.settings["names_port"])))

    def ask(self, code: int, fields: dict[str, object] | None = None, body: bytes = b"") -> Answer:
        """One answer, over a connection of its own."""
        with self.connect() as remoting:
            return remoting.call(code, fields, body)

    def route(self, topic: str) -> dict[str, dict[str, str]] | None:
        """Addresses by id, by broker; None where there is no route."""
        answer = self.ask(GET_ROUTE, {"topic": topic})
        if answer.code == TOPIC_NOT_EXIST:
            return None
        assert answer.code == 0, answer
        return {one["brokerName"]: one["brokerAddrs"] for one in java_json.loads(answer.body)["brokerDatas"]}

    def until_route(self, topic: str, expected: dict[str, dict[str, str]] | None, seconds: float = 60.0) -> None:
        """Waits until a topic has that route."""
        deadline = time.monotonic() + seconds
        while (found := self.route(topic)) != expected:
            assert time.monotonic() < deadline, f"the route of {topic} is {found}, not {expected}"
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return started(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)
