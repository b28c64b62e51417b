"""Metadata services for the contract tests: each test runs on our own gRPC transport and on grpcio's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.metasync_process import MetasyncProcess


@pytest.fixture(scope="module")
def service(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetasyncProcess]:
    """A master that the tests of a module share; each uses names of its own."""
    directory = tmp_path_factory.mktemp(f"metadata-{transport}") / "node"
    with MetasyncProcess(directory, grpc_transport=transport) as process:
        yield process


@pytest.fixture
def stub(service: MetasyncProcess) -> Iterator[MetadataStub]:
    """Its stub."""
    with service.stub() as stub:
        yield stub


@pytest.fixture
def own(transport: str, tmp_path: Path) -> Iterator[MetasyncProcess]:
    """A master that the test may stop, kill and start again."""
    # What waits ends at once when the service stops; a grace that a busy machine exceeds would cut it off before.
    with MetasyncProcess(tmp_path / "node", grpc_transport=transport, shutdown_grace_ms=20_000) as process:
        yield process
