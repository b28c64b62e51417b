"""The store's port, or a gateway's before it, as an official RocketMQ 5 client sees it: a plain gRPC client."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.campaigns import in_campaigns
from tests.contract.gateway_process import GatewayProcess
from tests.contract.rocketmq5.v2_client import V2Client
from tests.contract.store_process import StoreProcess

THROUGH = ("store", "gateway")
"""What clients talk to; the same answers must come of both."""

GATEWAY_IN_CAMPAIGNS = pytest.mark.parametrize("v2", ["store", *in_campaigns("gateway")], indirect=True)
"""For tests that wait, or ask much: `make test` runs them directly only. Others show that gateways pass requests on."""


@contextmanager
def gateway_before(store: StoreProcess, log: Path, **settings: object) -> Iterator[GatewayProcess]:
    """A gateway with this store as its only broker."""
    with GatewayProcess(log, {"broker-a": [store.internal]}, **settings) as gateway:
        yield gateway


@pytest.fixture(scope="package")
def shared_store(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """One store for all modules of this folder."""
    with StoreProcess(tmp_path_factory.mktemp(f"shared-{transport}") / "store") as store:
        yield store


@pytest.fixture(scope="package")
def shared_gateway(shared_store: StoreProcess) -> Iterator[GatewayProcess]:
    """A gateway before the shared store."""
    with gateway_before(shared_store, shared_store.directory.with_name("gateway")) as gateway:
        yield gateway


@pytest.fixture(params=THROUGH)
def v2(request: pytest.FixtureRequest, shared_store: StoreProcess) -> Iterator[V2Client]:
    """A client of the shared store, directly and through a gateway."""
    port = shared_store if request.param == "store" else request.getfixturevalue("shared_gateway")
    with V2Client(port.address) as client:
        yield client
