"""Our store as classic clients see it: on its remoting port, with the requests that RocketMQ's brokers get."""

from pathlib import Path

from bench import payloads
from bench.generators import LoadShape
from bench.model import Sample
from bench.peers import rocketmq
from bench.process import free_port
from bench.store import NAME, Store

_WARM_SECONDS = 1.0


class ClassicStore:
    """A store that acknowledges from the page cache."""

    name = NAME

    def __init__(self, directory: Path) -> None:
        port = free_port()
        self._target = f"127.0.0.1:{port}"
        self._store = Store(directory, remotingMode="on", listenPort=port, flushDiskType="ASYNC_FLUSH")
        self.server = self._store.server
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it, and press it as its peers are: the store loads its compiled code under load."""
        self._store.start()
        self.send(LoadShape(1, 8, items=payloads.BATCH, warm=_WARM_SECONDS, seconds=0.1))

    def send(self, shape: LoadShape) -> Sample:
        """Single sends; with `items`, batches of so many in one request."""
        return rocketmq.send(self._target, self._data, shape, self.server.cpu)

    def pull(self, shape: LoadShape) -> Sample:
        """Pulls of `items` messages, always the same ones."""
        return rocketmq.pull(self._target, self._data, shape, self.server.cpu)
