"""A real RocketMQ broker as a contestant; how it is brought and started is said in `rocketmq_broker`."""

from pathlib import Path

from bench import payloads
from bench.generators import Shape, run, wire_load
from bench.model import Sample
from bench.peers.rocketmq_broker import broker

VERSION = "5.3.2"
_HEAP = "1500m"


class RocketMQ:
    """A broker. `flush` is its flushDiskType: ASYNC_FLUSH or SYNC_FLUSH."""

    def __init__(self, directory: Path, flush: str, warm_up: float) -> None:
        self.name = f"RocketMQ {flush}"
        self._warm_up = warm_up
        settings = {
            "brokerClusterName": "bench",
            "storePathRootDir": directory / "store",
            "storePathCommitLog": directory / "store" / "commitlog",
            "autoCreateTopicEnable": "true",
            "flushDiskType": flush,
        }
        jvm = [f"-Xms{_HEAP}", f"-Xmx{_HEAP}"]
        self.server = broker(f"rocketmq-{flush.lower()}", VERSION, directory, settings, jvm)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it and let the JVM compile what is hot."""
        self.server.start()
        half = self._warm_up / 2
        self.send(Shape(64, 1, warm=half - 0.1, seconds=0.1))
        self.send(Shape(1, 8, items=payloads.BATCH, warm=half - 0.1, seconds=0.1))

    def send(self, shape: Shape) -> Sample:
        """Single sends; with `items`, batches of so many in one request."""
        batch = shape.items if shape.items > 1 else 0
        data = payloads.write(self._data, f"send-{batch}", payloads.remoting_frame(batch))
        command = [str(wire_load()), "--protocol", "remoting", "--target", self.server.target, "--data", str(data)]
        command += ["--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)
