"""Sends that wait for replicas: what each is told, when, and that one comparison serves them all."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.common.errors import Kind
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import (
    GroupTransfer,
    InSyncReplicasNotEnough,
    PutStatus,
    ReplicationRules,
)
from tests.manual_timers import ManualTimers
from tests.unit.log.replica_kit import message, opened

OK, DISK, SLAVE, NONE = (
    PutStatus.PUT_OK,
    PutStatus.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE,
)


class Transfer(GroupTransfer):
    """With what each send was told, by its offset."""

    def __init__(self, **rules: int) -> None:
        self.timers = ManualTimers()
        super().__init__(ReplicationRules(**rules), self.timers)
        self.told: dict[int, PutStatus] = {}

    def send(self, end_offset: int) -> PutStatus | None:
        """What the send is told at once."""
        self.when_replicated(end_offset, lambda status: self.told.update({end_offset: status}))
        return self.told.get(end_offset)


def linked(offset: int = 0, **rules: int) -> Transfer:
    transfer = Transfer(**rules)
    transfer.begin()
    transfer.progress(True, offset, 1)
    return transfer


def test_without_a_replicator_or_enough_replicas_nobody_waits() -> None:
    transfer = Transfer()
    assert transfer.send(100) is NONE
    transfer.begin()
    assert transfer.send(101) is NONE
    transfer.progress(False, 0, 0)
    assert transfer.send(102) is NONE
    transfer.progress(True, 0, 1)
    assert transfer.send(103) is None


def test_progress_completes_those_behind_it_and_no_others() -> None:
    transfer = linked()
    assert [transfer.send(end) for end in (100, 200, 300)] == [None] * 3
    transfer.progress(True, 200, 1)
    assert transfer.told == {100: OK, 200: OK}
    transfer.progress(True, 250, 1)
    assert len(transfer) == 1
    transfer.progress(True, 10_000, 1)
    assert transfer.told[300] is OK
    assert transfer.send(10_000) is OK
    assert len(transfer) == 0


def test_a_replica_too_far_behind_is_not_waited_for() -> None:
    transfer = linked(1_000, fall_behind_max=500)
    assert transfer.send(1_499) is None
    assert transfer.send(1_500) is NONE, "the comparison is strict, as RocketMQ's"


async def test_each_send_has_its_own_deadline_and_stuck_ones_do_not_add_up() -> None:
    """RocketMQ #1227, #3484: N stuck sends took N times the timeout."""
    transfer = linked(slave_timeout_ms=3_000)
    for end in range(1, 100):
        assert transfer.send(end) is None
    await transfer.timers.advance(1)
    assert transfer.send(1_000) is None
    await transfer.timers.advance(1.9)
    assert transfer.told == {}
    await transfer.timers.advance(0.2)
    assert transfer.told == dict.fromkeys(range(1, 100), SLAVE)
    assert len(transfer) == 1
    await transfer.timers.advance(0.8)
    assert 1_000 not in transfer.told, "its own time, not what was left of the others'"
    await transfer.timers.advance(0.2)
    assert transfer.told[1_000] is SLAVE
    assert len(transfer) == 0
    assert transfer.send(2_000) is None
    transfer.progress(True, 2_000, 1)
    assert transfer.told[2_000] is OK
    await transfer.timers.advance(10)
    assert transfer.told[2_000] is OK


async def test_when_the_replicator_goes_new_sends_know_at_once_and_old_ones_wait_for_their_deadline() -> None:
    transfer = linked(slave_timeout_ms=3_000)
    transfer.send(100)
    transfer.end()
    assert transfer.send(200) is NONE
    await transfer.timers.advance(2.9)
    assert 100 not in transfer.told
    await transfer.timers.advance(0.2)
    assert transfer.told[100] is SLAVE


async def test_a_replicator_that_comes_back_in_time_completes_them() -> None:
    transfer = linked(slave_timeout_ms=3_000)
    transfer.send(100)
    transfer.end()
    await transfer.timers.advance(2.9)
    transfer.begin()
    transfer.progress(True, 100, 1)
    assert transfer.told[100] is OK


def test_too_few_in_sync_replicas_refuse_before_anything_is_stored() -> None:
    transfer = Transfer(min_in_sync=2)
    with pytest.raises(InSyncReplicasNotEnough, match="minInSyncReplicas is 2") as refused:
        transfer.check()
    assert refused.value.kind is Kind.FEW_REPLICAS
    transfer.progress(True, 0, 1)
    transfer.check()
    Transfer().check()


@pytest.mark.parametrize(
    ("flush", "flushed", "replicated", "told"),
    [
        ("ASYNC_FLUSH", True, True, OK),
        ("ASYNC_FLUSH", True, False, SLAVE),
        ("SYNC_FLUSH", True, True, OK),
        ("SYNC_FLUSH", False, True, DISK),
        ("SYNC_FLUSH", True, False, SLAVE),
        ("SYNC_FLUSH", False, False, SLAVE),
    ],
)
async def test_disk_and_replicas_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str, flushed: bool, replicated: bool, told: PutStatus
) -> None:
    """What replicas say wins over what the disk says (spec 2.1)."""
    timers = ManualTimers()
    store = opened(tmp_path, "SYNC_MASTER", flush_disk_type=flush, sync_flush_timeout=100, timers=timers)
    transfer = linked(slave_timeout_ms=100)
    acks = Acknowledgement(store, transfer)
    assert acks.waits
    if not flushed:
        monkeypatch.setattr(store._flush, "_kick", lambda: None)
    end = store.append(message(1)).end_offset
    status = asyncio.ensure_future(acks.status(end, True))
    await asyncio.sleep(0)
    if replicated:
        transfer.progress(True, end, 1)
    if flushed and store.config.sync_flush:
        assert await store.wait_flushed(end)
    await timers.advance(0.2)  # before anything else of the store is due
    await transfer.timers.advance(0.2)
    assert await status is told
    monkeypatch.undo()
    await store.close()


async def test_who_does_not_wait_is_answered_at_once(tmp_path: Path) -> None:
    store = opened(tmp_path, "SYNC_MASTER")
    acks = Acknowledgement(store, Transfer())
    end = store.append(message(1)).end_offset
    assert await acks.status(end, False) is OK
    assert await acks.status(end, True) is NONE
    await store.close()


async def test_the_role_may_change_while_the_store_runs(tmp_path: Path) -> None:
    from tandemmq.common.settings.broker_role import BrokerRole

    store = opened(tmp_path, "SLAVE")
    acks = Acknowledgement(store, Transfer(min_in_sync=2))
    assert (acks.waits, acks.refuses) == (False, False)
    await store.replica.promote(BrokerRole.SYNC_MASTER, 0)
    assert (acks.waits, acks.refuses) == (True, True)
    store.replica.demote(2)
    assert (acks.waits, acks.refuses) == (True, False), "what it took before is not safe for that"
    await store.close()
