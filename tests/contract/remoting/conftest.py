"""A store that serves classic clients on a port of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.store_process import StoreProcess

Connect = Callable[..., ClassicClient]


def classic(directory: Path, **settings: object) -> StoreProcess:
    """A store for classic clients."""
    return StoreProcess(directory, **{"remoting_mode": "on", "listen_port": 0, "broker_name": "broker-a", **settings})


def port_of(store: StoreProcess) -> int:
    """Where it serves them."""
    event = next(event for event in store.events() if event["event"] == "listening for classic clients")
    return int(event["remoting"].rpartition(":")[2])


@pytest.fixture(scope="module")
def transport() -> str:
    """Classic clients have nothing to do with what serves gRPC: once is enough."""
    return "fast"


@pytest.fixture(scope="module")
def classic_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store that a module shares; tests use topics of their own."""
    with classic(tmp_path_factory.mktemp("classic") / "store") as store:
        yield store


@pytest.fixture
def connect(classic_store: StoreProcess) -> Iterator[Connect]:
    """Makes clients, which are closed at the end."""
    clients: list[ClassicClient] = []

    def made(client_id: str = "client", **more: object) -> ClassicClient:
        clients.append(ClassicClient(port_of(classic_store), client_id, **more))  # type: ignore[arg-type]
        return clients[-1]

    yield made
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Connect) -> ClassicClient:
    """A client of the shared store."""
    return connect()
