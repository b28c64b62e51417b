"""A real RocketMQ broker as a contestant; how it is brought and started is said in `rocketmq_broker`."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

from bench import payloads
from bench.generators import LoadShape, run, wire_load
from bench.model import Sample, Unavailable
from bench.peers.rocketmq_broker import broker
from tandemmq.client import decode_records
from tandemmq.common.wire.remoting.frames import RemotingFrameReader

VERSION = "5.3.2"
_HEAP = "1500m"
_WARM_UP_MOST = 60.0
_CALM, _CALM_ROUNDS = 0.25, 3
"""Below that share of a core, in so many looks in a row, the JVM's compiler counts as done."""
_LOOK_SECONDS = 0.3
_PULL_SECONDS = 30.0


class RocketMQ:
    """A broker. `flush` is its flushDiskType: ASYNC_FLUSH or SYNC_FLUSH; its name, unless a version is given."""

    def __init__(self, directory: Path, flush: str, warm_up: float, version: str | None = None) -> None:
        self.name = f"RocketMQ {version or flush}"
        self._warm_up = warm_up
        settings = {
            "brokerClusterName": "bench",
            "storePathRootDir": directory / "store",
            "storePathCommitLog": directory / "store" / "commitlog",
            "autoCreateTopicEnable": "true",
            "flushDiskType": flush,
        }
        jvm = [f"-Xms{_HEAP}", f"-Xmx{_HEAP}"]
        self.server = broker(f"rocketmq-{flush.lower()}", version or VERSION, directory, settings, jvm)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it, and press for `warm_up` seconds at least and until the JVM has compiled what is hot."""
        self.server.start()

        def press() -> None:
            self.send(LoadShape(1, 8, items=payloads.BATCH, warm=0.4, seconds=0.1))
            self.send(LoadShape(64, 1, warm=1.4, seconds=0.1))

        warm_up(press, self.server.cpu, self._warm_up)

    def send(self, shape: LoadShape) -> Sample:
        """Single sends; with `items`, batches of so many in one request."""
        return send(self.server.target, self._data, shape, self.server.cpu)

    def pull(self, shape: LoadShape) -> Sample:
        """Pulls of `items` messages, always the same ones."""
        return pull(self.server.target, self._data, shape, self.server.cpu)


def warm_up(press: Callable[[], None], cpu: Callable[[], float], seconds: float) -> None:
    """Press again and again for `seconds` at least, and until the compilers of the JVMs behind `cpu` are done."""
    begun, calm = time.monotonic(), 0
    while time.monotonic() - begun < (seconds if calm >= _CALM_ROUNDS else _WARM_UP_MOST):
        press()
        calm = calm + 1 if _load_when_idle(cpu) < _CALM else 0


def _load_when_idle(cpu: Callable[[], float]) -> float:
    """Share of a core that is taken with nothing to do: the compiler's, as long as it has a backlog."""
    before = cpu()
    time.sleep(_LOOK_SECONDS)
    return (cpu() - before) / _LOOK_SECONDS


def send(target: str, directory: Path, shape: LoadShape, cpu: Callable[[], float], *, no_wait: bool = False) -> Sample:
    """Sends to the broker at `target`; requests are written into `directory`. All must be answered with success."""
    batch = shape.items if shape.items > 1 else 0
    frame = payloads.remoting_frame(batch, no_wait=no_wait)
    return _press(target, payloads.write(directory, f"send-{batch}-{no_wait}", frame), shape, cpu)


def pull(target: str, directory: Path, shape: LoadShape, cpu: Callable[[], float]) -> Sample:
    """Pulls of `items` messages from the beginning of queue 0. Raises Unavailable: an answer has not so many."""
    frame = payloads.remoting_pull(shape.items)
    found = first_pull(target, frame)
    if found != shape.items:
        raise Unavailable(f"a pull of {shape.items} messages gives {found}")
    return _press(target, payloads.write(directory, f"pull-{shape.items}", frame), shape, cpu)


def first_pull(target: str, frame: bytes) -> int:
    """How many messages the answer to a pull has."""
    host, _, port = target.rpartition(":")
    reader = RemotingFrameReader()
    with socket.create_connection((host, int(port)), timeout=_PULL_SECONDS) as connection:
        connection.sendall(frame.replace(b"SSSSSSSS", b"00000000"))
        while True:
            for answer in reader.receive(connection.recv(1 << 20) or _ended(target)):
                return len(decode_records(answer.body))


def _ended(target: str) -> bytes:
    raise Unavailable(f"{target} has closed the connection")


def _press(target: str, data: Path, shape: LoadShape, cpu: Callable[[], float]) -> Sample:
    """The request in a file, again and again."""
    command = [str(wire_load()), "--protocol", "remoting", "--target", target, "--data", str(data)]
    command += ["--window", str(shape.in_flight)]
    return run(command, shape, cpu)
