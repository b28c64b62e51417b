"""Our store behind gateways as a contestant: clients of RocketMQ 5 press on the gateways, the store's CPU is told."""

import sys
from pathlib import Path

from bench import rocketmq5
from bench.generators import LoadShape
from bench.model import Sample
from bench.process import ServerProcess, Servers, free_port
from bench.store import NAME, Store

_BROKER = "bench"


class GatedStore:
    """A store, directly or behind so many gateways."""

    def __init__(self, directory: Path, gateways: int, **settings: str | int) -> None:
        """`settings`: of the store."""
        self.name = f"{NAME} direct" if not gateways else f"{NAME}, {gateways} gateway{'s' * (gateways > 1)}"
        internal = free_port()
        settings = {"brokerName": _BROKER, "internalPort": internal, **settings}
        self._store = Store(directory, **settings)  # type: ignore[arg-type]
        self._gateways = [self._gateway(directory / f"gateway-{number}", internal) for number in range(gateways)]
        parts = {"store": self._store.server} | {one.name: one for one in self._gateways}
        self.server = Servers(parts)
        self._data = directory.parent / f"{directory.name}-v2-load"

    @staticmethod
    def _gateway(directory: Path, internal: int) -> ServerProcess:
        port = free_port()
        directory.mkdir(parents=True, exist_ok=True)
        conf = directory / "gateway.conf"
        lines = {
            "brokers": f"{_BROKER}=127.0.0.1:{internal}", "grpcPort": port, "grpcHost": "127.0.0.1", "metricsPort": 0,
            "logLevel": "WARNING",
        }  # fmt: skip
        conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        command = [sys.executable, "-m", "tandemmq.gateway", "--config", str(conf)]
        return ServerProcess(directory.name, command, directory, port)

    def start(self) -> None:
        """Start all. Raises Unavailable."""
        self._store.start()
        for gateway in self._gateways:
            gateway.start()

    def fill(self, messages: int) -> int:
        """See `Store.fill`."""
        return self._store.fill(messages)

    def send(self, shape: LoadShape) -> Sample:
        """SendMessage, one message a call."""
        return rocketmq5.send(self._targets, self._data, shape, self._store.server.cpu)

    def receive(self, shape: LoadShape, group: str) -> Sample:
        """ReceiveMessage and AckMessage as a group that begins here."""
        return rocketmq5.receive(self._targets, self._data, shape, group, self._store.server.cpu)

    @property
    def _targets(self) -> str:
        return ",".join(one.target for one in self._gateways or [self._store.server])
