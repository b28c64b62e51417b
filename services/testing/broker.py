"""A broker for tests: a store in a process of its own, in a temporary directory, on free ports."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tandemmq.common.processes.child_process import ending_with_us, how_it_ended
from tandemmq.common.server_packages import WHAT_INSTALLS
from tandemmq.testing.errors import BrokerNotStarted, NameTaken

HOST = "127.0.0.1"

_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.002
_CALL_SECONDS = 30.0
_SETTINGS = {
    "storePathRootDir": "store",
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 20 * 10_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
    "prefaultBytes": 0,
    "brokerName": "testing",
    "shutdownGraceMs": 500,
}
"""Small files, which are quick to make; `settings` of a broker wins."""

_FREE = {"internalPort": 0, "metricsPort": 0}
_names = itertools.count(1)


class TemporaryBroker:
    """A broker that lives as long as a `with` block, or from `start` to `stop`.

    It speaks all that a store speaks: on `port` `tandemmq.client` and official RocketMQ 5 clients of any language, on
    `classic_port` those of RocketMQ 4.
    Whatever becomes of us, it ends with us, and its directory goes.
    """

    _ends_with = signal.SIGKILL
    """What its process gets when we die."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        """`settings`: the store's own by their names, as in broker.conf: `{"maxMessageSize": 1 << 20}`."""
        self._settings = {**_SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: Path | None = None
        self._log: IO[bytes] | None = None
        self.port = 0
        """Where clients connect; the same after `restart`."""
        self.classic_port = 0
        """Where classic RocketMQ clients (remoting protocol) connect; 0 where they are not served."""

    @property
    def host(self) -> str:
        """127.0.0.1."""
        return HOST

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`, the endpoint of clients."""
        return f"{HOST}:{self.port}"

    @property
    def directory(self) -> Path:
        """Of the store's files and its log. Raises BrokerNotStarted."""
        if self._directory is None:
            raise BrokerNotStarted("the broker has no directory: it was not started")
        return self._directory

    @property
    def log(self) -> str:
        """What the store has logged, JSON lines."""
        return (self.directory / "store.log").read_text(errors="replace")

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, and come back when it answers. Raises BrokerNotStarted with its last words.

        It ends with the thread that calls this, as with the process: call it in one that lives on, as the main thread.
        """
        if self._process is not None:
            raise BrokerNotStarted("the broker runs already")
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="tandem-testing-"))
        self._launch()
        self._wait_serving()
        return self

    def _command(self) -> list[str]:
        """What runs the store in the foreground, its log as JSON lines on stderr."""
        given = {**_FREE, **self._settings, "grpcPort": self.port, "listenPort": self.classic_port}
        root = self.directory / str(given["storePathRootDir"])
        config = self.directory / "broker.conf"
        config.write_text("".join(f"{name}={value}\n" for name, value in {**given, "storePathRootDir": root}.items()))
        return [sys.executable, "-m", "tandemmq.store", "--config", str(config), "--profile", "embedded"]

    def _launch(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment["TANDEM_LOG_FORMAT"] = "json"
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling all modules anew takes a second of each start
        self._log = (self.directory / "store.log").open("wb")
        self._process = subprocess.Popen(
            self._command(),
            cwd=self.directory,
            env=ending_with_us(environment, self._ends_with),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            start_new_session=True,
        )

    def _wait_serving(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            events = self._events()
            if any(event.get("event") == "delivering" for event in events):
                self._take_ports(events)
                return
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(_LOOK_SECONDS)
        last = "\n".join(self.log.splitlines()[-10:])
        self.kill()
        self.stop()
        is_missing = any(one in last for one in (WHAT_INSTALLS, "ModuleNotFoundError"))
        missing = " (pip install 'tandemmq[testing]' brings what it needs)" if is_missing else ""
        raise BrokerNotStarted(f"the broker did not start{missing}; it said last:\n{last}")

    def _take_ports(self, events: list[dict[str, Any]]) -> None:
        """Of what the store has told."""
        self.port = _port(events, "listening", "grpc")
        self.classic_port = _port(events, "listening for classic clients", "remoting")

    def _events(self) -> list[dict[str, Any]]:
        lines = self.log.splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def stop(self) -> None:
        """Stop it in order, and remove its directory. Nothing where it does not run any more."""
        self._end(signal.SIGTERM)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
            self.port = self.classic_port = 0

    def kill(self) -> None:
        """Kill it, as a crash would; `start` goes on with the same files on the same port."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it in order and start it again, with the same files on the same port."""
        self._end(signal.SIGTERM)
        self.start()

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def process_id(self) -> int:
        """Of the store. Raises BrokerNotStarted."""
        if self._process is None:
            raise BrokerNotStarted("the broker does not run")
        return self._process.pid

    @property
    def ended(self) -> str:
        """Empty while it runs; else how its process ended, as `exit code 1` or `SIGKILL`."""
        if self._process is None:
            return "it was stopped"
        code = self._process.poll()
        return "" if code is None else how_it_ended(code)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- what tests need --------------------------------------------------------------------------------------------

    def create_topic(self, name: str = "", *, queues: int = 8, message_type: str = "") -> str:
        """Make a topic that can be used at once; gives its name, which is a new one if none is given.

        `message_type`: NORMAL, FIFO, DELAY, TRANSACTION or PRIORITY, in either case; empty: any but the last.
        Raises NameTaken; tandemmq.client.ClientError where the broker refuses it or does not answer.
        """
        from tandemmq.delivery.v1.operations_pb2 import CreateTopicRequest
        from tandemmq.metadata.v1.metadata_pb2 import TopicConfig

        name = name or f"topic-{next(_names)}"
        kind = {"message.type": message_type.upper() or "MIXED"}
        config = TopicConfig(name=name, read_queues=queues, write_queues=queues, attributes=kind)
        self._create("CreateTopic", f"topic {name}", CreateTopicRequest(config=config))
        return name

    def create_group(self, name: str = "", *, fifo: bool = False, retries: int = 16) -> str:
        """Make a group that can be used at once; gives its name, which is a new one if none is given.

        `fifo`: in order by message group. `retries`: deliveries after the first, then a message goes to `%DLQ%NAME`.
        Groups that nobody made work too. Raises as `create_topic`.
        """
        from tandemmq.delivery.v1.operations_pb2 import CreateGroupRequest
        from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig

        name = name or f"group-{next(_names)}"
        config = SubscriptionGroupConfig(name=name, consume_message_orderly=fifo, retry_max_times=retries)
        self._create("CreateGroup", f"group {name}", CreateGroupRequest(config=config))
        return name

    def _create(self, method: str, what: str, request: Any) -> None:
        import grpc

        from tandemmq.client.channels import open_channel
        from tandemmq.client.errors import from_rpc
        from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub

        with open_channel(self.address) as channel:
            try:
                getattr(OperationsStub(channel), method)(request, timeout=_CALL_SECONDS)
            except grpc.RpcError as error:
                refused = from_rpc(error)
                if refused.code == "ALREADY_EXISTS":
                    raise NameTaken(f"there is a {what} already") from None
                raise refused from None


def _port(events: list[dict[str, Any]], what: str, where: str) -> int:
    """Of the first such event; 0 for none."""
    address = next((str(event[where]) for event in events if event.get("event") == what), ":0")
    return int(address.rpartition(":")[2])
