"""On a synchronous master nothing is shown that its replicas may not have, whichever way one looks."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.broker.pulled import PullStatus, Wanted
from tandemmq.store.broker.reading import readable_log_end
from tandemmq.store.format.checkpoint import Checkpoint
from tandemmq.store.format.message_id import encode_offset_id
from tests.unit.broker.broker_kit import HOST, Kit, bodies, broker

SYNC = {"broker_role": "SYNC_MASTER"}
FOUND, ONE, BADLY = PullStatus.FOUND, PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.OFFSET_OVERFLOW_BADLY


@asynccontextmanager
async def master(root: Path, **settings: Any) -> AsyncIterator[Kit]:
    async with broker(root, **{**SYNC, **settings}) as kit:
        yield kit


def confirm(kit: Kit, offset: int | None = None) -> None:
    """The replicas have everything below a log offset, or all."""
    kit.store.replica.confirm(kit.store.commit_log.max_offset if offset is None else offset)


async def test_a_message_is_seen_when_enough_have_it(tmp_path: Path) -> None:
    async with master(tmp_path) as kit:
        places = [kit.send("orders", b"%d" % number, 0, KEYS="all") for number in range(3)]
        await kit.dispatched()
        ids = [encode_offset_id(HOST, place) for place in places]
        for seen in range(4):
            if seen:  # all but the last byte of the next one is no message
                end = places[seen] if seen < 3 else kit.store.commit_log.max_offset
                confirm(kit, end - 1)
                assert kit.pull("orders", 0, seen - 1).status is not FOUND
                confirm(kit, end)
            pulled = kit.pull("orders", 0, 0)
            assert bodies(pulled) == [b"%d" % number for number in range(seen)]
            assert (pulled.next_offset, pulled.max_offset) == (seen, seen)
            assert len(kit.finder.by_key("orders", "all", 0, 0, 10, unique=False)) == seen
            for number, one in enumerate(ids):
                if number < seen:
                    assert kit.finder.view(one)
                else:
                    with pytest.raises(MessageNotFound):
                        kit.finder.view(one)
            assert readable_log_end(kit.store) == [*places, kit.store.commit_log.max_offset][seen]
            state = kit.catalog.offsets_of("orders", 0, 0)
            assert (state.min_offset, state.max_offset, state.next_offset) == (0, seen, 3)
            late = kit.catalog.offsets_of("orders", 0, 1 << 60)
            assert late.at_time == seen


async def test_who_is_beyond_what_is_shown_waits_there(tmp_path: Path) -> None:
    """It may have read that before the master was started again: sent back, it would get it twice."""
    async with master(tmp_path) as kit:
        for number in range(5):
            kit.send("orders", b"%d" % number)
            if number == 1:
                confirm(kit)
        await kit.dispatched()
        for offset, status, following in ((2, ONE, 2), (4, ONE, 4), (5, ONE, 5), (6, BADLY, 2)):
            pulled = kit.pull("orders", 0, offset)
            assert (pulled.status, pulled.next_offset) == (status, following)


async def test_all_who_wait_are_woken_when_the_limit_grows(tmp_path: Path) -> None:
    async with master(tmp_path) as kit:
        wanted = [Wanted(topic, queue, 0, 32, 1 << 20) for topic in ("a", "b") for queue in range(3)]
        for one in wanted:
            kit.send(one.topic, b"old", one.queue_id)
        confirm(kit)
        await kit.dispatched()
        waiting = [
            asyncio.create_task(kit.polls.pull(kit.puller, Wanted(one.topic, one.queue_id, 1, 32, 1 << 20), 60))
            for one in wanted
        ]
        await asyncio.sleep(0)
        places = [kit.send(one.topic, b"new", one.queue_id) for one in wanted]
        await kit.dispatched()
        for number, place in enumerate(places):
            confirm(kit, place)
            for _ in range(5):
                await asyncio.sleep(0)
            assert sum(task.done() for task in waiting) == number
        confirm(kit)
        assert [bodies(answer) for answer in await asyncio.gather(*waiting)] == [[b"new"]] * 6


async def test_many_in_flight_and_queues_that_lie_between_each_other(tmp_path: Path) -> None:
    """The end is found among any number of units, whatever lies between them in the log."""
    async with master(tmp_path) as kit:
        places = [(number % 3, kit.send("orders", b"x" * (number % 50), number % 3)) for number in range(700)]
        await kit.dispatched()
        for at in [0, 1, 2, 3, 100, 101, 350, 500, 636, 637, 690, 698, 699]:
            confirm(kit, places[at][1])
            for queue_id in range(3):
                expected = sum(queue == queue_id for queue, _ in places[:at])
                assert kit.pull("orders", queue_id, 0).max_offset == expected
                found = bodies(kit.pull("orders", queue_id, 0))
                assert len(found) == expected


async def test_the_limit_never_falls_and_never_leads(tmp_path: Path) -> None:
    async with master(tmp_path) as kit:
        kit.send("orders")
        kit.store.replica.confirm(1 << 40)  # what a replicator still knew of a longer log
        kit.send("orders")
        await kit.dispatched()
        kit.store.replica.confirm(0)
        assert kit.pull("orders").max_offset == 1


@pytest.mark.parametrize("settings", [{"broker_role": "ASYNC_MASTER"}, {"read_un_committed": True}])
async def test_who_does_not_wait_for_replicas_shows_everything(tmp_path: Path, settings: dict[str, Any]) -> None:
    async with master(tmp_path, **settings) as kit:
        kit.send("orders")
        await kit.dispatched()
        assert kit.pull("orders").count == 1


async def test_a_restart_goes_on_with_what_was_confirmed(tmp_path: Path) -> None:
    async with master(tmp_path) as kit:
        kit.send("orders", b"old")
        confirm(kit)
        kit.send("orders", b"new")
    for _ in range(2):
        async with master(tmp_path) as kit:
            assert bodies(kit.pull("orders")) == [b"old"]
            kit.send("orders")
            await kit.dispatched()
    async with master(tmp_path) as kit:
        confirm(kit)
        assert kit.pull("orders").count == 4


async def test_what_older_versions_and_asynchronous_masters_left_was_seen_and_stays_so(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders", b"old")
    assert Checkpoint.decode((tmp_path / "checkpoint").read_bytes()).confirm == 0
    async with master(tmp_path) as kit:
        kit.send("orders", b"new")
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"old"]
        confirmed = kit.store.confirm_offset
        # Before any checkpoint: a process that is killed now must not show it at its next start.
        assert Checkpoint.decode((tmp_path / "checkpoint").read_bytes()).confirm == confirmed


async def test_a_master_killed_before_its_first_checkpoint_that_starts_as_a_slave(tmp_path: Path) -> None:
    """Its log may have to give way to that of its new master: what nobody else had is not shown."""
    async with master(tmp_path / "store") as kit:
        kit.send("orders", b"lost")
        await kit.dispatched()
        shutil.copytree(tmp_path / "store", tmp_path / "killed")
    async with broker(tmp_path / "killed", broker_role="SLAVE") as kit:
        assert kit.pull("orders").max_offset == 0


async def test_a_checkpoint_that_is_gone_vouches_for_nothing(tmp_path: Path) -> None:
    async with master(tmp_path) as kit:
        kit.send("orders")
        confirm(kit)
    (tmp_path / "checkpoint").unlink()
    async with master(tmp_path) as kit:
        assert kit.pull("orders").count == 0
        confirm(kit)
        assert kit.pull("orders").count == 1


async def test_a_master_that_became_a_slave_shows_the_rest_when_its_master_goes_on_there(tmp_path: Path) -> None:
    """Until then it may have to give up what nobody else had; another node may have given its numbers away."""
    async with master(tmp_path / "a") as kit:
        kit.send("orders", b"old")
        confirm(kit)
        kit.send("orders", b"new")
        await kit.dispatched()
        log = kit.store.commit_log
        end = log.max_offset
        kit.store.replica.demote(2)
        assert bodies(kit.pull("orders")) == [b"old"]
    async with broker(tmp_path / "a", broker_role="SLAVE") as kit:
        assert bodies(kit.pull("orders")) == [b"old"]
        kit.store.replica.follow(2)
        head = (200).to_bytes(4, "big") + bytes.fromhex("DAA320A7") + bytes(12)  # what a record begins with
        kit.store.append_replica(end, memoryview(head))
        assert bodies(kit.pull("orders")) == [b"old", b"new"]


async def test_a_promotion_confirms_all_there_is_and_nothing_that_comes(tmp_path: Path) -> None:
    async with master(tmp_path / "old") as kit:
        kit.send("orders", b"old")
        log = kit.store.commit_log
        data = log.files.files[0].map[: log.max_offset]
    async with broker(tmp_path / "new", broker_role="SLAVE") as kit:
        kit.store.append_replica(0, memoryview(data))
        kit.store.catch_up()
        assert kit.pull("orders").count == 1, "a slave shows what it has"
        await kit.store.replica.promote(BrokerRole.SYNC_MASTER, 0)
        kit.send("orders", b"new")
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"old"]
    async with broker(tmp_path / "new", broker_role="SLAVE") as kit:  # the role is the directory's
        assert bodies(kit.pull("orders")) == [b"old"]
