"""A whole node with an accessFile, on each transport; its services know each other by a secret of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from tandemmq.replication.v1 import replication_pb2
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tests.access_users import access_text, credentials
from tests.admin_process import AdminProcess, lone_node, running
from tests.campaigns import SERVED_BY
from tests.faults.pair import Node
from tests.faults.pair_process import until


class Guarded(NamedTuple):
    """A node that asks who calls, and its access file."""

    node: Node
    access: Path
    admin: AdminProcess

    def address(self, port: str) -> str:
        """host:port of `store`, `internal`, `replicator`, `metasync` or `admin`."""
        return self.admin.address if port == "admin" else self.node.address(port)


@pytest.fixture(scope="package", params=SERVED_BY, autouse=True)
def transport(request: pytest.FixtureRequest) -> str:
    """What serves the ports for callers; takes the place of the fixture for stores alone."""
    return str(request.param)


@pytest.fixture(scope="package")
def guarded(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """The node; it serves when its services have recognized each other."""
    directory = tmp_path_factory.mktemp(f"guarded-{transport}")
    access, secret = directory / "access.toml", directory / "services.secret"
    access.write_text(access_text())
    secret.write_text("the secret\n")
    own = {"accessFile": access, "serviceUser": "services", "serviceSecretFile": secret, "grpcTransport": transport}
    node = lone_node(directory / "node", store=own, replicator=own, metasync=own)
    admin = AdminProcess(
        directory / "admin",
        {"one": node},
        access_file=access,
        service_user="services",
        service_secret_file=secret,
        grpc_transport=transport,
    )
    with running(node), admin:
        with grpc.insecure_channel(node.address("replicator")) as channel:
            stub = ReplicationStub(channel)
            until(lambda: linked(stub), 60, "the replicator is linked to its store")
        yield Guarded(node, access, admin)


def linked(stub: ReplicationStub) -> bool:
    """Whether the replicator knows what its store is."""
    try:
        stub.Status(replication_pb2.StatusRequest(), metadata=credentials("viewer"), timeout=60)
    except grpc.RpcError:
        return False
    return True
