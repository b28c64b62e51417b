"""Sends that wait for replicas: what each is told, when, and that one comparison serves them all."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import (
    GroupTransfer,
    InSyncReplicasNotEnough,
    PutStatus,
    ReplicationRules,
)
from tests.unit.log.replica_kit import message, opened

OK, DISK, SLAVE, NONE = (
    PutStatus.PUT_OK,
    PutStatus.FLUSH_DISK_TIMEOUT,
    PutStatus.FLUSH_SLAVE_TIMEOUT,
    PutStatus.SLAVE_NOT_AVAILABLE,
)


def linked(offset: int = 0, **rules: int) -> GroupTransfer:
    transfer = GroupTransfer(ReplicationRules(**rules))
    transfer.begin()
    transfer.progress(True, offset, 1)
    return transfer


async def outcome(answer: object) -> object:
    return await answer if isinstance(answer, asyncio.Future) else answer


async def test_without_a_replicator_or_enough_replicas_nobody_waits() -> None:
    transfer = GroupTransfer(ReplicationRules())
    assert transfer.wait(100) is NONE
    transfer.begin()
    assert transfer.wait(100) is NONE
    transfer.progress(False, 0, 0)
    assert transfer.wait(100) is NONE
    transfer.progress(True, 0, 1)
    assert isinstance(transfer.wait(100), asyncio.Future)


async def test_progress_completes_those_behind_it_and_no_others() -> None:
    transfer = linked()
    waiting = [transfer.wait(end) for end in (100, 200, 300)]
    transfer.progress(True, 200, 1)
    assert [isinstance(one, asyncio.Future) and one.done() for one in waiting] == [True, True, False]
    assert await outcome(waiting[0]) is OK
    transfer.progress(True, 250, 1)
    assert len(transfer) == 1
    transfer.progress(True, 10_000, 1)
    assert await outcome(waiting[2]) is OK
    assert transfer.wait(10_000) is OK
    assert len(transfer) == 0


async def test_a_replica_too_far_behind_is_not_waited_for() -> None:
    transfer = linked(1_000, fall_behind_max=500)
    assert isinstance(transfer.wait(1_499), asyncio.Future)
    assert transfer.wait(1_500) is NONE, "the comparison is strict, as RocketMQ's"


async def test_each_send_has_its_own_deadline_and_stuck_ones_do_not_add_up() -> None:
    """RocketMQ #1227, #3484: N stuck sends took N times the timeout."""
    transfer = linked(slave_timeout_ms=200)
    begun = asyncio.get_running_loop().time()
    first = [transfer.wait(end) for end in range(1, 100)]
    await asyncio.sleep(0.05)
    second = transfer.wait(1_000)
    assert isinstance(second, asyncio.Future)
    second_begun, ended = asyncio.get_running_loop().time(), []
    second.add_done_callback(lambda _: ended.append(asyncio.get_running_loop().time()))
    assert {await outcome(one) for one in first} == {SLAVE}
    assert await outcome(second) is SLAVE
    assert ended[0] - second_begun >= 0.19, "its own time, not what was left of the others'"
    assert ended[0] - begun < 10, "added up it were 20 s"
    assert len(transfer) == 0
    late = transfer.wait(2_000)
    transfer.progress(True, 2_000, 1)
    assert await outcome(late) is OK


async def test_when_the_replicator_goes_new_sends_know_at_once_and_old_ones_wait_for_their_deadline() -> None:
    transfer = linked(slave_timeout_ms=40)
    old = transfer.wait(100)
    transfer.end()
    assert transfer.wait(200) is NONE
    assert isinstance(old, asyncio.Future)
    assert not old.done()
    assert await outcome(old) is SLAVE


async def test_a_replicator_that_comes_back_in_time_completes_them() -> None:
    transfer = linked(slave_timeout_ms=60_000)
    old = transfer.wait(100)
    transfer.end()
    transfer.begin()
    transfer.progress(True, 100, 1)
    assert await outcome(old) is OK


def test_too_few_in_sync_replicas_refuse_before_anything_is_stored() -> None:
    transfer = GroupTransfer(ReplicationRules(min_in_sync=2))
    with pytest.raises(InSyncReplicasNotEnough, match="minInSyncReplicas is 2") as refused:
        transfer.check()
    assert refused.value.rocketmq_status == "IN_SYNC_REPLICAS_NOT_ENOUGH"
    transfer.progress(True, 0, 1)
    transfer.check()
    GroupTransfer(ReplicationRules()).check()


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
    """What replicas say wins over what the disk says (spec 2.1). Who is to answer has as long as it takes."""
    patience, soon = 60_000, 30
    store = opened(tmp_path, "SYNC_MASTER", flush_disk_type=flush, sync_flush_timeout=patience if flushed else soon)
    transfer = linked(slave_timeout_ms=patience if replicated else soon)
    acks = Acknowledgement(store, transfer)
    assert acks.waits
    if not flushed:
        monkeypatch.setattr(store._flush, "_kick", lambda: None)
    end = store.append(message(1)).end_offset
    status = asyncio.ensure_future(acks.status(end, True))
    await asyncio.sleep(0)
    if replicated:
        transfer.progress(True, end, 1)
    assert await status is told
    monkeypatch.undo()
    await store.close()


async def test_who_does_not_wait_is_answered_at_once(tmp_path: Path) -> None:
    store = opened(tmp_path, "SYNC_MASTER")
    acks = Acknowledgement(store, GroupTransfer(ReplicationRules()))
    end = store.append(message(1)).end_offset
    assert await acks.status(end, False) is OK
    assert await acks.status(end, True) is NONE
    await store.close()


async def test_the_role_may_change_while_the_store_runs(tmp_path: Path) -> None:
    from tandemmq.store.log.replica.mastership import Role

    store = opened(tmp_path, "SLAVE")
    acks = Acknowledgement(store, GroupTransfer(ReplicationRules(min_in_sync=2)))
    assert (acks.waits, acks.refuses) == (False, False)
    await store.replica.promote(Role.SYNC_MASTER, 0)
    assert (acks.waits, acks.refuses) == (True, True)
    store.replica.demote(2)
    assert (acks.waits, acks.refuses) == (False, False)
    await store.close()
