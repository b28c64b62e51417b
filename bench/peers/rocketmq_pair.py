"""Two real RocketMQ brokers, master and slave, as a contestant; a name server of ours brings them together."""

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from bench import payloads
from bench.catching_up import Reached
from bench.generators import LoadShape
from bench.model import Sample, Unavailable
from bench.pair import with_shares
from bench.peers.rocketmq import send, warm_up
from bench.peers.rocketmq_broker import broker
from bench.peers.rocketmq_names import NameServer
from bench.process import CpuMeter, ServerProcess, Servers

VERSIONS = ("4.9.7", "5.3.2")
_JVM = ["-Xms1g", "-Xmx1g"]
_FOLLOW_SECONDS = 60.0
"""A slave of 4.9 says its first word five seconds after it has connected."""
_BEGUN_SECONDS = 0.3
_RECOVER_SECONDS = 120.0
_PATIENCE_MS = 3_600_000
_SETTLE_SECONDS = 0.3
"""After a pause, for all that was due meanwhile."""
_RUNTIME_INFO = 28
_STEP = 0.1


class RocketMQPair:
    """A SYNC_MASTER with a live slave. Both are paused while others have their turn: idle JVMs take their time too."""

    def __init__(self, directory: Path, version: str, seconds: float) -> None:
        self.name = pair_name(version)
        self._seconds = seconds
        self._paused = False
        self._master = _broker(version, directory / "master", "SYNC_MASTER")
        self._names = NameServer(ha_address(self._master))
        self._slave = _broker(version, directory / "slave", "SLAVE", self._names)
        self._data = directory.parent / f"{directory.name}-load"
        self.server = Servers({"master": self._master, "slave": self._slave}, self._names.stop)

    def start(self) -> None:
        """Start both, wait until the slave acknowledges, and press until both JVMs are warm. Raises Unavailable."""
        self._names.start()
        self._master.start()
        self._slave.start()
        begun = time.monotonic()
        while not self._acknowledges():
            if time.monotonic() - begun > _FOLLOW_SECONDS:
                raise Unavailable(f"{self.name}: the slave acknowledged nothing within {_FOLLOW_SECONDS:.0f} s")

        def press() -> None:
            self.send(LoadShape(64, 1, warm=1.0, seconds=0.1), no_wait=True)
            self.send(LoadShape(64, 1, warm=0.8, seconds=0.1))

        warm_up(press, CpuMeter(self.server.parts), self._seconds)
        self._pause()

    def _acknowledges(self) -> bool:
        try:
            return self.send(LoadShape(warm=_BEGUN_SECONDS, seconds=_BEGUN_SECONDS))["rate"] > 0
        except Unavailable:
            return False

    def send(self, shape: LoadShape, *, no_wait: bool = False) -> Sample:
        """Single sends, acknowledged by the slave, or with `no_wait` as an ASYNC_MASTER does it."""
        if self._paused:
            for server in self.server.parts.values():
                server.resume()
            time.sleep(_SETTLE_SECONDS)
        meter = CpuMeter(self.server.parts)
        try:
            return with_shares(send(self._master.target, self._data, shape, meter, no_wait=no_wait), meter)
        finally:
            if self._paused:
                self._pause()

    def _pause(self) -> None:
        self._paused = True
        for server in self.server.parts.values():
            server.pause()


class RocketMQFollowed:
    """A master over a log that was made before, and slaves that start from nothing: they take its last file.

    The master is paused while others have their turn.
    """

    def __init__(self, directory: Path, version: str, begin: int, end: int, messages: int) -> None:
        """The log's last file, from `begin`, lies in `directory`/master/store; it holds so many messages."""
        self.name = pair_name(version)
        self._directory, self._version = directory, version
        self._begin, self._end, self._messages = begin, end, messages
        self._master = _broker(version, directory / "master", "ASYNC_MASTER")
        self._names = NameServer(ha_address(self._master))
        self._slave: ServerProcess | None = None
        self.server = Servers({"master": self._master}, self._end_all)

    def start(self) -> None:
        """Start the master, and wait until its queues are there. Raises Unavailable."""
        self._names.start()
        self._master.start()
        begun = time.monotonic()
        while not BrokerAnswer(self._master).ready(self._end):
            if time.monotonic() - begun > _RECOVER_SECONDS:
                raise Unavailable(f"{self.name}: the master's queues are not ready")
            time.sleep(_STEP)
        self._master.pause()

    def catch_up(self) -> Sample:
        """An empty slave, until its log, queues and index are complete. Raises Unavailable."""
        self._discard_slave()
        self._slave = slave = _broker(self._version, self._directory / "slave", "SLAVE", self._names)
        servers = {"master": self._master, "slave": slave}
        reached = Reached(self._end, self._messages, servers, self._begin)
        self._master.resume()
        try:
            slave.start()
            asked = BrokerAnswer(slave)
            return reached.measure(asked.log_end, lambda: asked.ready(self._end))
        except OSError as error:
            raise Unavailable(f"the slave does not answer: {error}") from None
        finally:
            self._discard_slave()
            self._master.pause()

    def _discard_slave(self) -> None:
        if self._slave is not None:
            self._slave.discard()
            self._slave = None

    def _end_all(self) -> None:
        self._discard_slave()
        self._names.stop()


class BrokerAnswer:
    """What a broker says of itself."""

    def __init__(self, server: ServerProcess) -> None:
        self._port = server.port

    def log_end(self) -> int:
        """Where the log ends; 0 while the broker is not ready to say. Raises OSError."""
        return int(self._runtime().get("commitLogMaxOffset", 0))

    def ready(self, end: int) -> bool:
        """Whether the log ends there, with all queues and the index. Raises OSError."""
        said = self._runtime()
        return bool(said) and int(said["commitLogMaxOffset"]) >= end and int(said["dispatchBehindBytes"]) == 0

    def _runtime(self) -> Mapping[str, str]:
        """Empty where it refuses: it does for a moment when it starts."""
        header = {"code": _RUNTIME_INFO, "flag": 0, "language": "OTHER", "opaque": 1, "version": 401}
        data = json.dumps(header).encode()
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall((4 + len(data)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data)
            with connection.makefile("rb") as stream:
                frame = stream.read(int.from_bytes(stream.read(4), "big"))
        body = frame[4 + (int.from_bytes(frame[:4], "big") & 0xFFFFFF) :]
        table: dict[str, str] = json.loads(body)["table"] if body else {}
        return table


def pair_name(version: str) -> str:
    """What a pair of that version is called."""
    return f"RocketMQ {version}"


def ha_address(master: ServerProcess) -> str:
    """Where a master takes slaves."""
    return f"127.0.0.1:{master.port + 1}"


def _broker(version: str, home: Path, role: str, names: NameServer | None = None) -> ServerProcess:
    settings: dict[str, object] = {
        "brokerClusterName": "bench",
        "brokerName": payloads.TOPIC,
        "brokerRole": role,
        "brokerId": 0 if names is None else 1,
        "inSyncReplicas": 2,  # 5.x waits for no slave without it; 4.9 does not know it
        "haHousekeepingInterval": _PATIENCE_MS,  # or a pause would end the connection
        "storePathRootDir": home / "store",
        "storePathCommitLog": home / "store" / "commitlog",
        "autoCreateTopicEnable": "true",
    }
    if names is not None:
        settings["namesrvAddr"] = names.address
    return broker(f"rocketmq-{version}-{home.name}", version, home, settings, _JVM)
