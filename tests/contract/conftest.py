"""Stores for the contract tests: one that a module shares, and one for each test that wants to stop it.

Every contract test runs twice, on our own gRPC transport and, in `make campaigns`, on grpcio's: the same answers must
come of both.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import StoreClient
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.campaigns import SERVED_BY
from tests.contract.store_process import SMALL, StoreProcess


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """These tests start many processes, and on a busy machine each of them takes its time."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="package", params=SERVED_BY, autouse=True)
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """What serves the stores of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SMALL, "grpc_transport", request.param)
        yield request.param


@pytest.fixture(scope="module")
def shared_store(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store for tests that leave each other alone by using topics of their own."""
    with StoreProcess(tmp_path_factory.mktemp(f"shared-{transport}") / "store") as store:
        yield store


@pytest.fixture
def stub(shared_store: StoreProcess) -> Iterator[StoreStub]:
    """The generated stub of the shared store."""
    with shared_store.stub() as stub:
        yield stub


@pytest.fixture
def delivery(shared_store: StoreProcess) -> Iterator[DeliveryStub]:
    """The generated stub for consuming as a group, of the shared store."""
    with shared_store.delivery() as stub:
        yield stub


@pytest.fixture
def client(shared_store: StoreProcess) -> Iterator[StoreClient]:
    """A client of the shared store."""
    with shared_store.client() as client:
        yield client


@pytest.fixture
def own_store(transport: str, tmp_path: Path) -> Iterator[StoreProcess]:
    """A store that the test may stop, kill and start again."""
    with StoreProcess(tmp_path / "store") as store:
        yield store
