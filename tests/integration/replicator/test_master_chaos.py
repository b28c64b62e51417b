"""Slaves of every temper, a log that grows and loses its beginning, a store that goes and comes: right bytes only."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.campaigns import in_campaigns
from tests.integration.replicator.master_kit import LogDirectory, Running, Slave, noise, running, slave, until

FILE_SIZE = 1 << 20
SECONDS = 1.5


class Truth:
    """Every byte that was ever in the log."""

    def __init__(self) -> None:
        self.log = noise(3 * FILE_SIZE)

    def __len__(self) -> int:
        return len(self.log)


async def read_for_a_while(one: Slave, truth: Truth, asked: int, chance: random.Random, ends: float) -> None:
    """Reads frames, checks each byte, acks or not; returns when the connection ends or the time is over."""
    loop, expected = asyncio.get_running_loop(), asked
    while loop.time() < ends:
        try:
            frame = await one.frame(1.0)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            return
        if asked < 2 and expected == asked:  # the beginning, wherever that is by now
            assert frame.offset == asked or frame.offset % FILE_SIZE == 0
            expected = frame.offset
        assert frame.offset == expected
        assert frame.body == truth.log[expected : expected + len(frame.body)]
        expected += len(frame.body)
        if chance.random() < 0.7:
            one.report(chance.choice((expected, expected, expected - len(frame.body) // 2)))
        if chance.random() < 0.1:
            await asyncio.sleep(chance.random() * 0.2)


async def one_life(master: Running, truth: Truth, chance: random.Random, ends: float) -> None:
    """Connects again and again, each time in another way."""
    loop = asyncio.get_running_loop()
    while loop.time() < ends:
        low, high = master.view.min_offset, master.view.max_offset
        report = chance.choice((0, 1, high, chance.randint(low, high), chance.randint(0, high + 10)))
        buffer = chance.choice((None, None, 4_096, 1 << 16))
        async with slave(master, report, receive_buffer=buffer) as one:
            if chance.random() < 0.2:
                await asyncio.sleep(chance.random() * 0.3)
            else:
                await read_for_a_while(one, truth, report, chance, min(ends, loop.time() + chance.random()))
            if chance.random() < 0.5:
                one.writer.transport.abort()


async def grow(master: Running, truth: Truth, chance: random.Random, ends: float) -> None:
    """The store: appends, removes old files, and is away now and then."""
    loop = asyncio.get_running_loop()
    while loop.time() < ends:
        data = noise(chance.choice((1, 200, 200, 5_000, 100_000)), chance.randrange(1 << 30))
        truth.log += data
        master.files.append(data)
        if chance.random() < 0.02:
            master.view.lost()
            await asyncio.sleep(0.02)
        if chance.random() < 0.02 and master.files.end - master.files.begin > 3 * FILE_SIZE:
            master.files.remove_below(master.files.begin + FILE_SIZE)
        master.say()
        await asyncio.sleep(chance.choice((0, 0, 0.001, 0.01)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *in_campaigns(*range(2, 6))])
async def test_every_byte_is_right(tmp_path: Path, seed: int) -> None:
    chance, truth = random.Random(seed), Truth()
    files = LogDirectory(tmp_path, truth.log, file_size=FILE_SIZE)
    limits = {"ha_transfer_batch_size": chance.choice((700, 32_768, 262_144)), "ha_send_heartbeat_interval": 30}
    async with running(files, ha_housekeeping_interval=400, **limits) as master:
        ends = asyncio.get_running_loop().time() + SECONDS
        lives = [one_life(master, truth, random.Random(seed * 100 + at), ends) for at in range(12)]
        await asyncio.gather(grow(master, truth, chance, ends), *lives)
        assert master.closed("failed") == 0
        assert master.closed("unreadable") == 0
        await until(lambda: master.master.connections == 0)
        assert not any(replica.connected for replica in master.master.replicas)
        async with slave(master, files.end - 1_000) as last:
            assert await last.log(files.end - 1_000, files.end) == truth.log[-1_000:]
