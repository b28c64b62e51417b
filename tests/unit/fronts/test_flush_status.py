"""What a sender is told when the disk fails."""

from pathlib import Path
from typing import cast

import pytest

from tandemmq.store.fronts.native.answers import log_state
from tandemmq.store.fronts.native.limits import PullLimits, ServiceLimits
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.fronts.native.store_servicer import Context, StoreServicer
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import NotWritable
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import Message
from tests.unit.broker.broker_kit import broker
from tests.unit.fronts.test_answers import Peer


class DyingDisk(LocalDisk):
    """A disk whose syncs fail from some moment on."""

    dead = False

    def sync(self, fd: int) -> None:
        if self.dead:
            raise OSError(5, "Input/output error")
        super().sync(fd)


async def test_a_failed_flush_is_never_acknowledged_and_ends_sending(tmp_path: Path) -> None:
    disk = DyingDisk()
    async with broker(tmp_path, disk=disk, flush_disk_type="SYNC_FLUSH") as kit:
        servicer = StoreServicer(ServiceLimits(PullLimits(32, 1 << 20)), StoreMetrics("c", "n"))
        servicer.attach(kit.broker)
        context = cast(Context, Peer())
        request = store_pb2.SendRequest(message=Message(topic="orders", queue_id=0, body=b"x"))
        good = await servicer.Send(request, context)
        assert good.receipt.status == store_pb2.PUT_OK
        kit.store.catch_up()
        disk.dead = True
        bad = await servicer.Send(request, context)
        assert bad.receipt.status == store_pb2.FLUSH_DISK_TIMEOUT
        with pytest.raises(NotWritable, match="Input/output error") as refused:
            await servicer.Send(request, context)
        assert STATUSES[refused.value.kind] == ("UNAVAILABLE", "SERVICE_NOT_AVAILABLE"), "not DATA_LOSS"
        pulled = await servicer.Pull(store_pb2.PullRequest(topic="orders"), context)
        assert (pulled.count, pulled.max_offset) == (1, 1), "reads go on; what is not on disk is not seen"
        state = (await servicer.ListQueues(store_pb2.ListQueuesRequest(), context)).log
        assert (state.writable, state.master) == (False, True)
        assert "Input/output error" in state.not_writable_reason
        disk.dead = False


async def test_a_slave_says_that_it_is_one(tmp_path: Path) -> None:
    async with broker(tmp_path, broker_role="SLAVE") as kit:
        state = log_state(kit.broker.store)
        assert (state.writable, state.master) == (False, False)
