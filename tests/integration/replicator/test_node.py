"""A node's replicator with real stores: the link, roles that change while it runs, health, Join and Status."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from tandemmq.replication.v1.replication_pb2 import FollowerState, JoinRequest
from tandemmq.replicator.service import caller_address
from tests.faults.pair_process import free_port
from tests.integration.replicator.master_kit import until
from tests.integration.replicator.node_kit import OneNode, Replicator, ha_port, one_node, pair

pytestmark = pytest.mark.timeout(300)

SERVICE = "tandemmq.replication.v1.Replication"


async def health(node: OneNode, service: str = SERVICE) -> int:
    async with grpc.aio.insecure_channel(node.it.address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        answer: HealthCheckResponse = await check(HealthCheckRequest(service=service))
        return int(answer.status)


@pytest.mark.slow
async def test_a_master_alone(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a") as node:
        await node.serving()
        assert await node.send() == ["SLAVE_NOT_AVAILABLE"]
        await until(lambda: node.node.view.max_offset > 0)
        status = await node.it.status()
        assert status.identity.broker_name == "b"
        assert (status.max_offset, status.in_sync, len(status.replicas)) == (node.node.view.max_offset, 0, 0)
        assert await health(node) == await health(node, "") == HealthCheckResponse.SERVING


async def test_a_pair_in_step(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        await both.master.answers("PUT_OK")
        assert set(await both.master.send(50, 5_000)) == {"PUT_OK"}
        await both.equal()
        status = await both.master.it.status()
        assert [one.identity for one in status.replicas if one.connected] == ["1"]
        assert status.replicated_offset == status.max_offset
        own = await both.slave.it.status()
        assert own.follower.state == FollowerState.FOLLOWING
        assert own.follower.master_address == both.master.it.ha_address
        await both.slave.serving()
        assert await health(both.slave) == HealthCheckResponse.SERVING


@pytest.mark.slow
async def test_a_store_that_is_killed_is_linked_again(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        store, address = both.master.store, both.master.internal_address()
        await both.master.send(20)
        store.stop(signal.SIGKILL)
        await until(lambda: not both.master.node.view.linked)
        await until(lambda: not both.master.node._serving)
        assert await health(both.master) == HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await both.master.it.status()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        store.settings["internal_port"] = address.rpartition(":")[2]
        await both.master.start_store()
        await both.master.serving()
        await both.master.answers("PUT_OK")
        assert set(await both.master.send(20)) == {"PUT_OK"}
        await both.equal()
        assert both.master.node._metrics.links == 2


@pytest.mark.slow
async def test_a_replicator_that_is_gone_and_back(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        await both.master.send(5)
        port = ha_port(both.master.node)
        await both.master.stop()
        await both.master.answers("SLAVE_NOT_AVAILABLE")
        await both.master.start(ha_listen_port=port)
        await both.master.serving()
        await until(lambda: both.slave.node.follower.state == FollowerState.FOLLOWING)
        await both.equal()
        await both.master.answers("PUT_OK")
        assert set(await both.master.send(5)) == {"PUT_OK"}


@pytest.mark.slow
async def test_a_slave_that_introduces_itself_late_counts_and_takes_over(tmp_path: Path) -> None:
    """It is known by its address at first, since nobody answers where it takes the master's replicator to be."""
    async with one_node(tmp_path / "a") as master, one_node(tmp_path / "b", "SLAVE") as slave:
        await slave.stop()
        nobody = f"127.0.0.1:{free_port()}"
        await slave.start(ha_master_address=master.it.ha_address, ha_master_replicator_address=nobody)
        await master.answers("PUT_OK")
        side = master.node.master
        assert side is not None
        assert side.roster.counted == {"127.0.0.1"}
        await slave.stop()
        await slave.start(ha_master_replicator_address=master.it.address)
        await master.answers("PUT_OK")
        await until(lambda: side.roster.counted == {"1"}, "its nameless connection is gone, and so is that member")
        assert set(await master.send(20)) == {"PUT_OK"}
        async with asyncio.timeout(40):
            while [one.identity for one in (await slave.node.role_state()).group.members] != ["1"]:
                await asyncio.sleep(0.02)
        await master.stop()
        master.store.stop(signal.SIGKILL)
        await slave.it.promote(old_master_is_gone=True)


