"""A role that cannot be written down: the caller is told what is wrong with the disk, and the role is as before."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from tandemmq.store.broker.group_transfer import GroupTransfer, ReplicationRules
from tandemmq.store.fronts.internal.replica_log_servicer import Context, NodeName, ReplicaLogServicer
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import DiskFull
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.v1 import replica_log_pb2 as pb
from tests.unit.log.replica_kit import config

CONTEXT = cast(Context, None)


class FullDisk(LocalDisk):
    """A disk without room for another file, when it is told so."""

    full = False

    def open(self, path: Path, flags: int) -> int:
        if self.full and path.name.endswith(".tmp"):
            raise OSError(28, "No space left on device", str(path))
        return super().open(path, flags)


async def test_calls_that_change_the_role_are_refused_with_what_to_do(tmp_path: Path) -> None:
    disk = FullDisk()
    store = MessageStore.open(config(tmp_path, "ASYNC_MASTER"), disk=disk)
    store.start()
    servicer = ReplicaLogServicer(NodeName("c", "b", 0))
    servicer.attach(store, GroupTransfer(ReplicationRules(), store.timers))
    before = await servicer.GetRole(pb.GetRoleRequest(), CONTEXT)
    disk.full = True
    calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        lambda: servicer.Fence(pb.FenceRequest(epoch=5, candidate="x", candidate_address="h:1"), CONTEXT),
        lambda: servicer.Demote(pb.DemoteRequest(epoch=5, ha_master_address="h:1", replicator_address="h:2"), CONTEXT),
        lambda: servicer.Remember(pb.ReplicaGroup(epoch=before.identity.epoch, generation=9), CONTEXT),
    ]
    for call in calls:
        with pytest.raises(DiskFull, match="No space left") as refused:
            await call()
        assert refused.value.remedy
    disk.full = False
    assert await servicer.GetRole(pb.GetRoleRequest(), CONTEXT) == before
    assert (await calls[0]()).identity.fenced_by_epoch == 5
    await store.close()
