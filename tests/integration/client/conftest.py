"""A store for the client's tests; those that stop it have one of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port


@pytest.fixture(scope="package")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """Shared: each test has topics of its own."""
    with StoreProcess(tmp_path_factory.mktemp("client") / "store") as process:
        yield process


@pytest.fixture
def steady_store(tmp_path: Path) -> Iterator[StoreProcess]:
    """One that has the same address each time it is started."""
    with StoreProcess(tmp_path / "store", grpc_port=free_port()) as process:
        yield process
