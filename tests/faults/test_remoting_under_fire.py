"""Strangers at the remoting ports of a store and a name server: nobody else notices. For longer: soak.py."""

import asyncio
import resource
from contextlib import closing
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tests.campaigns import in_campaigns
from tests.contract.remoting.conftest import classic
from tests.faults.harness import SEED
from tests.faults.pair_process import until
from tests.faults.remoting_mutations import RemotingMutator
from tests.faults.remoting_under_fire import BesiegedStore, besieged, connections, healthy, under_fire

INPUTS = 1_200
IDLE = 5_000
PER_CONNECTION = 24 << 10
"""Bytes that a connection may cost which has said nothing, or half a frame."""
PATIENCE = 120.0


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("at", ["store", *in_campaigns("names")])
def test_strangers_hurt_nobody_else(at: str, tmp_path: Path) -> None:
    with besieged(at, tmp_path) as target:
        under_fire(target, RemotingMutator(SEED), 0, INPUTS)


def test_the_same_number_gives_the_same_input() -> None:
    one, other = RemotingMutator(SEED), RemotingMutator(SEED)
    first = [one.make(number) for number in range(100)]
    assert [other.make(number) for number in reversed(range(100))] == first[::-1]
    assert [RemotingMutator(SEED + 1).make(number) for number in range(100)] != first


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_thousands_of_idle_connections(tmp_path: Path) -> None:
    """Some have said nothing, some half a frame, some a whole request. A client works beside them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * IDLE:
        pytest.skip(f"{hard} descriptors are too few for {IDLE} connections and their server")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with classic(tmp_path / "store") as store, closing(BesiegedStore(store)) as target:
            asyncio.run(beside_idle_connections(target))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def beside_idle_connections(target: BesiegedStore) -> None:
    asked = codec.encode(Command(RequestCode.GET_MAX_OFFSET, 1, 0, {"topic": "TBW102", "queueId": "0"}))
    with healthy(target) as done:
        before, crowd = target.process.memory_info().rss, list[asyncio.StreamWriter]()
        try:
            for number in range(IDLE):
                reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                crowd.append(writer)
                if number % 3:
                    writer.write(asked[: len(asked) if number % 3 == 1 else 60])
                if number % 3 == 1:
                    await reader.readexactly(8)
            await asyncio.to_thread(until, lambda: connections(target) > IDLE, PATIENCE, "not all were accepted")
            assert target.process.memory_info().rss - before < IDLE * PER_CONNECTION
            enough = done[0] + 20
            await asyncio.to_thread(until, lambda: done[0] >= enough, PATIENCE, lambda: f"{done[0]} of {enough} calls")
        finally:
            for writer in crowd:
                writer.transport.abort()
        await asyncio.to_thread(until, lambda: connections(target) <= 3, PATIENCE, "connections are left")
    target.end()
