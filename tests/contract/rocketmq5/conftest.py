"""The store's port as an official RocketMQ 5 client sees it, by a plain gRPC client on our own contract."""

from collections.abc import Iterator

import pytest

from tests.contract.rocketmq5.v2_client import V2Client
from tests.contract.store_process import StoreProcess


@pytest.fixture
def v2(shared_store: StoreProcess) -> Iterator[V2Client]:
    """A client of the shared store."""
    with V2Client(shared_store.address) as client:
        yield client
