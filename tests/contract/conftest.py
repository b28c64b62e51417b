"""Stores for the contract tests: one that a module shares, and one for each test that wants to stop it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.client import StoreClient
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.store_process import StoreProcess


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store for tests that leave each other alone by using topics of their own."""
    with StoreProcess(tmp_path_factory.mktemp("shared") / "store") as store:
        yield store


@pytest.fixture
def stub(shared_store: StoreProcess) -> Iterator[StoreStub]:
    """The generated stub of the shared store."""
    with shared_store.stub() as stub:
        yield stub


@pytest.fixture
def client(shared_store: StoreProcess) -> Iterator[StoreClient]:
    """A client of the shared store."""
    with shared_store.client() as client:
        yield client


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[StoreProcess]:
    """A store that the test may stop, kill and start again."""
    with StoreProcess(tmp_path / "store") as store:
        yield store
