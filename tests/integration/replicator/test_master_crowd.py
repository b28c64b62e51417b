"""Many slaves, slow slaves and peers that are no slaves at all: nobody holds up anybody."""

import asyncio
import json
import random
import struct
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tandemmq.replicator.frames import encode_report
from tests.campaigns import in_campaigns
from tests.golden import golden_store
from tests.integration.replicator.master_kit import LogDirectory, noise, running, slave, until

MIB = 1 << 20


async def test_many_slaves_get_the_same_log(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(300_000))
    async with running(files) as master, AsyncExitStack() as stack:
        slaves = [await stack.enter_async_context(slave(master, 0)) for _ in range(20)]
        assert set(await asyncio.gather(*(one.log(0, files.end) for one in slaves))) == {files.log}
        begin = files.end
        master.append(noise(1_000, 2))
        for one in slaves:
            assert (await one.frame()).offset == begin
        assert len(list(master.master.replicas)) == 1
        for at, one in enumerate(slaves):
            one.report(files.end - at)
        await until(lambda: master.metrics.reports_received == 40)
        assert master.master.replicas.progress == (True, files.end, 1)


async def test_slaves_that_introduce_themselves_count_each(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, in_sync_replicas=3) as master, slave(master) as one, slave(master) as two:
        master.master.introduce(("127.0.0.1", one.port), 1)
        one.report(0)
        two.report(0)
        await one.log(0, 1_000, ack=True)
        await two.log(0, 1_000, ack=True)
        await until(lambda: master.master.replicas.progress == (True, 1_000, 2))
        assert {replica.identity for replica in master.master.replicas} == {"1", "127.0.0.1"}
        master.master.introduce(("127.0.0.1", two.port), 2)
        assert {replica.identity for replica in master.master.replicas if replica.connected} == {"1", "2"}
        async with slave(master) as again:
            master.master.introduce(("127.0.0.1", again.port), 2)
            again.report(500)
            await again.frame()
            assert master.master.replicas.progress == (True, 1_000, 2)


@pytest.mark.slow
async def test_a_slow_slave_holds_up_nobody(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(30 * MIB), file_size=8 * MIB)
    async with (
        running(files) as master,
        slave(master, 0, receive_buffer=4_096) as slow,
        slave(master, files.end) as quick,
    ):
        await slow.frame()
        for at in range(100):
            begin = files.end
            master.append(noise(500, at))
            assert (await quick.frame()).offset == begin
            quick.report(files.end)
        await until(lambda: master.master.replicas.progress.replicated_offset == files.end)


async def test_four_slaves_that_read_nothing_leave_threads_for_a_fifth(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(60 * MIB), file_size=32 * MIB)
    async with running(files) as master, AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(slave(master, 0, receive_buffer=4_096))
        fifth = await stack.enter_async_context(slave(master, 1))
        assert await fifth.log(1, files.end) == files.log[1:]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_thousand_connections(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(2_000))
    async with running(files, ha_max_connections=2_000) as master, AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(slave(master, 0)) for _ in range(1_000)]
        assert set(await asyncio.gather(*(one.log(0, 2_000) for one in crowd))) == {files.log}
        for one in crowd:
            one.report(2_000)
        await until(lambda: master.metrics.reports_received == 2_000)
        assert master.master.connections == 1_000
        master.append(b"x" * 100)
        assert {(await one.frame()).offset for one in crowd} == {2_000}
    await until(lambda: master.master.connections == 0)
    assert not master.master.replicas.progress.enough


async def test_those_who_never_report_cannot_take_every_place(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, ha_max_connections=10) as master, AsyncExitStack() as stack:
        good = [await stack.enter_async_context(slave(master, 0)) for _ in range(3)]
        for one in good:
            await one.frame()
        for _ in range(30):
            await stack.enter_async_context(slave(master))
        await until(lambda: master.closed("too_many") == 23)
        late = await stack.enter_async_context(slave(master, 0))
        assert await late.log(0, 1_000) == files.log
        master.append(b"more")
        for one in (*good, late):
            assert (await one.frame()).body == b"more"


async def test_a_flood_of_acks_is_harmless(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(100_000))
    async with running(files) as master, slave(master, 0) as flooding, slave(master, 0) as good:
        await flooding.log(0, files.end)
        await good.log(0, files.end, ack=True)
        for _ in range(20):
            flooding.writer.write(encode_report(files.end) * 20_000)
            begin = files.end
            master.append(noise(100))
            assert (await good.frame()).offset == begin
            await flooding.writer.drain()
        await until(lambda: master.metrics.reports_received > 400_000)
        assert master.master.connections == 2


@pytest.mark.parametrize("seed", [0, 1, 2, *in_campaigns(*range(3, 8))])
async def test_garbage_is_refused_or_waited_for(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, ha_send_heartbeat_interval=100, ha_housekeeping_interval=300) as master:
        async with AsyncExitStack() as stack:
            for _ in range(30):
                one = await stack.enter_async_context(slave(master))
                one.writer.write(chance.randbytes(chance.randint(0, 200)))
            await until(lambda: master.master.connections == 0)
        assert master.master.replicas.progress == (False, 0, 0)
        async with slave(master, 0) as good:
            assert await good.log(0, 1_000) == files.log


async def test_connections_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(30 * MIB), file_size=8 * MIB)
    chance = random.Random(1)
    async with running(files, ha_send_heartbeat_interval=20) as master:
        for _ in range(60):
            async with slave(master, chance.choice((0, 1, files.end, files.end - 5_000))) as one:
                if chance.random() < 0.6:
                    await one.frame()
                one.writer.transport.abort()
        await until(lambda: master.master.connections == 0)
        assert not [replica for replica in master.master.replicas if replica.connected]


@pytest.mark.golden
@pytest.mark.parametrize("number", [0, *in_campaigns(1)])
async def test_a_golden_session_over_a_real_socket(tmp_path: Path, number: int) -> None:
    """A RocketMQ slave's bytes go in as captured; out come its master's frames, one after the other."""
    directory = golden_store("ha")
    reads = [r for r in json.loads((directory / "ha-stream.json").read_text())["reads"] if "length" in r]
    own = [read for read in reads if read["conn"] == sorted({read["conn"] for read in reads})[number]]
    from_slave = (directory / "ha-slave-to-master.bin").read_bytes()
    from_master = (directory / "ha-master-to-slave.bin").read_bytes()
    files = LogDirectory(tmp_path / "empty")
    files.root, files.file_size = directory / "master/store", MIB
    async with running(files, ha_transfer_batch_size=32_768, sync_from_last_file=True) as master:
        first = next(read for read in own if read["dir"] == "c2s")
        master.say(struct.unpack_from(">q", from_slave, first["offset"])[0])
        async with slave(master) as one:
            theirs, at, heard = b"", 0, 0
            for read in own:
                data = slice(read["offset"], read["offset"] + read["length"])
                if read["dir"] == "c2s":
                    one.writer.write(from_slave[data])
                    heard += read["length"] // 8
                    continue
                theirs += from_master[data]
                while len(theirs) - at >= 12:
                    offset, size = struct.unpack_from(">qi", theirs, at)
                    if size:
                        await until(lambda heard=heard: master.metrics.reports_received >= min(heard, 1))  # type: ignore[misc]
                        master.say(max(master.view.max_offset, offset + size))
                        frame = await one.frame()
                        known = theirs[at + 12 : at + 12 + size]
                        assert (frame.offset, len(frame.body), frame.body[: len(known)]) == (offset, size, known)
                    at += 12 + size
            assert master.view.max_offset > MIB
            assert master.master.connections == 1