@pytest.mark.slow
async def test_a_second_replicator_of_one_store_gets_no_link(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a") as node:
        await node.serving()
        second = Replicator(node.internal_address(), node.store.directory, {})
        await second.start()
        try:
            await until(lambda: second.node._link.peer.problem.startswith("ALREADY_EXISTS"))
            assert second.node.master is None
        finally:
            await second.host.stop()
        assert node.node.view.linked


@pytest.mark.slow
async def test_a_ha_port_that_is_taken_is_said_and_tried_again(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a") as first:
        await first.serving()
        async with one_node(tmp_path / "b", ha_listen_port=ha_port(first.node)) as second:
            await until(lambda: "cannot accept slaves" in second.node.problem)
            assert await health(second) == HealthCheckResponse.NOT_SERVING
            assert await join(second) is grpc.StatusCode.UNAVAILABLE, "a master all the same: its slaves try again"
            await first.stop()
            await second.serving()
            assert second.node.problem == ""


# -- Join and Status ---------------------------------------------------------------------------------------------------


async def join(node: OneNode, **fields: Any) -> grpc.StatusCode:
    request = JoinRequest(**{"connection_port": 5_000, "broker_id": 3, "broker_name": "b", **fields})
    async with node.it.stub() as stub:
        try:
            await stub.Join(request)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK


@pytest.mark.slow
async def test_who_may_join(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a") as node:
        assert await join(node) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.OK)
        await node.serving()
        assert await join(node) is grpc.StatusCode.OK
        assert await join(node, broker_name="another") is grpc.StatusCode.FAILED_PRECONDITION
        assert await join(node, cluster_name="another") is grpc.StatusCode.FAILED_PRECONDITION
        assert await join(node, connection_port=0) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.slow
async def test_a_slave_that_knows_a_newer_master_fences_this_one(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a", "ASYNC_MASTER") as node:
        await node.serving()
        assert await node.send() == ["PUT_OK"]
        assert await join(node, epoch=9) is grpc.StatusCode.OK
        await until(lambda: node.node.view.identity.fenced_by_epoch == 9)
        with pytest.raises(Exception, match="newer master"):
            await node.send()


@pytest.mark.slow
async def test_only_peers_may_call_but_operators_always(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a", ha_allowed_peers="192.0.2.0/24") as node:
        await node.serving()
        assert (await node.it.status()).identity == node.node.view.identity


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[::ffff:10.1.2.3]:5000", "10.1.2.3"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5000", "fe80::1"),
        ("unix:", ""),
    ],
)
def test_addresses_of_callers(peer: str, address: str) -> None:
    assert caller_address(peer) == address


# -- roles -------------------------------------------------------------------------------------------------------------


async def test_promotion_of_a_pair_in_step_and_the_way_back(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        old, new = both.master, both.slave
        await old.send(30, 2_000)
        promoted = await new.it.promote()
        assert promoted.state.identity.epoch == 2
        assert any("fenced" in step for step in promoted.steps)
        await new.serving()
        await until(lambda: ha_port(new.node) > 0)
        with pytest.raises(Exception, match="newer master"):
            await old.send()
        await old.it.follow(new.it.ha_address, new.it.address)
        await until(lambda: old.node.follower.state == FollowerState.FOLLOWING)
        assert old.node.master is None
        assert set(await new.send(20)) <= {"PUT_OK", "SLAVE_NOT_AVAILABLE"}
        await until(lambda: old.node.view.max_offset == new.node.view.max_offset)
        await new.answers("PUT_OK")
        assert set(await new.send(5)) == {"PUT_OK"}


@pytest.mark.slow
async def test_promotion_waits_for_what_the_old_master_still_has(tmp_path: Path) -> None:
    async with pair(tmp_path, ha_flow_control_enable=True, max_ha_transfer_byte_in_second=400_000) as both:
        await asyncio.gather(*(both.master.send(20, 20_000) for _ in range(2)))
        end = both.master.node.view.max_offset
        promoted = await both.slave.it.promote()
        assert promoted.state.max_offset >= end


@pytest.mark.slow
async def test_promotion_without_the_old_master_needs_a_word(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        old, new = both.master, both.slave
        await old.send(30)
        await both.equal()
        ports = {"internal_port": old.internal_address().rpartition(":")[2]}
        await old.stop()
        old.store.stop(signal.SIGKILL)
        with pytest.raises(grpc.aio.AioRpcError, match="does not answer") as refused:
            await new.it.promote()
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "old_master_is_gone" in (refused.value.details() or "")
        await until(lambda: new.node.follower.running)
        promoted = await new.it.promote(old_master_is_gone=True)
        assert promoted.state.identity.epoch == 2
        await new.serving()
        # The old node comes back and does not know: it is told within seconds.
        old.store.settings |= ports
        await old.start_store()
        await old.start()
        await until(lambda: old.node.view.identity.fenced_by_epoch == 2)
        with pytest.raises(Exception, match="newer master"):
            await old.send()
        assert new.node._metrics.fences == 1


@pytest.mark.slow
async def test_promotion_is_refused_when_bytes_are_missing_here(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        old, new = both.master, both.slave
        await old.send(10)
        await both.equal()
        await new.node.hold()
        await old.send(5)
        other = old.it.address
        await new.stop()
        await new.start(ha_master_replicator_address="127.0.0.1:1", ha_master_address="127.0.0.1:1")
        await until(lambda: new.node.view.linked)
        with pytest.raises(grpc.aio.AioRpcError, match="cannot take"):
            await new.it.promote(old_master_is_gone=True, other_slaves=[other])
        with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
            await new.it.promote(old_master_is_gone=True, other_slaves=["127.0.0.1:1"])
        promoted = await new.it.promote(old_master_is_gone=True, other_slaves=[other], accept_loss=True)
        assert any("lost" in step for step in promoted.steps)


@pytest.mark.slow
async def test_a_master_is_not_promoted_again(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a") as node:
        await node.serving()
        with pytest.raises(grpc.aio.AioRpcError, match="not a slave"):
            await node.it.promote()


@pytest.mark.slow
async def test_a_node_that_follows_a_slave_or_nobody_is_refused(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        with pytest.raises(grpc.aio.AioRpcError, match="host:port"):
            await both.master.it.follow("nowhere")
        with pytest.raises(grpc.aio.AioRpcError, match="haMasterAddress|host:port"):
            await both.master.it.follow("")
        with pytest.raises(grpc.aio.AioRpcError, match="is a slave"):
            await both.master.it.follow("127.0.0.1:1", both.slave.it.address)
        with pytest.raises(grpc.aio.AioRpcError, match="does not answer"):
            await both.master.it.follow("127.0.0.1:1", "127.0.0.1:1")
        with pytest.raises(grpc.aio.AioRpcError, match="both masters of epoch 1"):
            await both.master.it.follow(both.master.it.ha_address, both.master.it.address)
        assert both.master.node.view.is_master
        await both.master.answers("PUT_OK")
        assert set(await both.master.send(3)) == {"PUT_OK"}


@pytest.mark.slow
async def test_a_slave_that_does_not_follow_a_living_master_is_not_promoted(tmp_path: Path) -> None:
    async with pair(tmp_path) as both:
        await both.master.send(5)
        await both.equal()
        await both.slave.it.follow("127.0.0.1:1", both.master.it.address)
        with pytest.raises(grpc.aio.AioRpcError, match="cannot take"):
            await both.slave.it.promote()
        assert both.master.node.view.identity.fenced_by_epoch == 0
        await both.master.answers("SLAVE_NOT_AVAILABLE")


@pytest.mark.slow
async def test_a_fenced_master_can_be_taken_back(tmp_path: Path) -> None:
    async with one_node(tmp_path / "a", "ASYNC_MASTER") as node:
        await node.serving()
        await node.node.fence(5)
        with pytest.raises(grpc.aio.AioRpcError, match="replaced by one of epoch 5"):
            await node.it.promote()
        with pytest.raises(grpc.aio.AioRpcError, match="promised to a node that nobody can name"):
            await node.it.promote(old_master_is_gone=True)
        promoted = await node.it.promote(old_master_is_gone=True, accept_loss=True)
        assert promoted.state.identity.epoch > 5
        await until(lambda: node.node.view.identity.fenced_by_epoch == 0)
        assert len(await node.send(3)) == 3


@pytest.mark.slow
async def test_a_master_that_was_taken_back_has_its_slave_again(tmp_path: Path) -> None:
    """A new epoch on a node that was a master all the time: the group of the old one is not told any more."""
    async with pair(tmp_path) as both:
        await both.master.answers("PUT_OK")
        identity = (await both.slave.node.role_state()).identity
        await both.master.node.fence(2, identity.store_id, both.slave.it.address)
        promoted = await both.master.it.promote(old_master_is_gone=True)
        assert promoted.state.identity.epoch == 3
        await both.master.answers("PUT_OK")
        group = (await both.slave.node.role_state()).group
        assert group.epoch == 3
        assert set(await both.master.send(3)) == {"PUT_OK"}
        await both.equal()
