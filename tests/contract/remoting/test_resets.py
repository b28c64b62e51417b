"""Positions that an operator sets: consumers hear of them at their next pull, and what they commit before is nothing.

The store runs in the test's process: resets come from delivery itself.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tandemmq.common.guard import CallGuard
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.store.assembly import make_broker, make_delivery, open_tables
from tandemmq.store.classic_clients import ClassicClients
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import load_settings
from tests.contract.remoting.classic_client import Answer, ClassicClient
from tests.contract.store_process import SMALL


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[tuple[Delivery, ClassicClient]]:
    """A store, and a client of it."""
    small = {**SMALL, "remoting_mode": "on", "listen_port": 0, "store_path_root_dir": root, "compiled_walker": "never"}
    settings = load_settings(profile="embedded", environment={}, overrides=small)
    metrics = StoreMetrics("cluster", "node")
    classic = ClassicClients(settings, CallGuard(), {}, metrics)
    settings = classic.known_to(settings)
    store = MessageStore.open(settings.store_config(), observer=metrics)
    topics, groups, _, edits = open_tables(settings)
    delivery = make_delivery(settings, make_broker(settings, store, topics, metrics), groups)
    store.start()
    delivery.start()
    await delivery.ready()
    await classic.serve(settings, delivery.broker, delivery, edits)
    client = ClassicClient(classic.port)
    try:
        yield delivery, client
    finally:
        await asyncio.to_thread(client.close)
        await classic.stop()
        await delivery.stop()
        await store.close()


async def test_a_consumer_hears_of_a_reset_and_its_old_commits_do_not_count(tmp_path: Path) -> None:
    async with serving(tmp_path / "store") as (delivery, client):

        def prepare() -> None:
            for number in range(6):
                client.send("reset", b"%d" % number)
            client.heartbeat(consumes={"resetting": {"reset": "*"}})
            client.commit("resetting", "reset", 5)

        await asyncio.to_thread(prepare)
        held = client.begin_pull("resetting", "reset", 6, expression=None, suspend=60_000)
        await until(lambda: len(delivery.broker.polls) > 0)
        await delivery.reset("resetting", "reset", {0: 2})
        moved = await asyncio.to_thread(held.result, 60)
        assert (moved.code, moved.fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "2")

        await delivery.reset("resetting", "reset", {0: 1})

        def told() -> tuple[list[Answer], Answer, Answer, Answer]:
            ignored = [client.commit("resetting", "reset", 6)]
            first = client.pull("resetting", "reset", 6, expression=None)
            ignored.append(client.commit("resetting", "reset", 6))  # as 4.9 does for 10 s
            position = client.position("resetting", "reset")
            assert client.pull("resetting", "reset", 1, expression=None, commit=5).code == ResponseCode.SUCCESS
            client.commit("resetting", "reset", 3)
            return ignored, first, position, client.position("resetting", "reset")

        ignored, first, position, later = await asyncio.to_thread(told)
        assert {(one.code, one.remark) for one in ignored} == {
            (ResponseCode.SUCCESS, "Offset has been previously reset")
        }
        assert (first.code, first.fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "1")
        assert (position.fields["offset"], later.fields["offset"]) == ("1", "3")


async def test_a_client_that_goes_takes_its_held_pulls_along(tmp_path: Path) -> None:
    async with serving(tmp_path / "store") as (delivery, client):
        await asyncio.to_thread(client.send, "left", b"x")
        client.begin_pull("g", "left", 1, suspend=60_000)
        await until(lambda: len(delivery.broker.polls) > 0)
        await asyncio.to_thread(client.close)
        await until(lambda: len(delivery.broker.polls) == 0)
        assert delivery.sessions.groups() == []


async def until(done: Callable[[], Any]) -> None:
    """Waits for what must come."""
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0.01)
