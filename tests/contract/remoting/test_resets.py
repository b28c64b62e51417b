"""Positions that an operator sets: consumers hear of them, and what they commit before they read from there is nothing.

The store runs in the test's process: resets come from delivery itself.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY
from tandemmq.store.assembly import make_broker, make_delivery, open_tables
from tandemmq.store.classic_clients import ClassicClients
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.journal.facts import Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.fronts.remoting.resets import UNDER_WAY_SECONDS, ClassicResets
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import load_settings
from tests.contract.remoting.classic_client import Answer, ClassicClient
from tests.contract.store_process import SMALL


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[tuple[Delivery, ClassicClient]]:
    """A store, and a client of it."""
    small = {**SMALL, "remoting_mode": "on", "listen_port": 0, "store_path_root_dir": root, "compiled_walker": "never"}
    small["broker_name"] = "broker-a"
    settings = load_settings(profile="embedded", environment={}, overrides=small)
    metrics = StoreMetrics("cluster", "node")
    classic = ClassicClients(settings, CallGuard(), {}, metrics)
    settings = classic.known_to(settings)
    store = MessageStore.open(settings.store_config(), observer=metrics)
    topics, groups, _, edits = open_tables(settings)
    classic.read_modes(settings)
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


async def test_a_client_that_pulls_hears_of_a_reset_at_its_pull(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path / "store") as (delivery, client):

        def prepare() -> None:
            for number in range(6):
                client.send("reset", b"%d" % number)
            client.heartbeat(consumes={"resetting": {"reset": "*"}}, consumeType="CONSUME_ACTIVELY")
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


@pytest.mark.parametrize("language", ["JAVA", "CPP", "GO"])
async def test_push_consumers_are_told_of_a_reset(tmp_path: Path, language: str) -> None:
    async with serving(tmp_path / "store") as (delivery, client):

        def prepare() -> None:
            client.language = language
            for number in range(6):
                client.send("reset", b"%d" % number)
                client.send("reset", b"%d" % number, queue_id=1)
            client.heartbeat(consumes={"resetting": {"reset": "*"}})
            client.commit("resetting", "reset", 5)
            client.commit("resetting", "reset", 6, queue_id=1)

        def told() -> None:
            asked = client.next_asked(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
            assert asked.command.flag & ONE_WAY
            assert {**asked.fields, "timestamp": ""} == {
                "topic": "reset", "group": "resetting", "timestamp": "", "isForce": "false"
            }  # fmt: skip
            queue = b'{"brokerName":"broker-a","queueId":0,"topic":"reset"'
            in_list = b'{"offsetTable":[' + queue + b',"offset":2}]}'
            assert asked.body == (in_list if language == "CPP" else b'{"offsetTable":{' + queue + b"}:2}}")
            # What comes from elsewhere was under way before.
            assert client.pull("resetting", "reset", 5).code == ResponseCode.SUCCESS
            assert client.commit("resetting", "reset", 6).remark == "Offset has been previously reset"
            assert client.position("resetting", "reset").fields["offset"] == "2"
            client.commit("resetting", "reset", 2)  # as Java's client does before it goes on
            assert client.pull("resetting", "reset", 2, commit=2).code == ResponseCode.SUCCESS
            client.commit("resetting", "reset", 4)
            assert client.position("resetting", "reset").fields["offset"] == "4"
            # The other queue was not set.
            assert client.pull("resetting", "reset", 5, queue_id=1).code == ResponseCode.SUCCESS

        await asyncio.to_thread(prepare)
        held = client.begin_pull("resetting", "reset", 6, suspend=60_000)
        await until(lambda: len(delivery.broker.polls) > 0)
        await delivery.reset("resetting", "reset", {0: 2})
        await asyncio.to_thread(told)
        assert not held.done()  # the client drops what it brings


def test_a_client_that_has_not_understood_hears_of_a_reset_at_its_pull() -> None:
    now, place, ledger = 100.0, Place("g", "t", 0), Ledger()
    ledger.apply(Moved(place, 7, 0))
    resets = ClassicResets(ledger, lambda: now)
    assert resets.note("g", "t", [0]) == {0: 7}
    assert resets.untold(place, 9, told=True) is None
    now += UNDER_WAY_SECONDS
    assert [resets.untold(place, 9, told=True) for _ in range(2)] == [7, None]
    assert resets.untold(place, 7, told=True) is None
    assert resets.pending(place) is None


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
