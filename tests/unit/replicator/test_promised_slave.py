"""A slave that has promised an epoch is a slave, whoever shows it."""

import pytest

from tandemmq.admin.cluster.brokers import replicator_role
from tandemmq.admin.v1 import admin_pb2
from tandemmq.metadata.v1.metadata_pb2 import Role
from tandemmq.metasync import standing
from tandemmq.store.v1.replica_log_pb2 import SLAVE, SYNC_MASTER, BrokerRole, LogIdentity


@pytest.mark.parametrize(
    ("role", "shown", "stands"),
    [(SLAVE, admin_pb2.SLAVE, Role.SLAVE), (SYNC_MASTER, admin_pb2.FENCED, Role.FENCED)],
)
def test_only_a_master_is_fenced(
    role: BrokerRole.ValueType, shown: admin_pb2.NodeRole.ValueType, stands: Role.ValueType
) -> None:
    identity = LogIdentity(role=role, epoch=1, fenced_by_epoch=2)
    assert replicator_role(identity) == shown
    found = standing._standing(identity)
    assert found is not None
    assert found.role.name == Role.Name(stands)
