"""A store for the client's tests; those that stop it have one of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tandemmq.client.channels import open_channel
from tandemmq.delivery.v1.operations_pb2 import CreateGroupRequest
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig
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


@pytest.fixture
def make_group(store: StoreProcess) -> Callable[[str, bool, int], None]:
    """Makes a group of the shared store: its name, whether it consumes in order, its retryMaxTimes."""

    def make(name: str, fifo: bool, retries: int) -> None:
        config = SubscriptionGroupConfig(name=name, consume_message_orderly=fifo, retry_max_times=retries)
        with open_channel(store.address) as channel:
            OperationsStub(channel).CreateGroup(CreateGroupRequest(config=config), timeout=60)

    return make
