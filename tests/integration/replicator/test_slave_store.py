"""A follower and its store: slow, ended, killed in between, not flushed; and the end of following."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.grpc_transport import server
from tandemmq.replication.v1 import replication_pb2_grpc
from tandemmq.replication.v1.replication_pb2 import FollowerState, JoinResponse
from tandemmq.replicator.frames import encode_header
from tandemmq.replicator.settings import SlaveAck
from tandemmq.replicator.slave.staging import RING_SIZE
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity, LogProgress
from tests.faults.pair_process import free_port
from tests.integration.replicator.slave_kit import FILE_SIZE, JoinServicer, Scene, scene, until

LOG = b"\0" + random.Random(3).randbytes(2 * FILE_SIZE + 777)
LONG = LOG * 16


async def test_a_slow_store_holds_the_master_back_and_loses_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(LONG, 1)
        await until(lambda: it.follower.counters.staging_pauses > 0, "reading pauses")
        received = it.follower.status().received_offset
        assert RING_SIZE - (128 << 10) < received <= RING_SIZE
        it.store.may_take.set()
        await slave.acked(len(LONG), 60)
        assert it.store.log == LONG
        assert max(sum(one.size for one in message.stretches) for message in it.store.messages) >= 1 << 19


async def test_a_slow_store_is_no_silent_master(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ha_housekeeping_interval": 2_000, "ha_send_heartbeat_interval": 200}
    async with scene(tmp_path, LOG[:1], **settings) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(LONG, 1)
        await until(lambda: it.follower.counters.staging_pauses > 0, "reading pauses")
        reports = len(slave.reports)
        await until(
            lambda: len(slave.reports) >= reports + 12, "it tells that it lives"
        )  # longer than silence may last
        assert not slave.closed
        assert slave.reports[-1] <= 1
        it.store.may_take.set()
        await slave.acked(len(LONG), 60)
        assert it.store.log == LONG


async def test_what_comes_in_small_pieces_goes_on_in_small_pieces(tmp_path: Path) -> None:
    """Each frame alone on its way: one message, one ack, and no more of the staging file than its beginning."""
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        for end in range(101, 5001, 100):
            slave.send(encode_header(end - 100, 100) + LOG[end - 100 : end])
            await slave.acked(end)
        assert slave.reports == [1, *range(101, 5001, 100)]
        assert {stretch.position for message in it.store.messages for stretch in message.stretches} == {12}


async def test_a_store_that_ends_in_between_is_waited_for(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1_500_000], 1)
        await slave.acked(1_500_000)
        await it.store.stop()
        it.view.lost()
        await slave.ended()
        assert it.follower.counters.ends.keys() <= {"store"}
        await it.store.start()
        it.view.update(it.store.progress())
        again = await it.master.connection(2)
        assert again.reports[0] == 1_500_000 - 65_536
        again.send_log(LOG, again.reports[0])
        await again.acked(len(LOG))
        assert it.store.log == LOG


async def test_a_store_that_comes_back_with_less_is_given_the_rest_again(tmp_path: Path) -> None:
    """Half a record at its end, cut off by recovery; or a page cache that was lost."""
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1_500_000], 1)
        await slave.acked(1_500_000)
        await it.store.stop()
        await slave.ended()
        it.store.max_offset = 1_400_123
        await it.store.start()
        again = await it.master.connection(2)
        assert again.reports[0] == 1_400_123 - 65_536
        again.send_log(LOG, again.reports[0])
        await again.acked(len(LOG))
        assert it.store.log == LOG


async def test_without_a_link_nothing_is_tried(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        it.view.lost()
        slave.transport.close()
        await until(lambda: it.follower.problem == "there is no link to the store")
        assert len(it.master.connections) == 1
        it.view.update(it.store.progress())
        await it.master.connection(2)


async def test_a_store_that_is_no_slave_gets_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        it.store.role = BrokerRole.ASYNC_MASTER
        slave.transport.close()
        await until(lambda: "the store is no slave" in it.follower.problem)
        assert len(it.master.connections) == 1


async def test_after_stop_not_a_byte_reaches_the_store(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(LONG, 1)
        await until(lambda: it.follower.counters.staging_pauses > 0, "reading pauses")
        stopping = asyncio.create_task(it.follower.stop())
        await slave.ended()
        assert not stopping.done(), "what was received is the store's to take"
        it.store.may_take.set()
        await stopping
        end, messages = it.store.max_offset, len(it.store.messages)
        assert it.store.open_calls == 0
        assert it.store.log == LONG[:end]
        assert end > 8 << 20
        assert it.follower.status().state == FollowerState.FOLLOWER_STATE_UNSPECIFIED
        await asyncio.sleep(0.2)  # nothing may happen
        assert (it.store.max_offset, len(it.store.messages)) == (end, messages)


async def test_a_store_that_hangs_does_not_hold_up_the_stop_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandemmq.replicator.slave.slave_store.StoreStream.close.__defaults__", (0.2,))
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(LOG, 1)
        await until(lambda: it.follower.status().received_offset == len(LOG))
        await asyncio.wait_for(it.follower.stop(), 40)
        await until(lambda: it.store.open_calls == 0)
        it.store.may_take.set()


async def test_started_again_it_follows_another_master(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:5000], 1)
        await slave.acked(5000)
        await it.follower.stop()
        other = Scene(tmp_path / "other").master
        await other.start()
        it.follower.start(f"127.0.0.1:{other.port}")
        again = await other.connection()
        again.send_log(LOG, 1)
        await again.acked(len(LOG))
        assert it.store.log == LOG
        assert it.follower.status().master_address == f"127.0.0.1:{other.port}"
        await it.follower.stop()
        await other.stop()


async def test_flushed_acks_wait_for_the_disk(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000], ha_slave_ack=SlaveAck.FLUSHED) as it:
        it.store.auto_flush = False
        slave = await it.master.connection()
        slave.send_log(LOG[:5000], 1)
        await until(lambda: it.store.max_offset == 5000)
        assert all(message.flush for message in it.store.messages)
        await until(lambda: it.follower.state == FollowerState.FOLLOWING)
        await slave.acked(1000)
        it.store.flushed_offset = 3000
        it.view.update(it.store.progress())
        await slave.acked(3000)
        assert slave.reports == [1, 1000, 3000]
        it.view.update(LogProgress(max_offset=5000, flushed_offset=5000))
        await slave.acked(5000)


async def test_a_full_disk_under_the_staging_file_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        settings = it.follower._settings
        object.__setattr__(settings, "store_path_root_dir", tmp_path / "nowhere")
        slave.transport.close()
        await until(lambda: it.follower.counters.ends.get("staging", 0) > 0)
        assert "cannot make" in it.follower.problem
        object.__setattr__(settings, "store_path_root_dir", tmp_path)
        await until(lambda: any(connection.reports for connection in it.master.connections[1:]))


async def test_a_log_that_is_not_where_the_settings_say_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        slave = await it.master.connection()
        it.store.max_offset = 1000  # and no file
        slave.transport.close()
        await until(lambda: it.follower.counters.ends.get("local_log", 0) > 0)
        assert "is storePathRootDir the directory of the store" in it.follower.problem
        it.store.max_offset = 0


class Unstarted(Scene):
    """A scene that the test starts itself."""

    async def __aenter__(self) -> "Unstarted":
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()


# -- introductions ----------------------------------------------------------------------------------------------------


def introduction(max_offset: int = len(LOG), min_offset: int = 0, **identity: int) -> JoinServicer:
    values = {"role": BrokerRole.SYNC_MASTER, "file_size": FILE_SIZE, "epoch": 7} | identity
    identity_of_master = LogIdentity(**values)  # type: ignore[arg-type]
    answer = JoinResponse(identity=identity_of_master, min_offset=min_offset, max_offset=max_offset)
    return JoinServicer(answer)  # type: ignore[abstract]  # it has the one call that matters


async def test_a_slave_introduces_its_connection_and_tells_the_store_the_epoch(tmp_path: Path) -> None:
    join = introduction(min_offset=FILE_SIZE)
    async with scene(tmp_path, LOG[: FILE_SIZE + 1000], join=join, broker_id=4) as it:
        slave = await it.master.connection()
        assert slave.reports == [FILE_SIZE], "the master has nothing before"
        request = join.requests[-1]  # on a slow machine one may have come before, from a connection that took too long
        assert request.connection_port == slave.transport.get_extra_info("peername")[1]
        assert (request.broker_id, request.epoch, request.file_size) == (4, 1, FILE_SIZE)
        slave.send_log(LOG, FILE_SIZE)
        await slave.acked(len(LOG))
        assert {message.epoch for message in it.store.messages if message.HasField("staging")} == {7}
        assert it.follower.status().master_max_offset == len(LOG)


async def test_a_slave_that_introduces_itself_late_says_how_often_it_reports_on_that_connection(tmp_path: Path) -> None:
    """Else its master takes it to hang between two reports."""
    port, join = free_port(), introduction()
    replicator = server()
    replication_pb2_grpc.add_ReplicationServicer_to_server(join, replicator)
    late: dict[str, Any] = {"ha_master_replicator_address": f"127.0.0.1:{port}", "ha_send_heartbeat_interval": 4_000}
    async with scene(tmp_path, LOG, **late) as it:
        first = await it.master.connection()
        replicator.add_insecure_port(f"127.0.0.1:{port}")
        await replicator.start()
        try:
            await until(lambda: bool(join.requests), "it asks for news")
            assert join.requests[0].report_seconds == 4.0
            first.transport.close()
            second = await it.master.connection(2)
            there = second.transport.get_extra_info("peername")[1]
            known = [one.report_seconds for one in join.requests if one.connection_port == there]
            assert known[0] == 1.0
        finally:
            await replicator.stop(None)


async def test_half_a_record_of_the_old_master_goes_before_ends_are_compared(tmp_path: Path) -> None:
    """Two slaves had half of the last record; the other one was promoted, and cut its half off."""
    async with Unstarted(tmp_path, LOG[:1000]) as it:
        it.store.whole_records = 900
        await it.start(introduction(950))
        slave = await it.master.connection()
        assert slave.reports == [1]
        slave.send_log(LOG, 1)
        await slave.acked(len(LOG))
        assert slave.reports[:2] == [1, 900] or slave.reports[1] > 900
        assert it.store.log == LOG
        assert it.store.epoch == 7
        assert it.follower.counters.ends == {}


@pytest.mark.parametrize(
    ("join", "problem", "reason"),
    [
        (introduction(epoch=0), "the master's epoch is 0, ours 1", "epoch"),
        (introduction(file_size=1 << 30), "log files have 1073741824 bytes, ours 1048576", "file_size"),
        (introduction(999), "the master's log ends at offset 999, ours at 1000", "ahead"),
        (introduction(min_offset=FILE_SIZE), "begins at offset 1048576, ours ends at 1000", "expired"),
        (introduction(role=BrokerRole.SLAVE), "is a slave", "role"),
        (introduction(fenced_by_epoch=8), "replaced by one of epoch 8", "role"),
    ],
)
async def test_what_the_master_says_of_itself_can_be_reason_enough(
    tmp_path: Path, join: JoinServicer, problem: str, reason: str
) -> None:
    async with scene(tmp_path, LOG[:1000], join=join) as it:
        await until(lambda: it.follower.refused)
        assert problem in it.follower.problem
        assert it.follower.counters.ends.keys() == {reason}
        assert it.master.connections[0].reports == []
        assert it.store.log == LOG[:1000]
        assert all(not message.stretches for message in it.store.messages)
