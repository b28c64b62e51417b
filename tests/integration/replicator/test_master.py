"""The master side over real sockets: RocketMQ's behavioural vectors, and what is done better."""

import asyncio
import os
import socket
import time
from pathlib import Path

import pytest

from tandemmq.replicator.master.listener import CannotListen
from tandemmq.replicator.master.log_files import OpenLogFiles
from tests.integration.replicator.master_kit import FILE_SIZE, LogDirectory, noise, running, slave, until

QUICK = {"ha_send_heartbeat_interval": 150, "ha_housekeeping_interval": 600}
"""A thirtieth of RocketMQ's 5 and 20 seconds."""


# -- the behavioural vectors of the specification ----------------------------------------------------------------------


async def test_vector_1_who_never_reports_hears_nothing_and_is_closed(tmp_path: Path) -> None:
    async with running(LogDirectory(tmp_path, noise(406)), **QUICK) as master, slave(master) as one:
        begin = time.monotonic()
        assert await one.ended() == b""
        assert time.monotonic() - begin > 0.59
        assert master.closed("silent") == 1


async def test_vector_2_one_report_then_silence_gets_heartbeats_and_is_closed(tmp_path: Path) -> None:
    # Not as QUICK: if this process sleeps longer than a slave may be silent, the master closes before it says anything.
    rules = {"ha_send_heartbeat_interval": 150, "ha_housekeeping_interval": 2_000}
    async with running(LogDirectory(tmp_path, noise(406)), **rules) as master, slave(master, 406) as one:
        begin = time.monotonic()
        heard = await one.ended()
        seconds = time.monotonic() - begin
        assert seconds > 1.99
        heartbeat = bytes.fromhex("000000000000019600000000")
        assert heard == heartbeat * (len(heard) // 12)
        assert 1 <= len(heard) // 12 <= seconds / 0.15 + 1


async def test_vector_3_of_two_reports_in_one_segment_the_last_counts(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files) as master, slave(master, 0, 203) as one:
        assert await one.frame() == (203, files.bytes_at(203, 203))


async def test_vector_4_a_report_in_two_halves_is_one_request(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files) as master, slave(master) as one:
        report = (203).to_bytes(8, "big")
        one.writer.write(report[:4])
        await asyncio.sleep(0.1)
        assert master.metrics.reports_received == 0
        one.writer.write(report[4:])
        assert (await one.frame()).offset == 203
        assert master.metrics.reports_received == 1


async def test_vector_5_a_report_beyond_our_end_is_refused_at_once(tmp_path: Path) -> None:
    """RocketMQ accepts the first one, and then believes every synchronous send acknowledged."""
    async with running(LogDirectory(tmp_path, noise(406))) as master:
        async with slave(master, 1_000_000) as one:
            assert await one.ended() == b""
        assert master.closed("ahead") == 1
        assert master.master.replicas.progress == (False, 0, 0)


async def test_vector_8_acks_of_two_frames_in_one_segment(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files) as master, slave(master, 0) as one:
        await one.log(0, 406)
        one.report(203, 406)
        await until(lambda: master.master.replicas.progress.replicated_offset == 406)
        assert master.metrics.reports_received == 3


async def test_vector_9_frames_are_sent_whole_however_slowly_they_are_read(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(100_000))
    async with running(files) as master, slave(master, 0, receive_buffer=4_096) as one:
        heard = b""
        for size in (6, 6):
            heard += await one.reader.readexactly(size)
            await asyncio.sleep(0.05)
        assert heard == bytes.fromhex("000000000000000000010000")
        assert await one.reader.readexactly(FILE_SIZE) == files.bytes_at(0, FILE_SIZE)
        assert (await one.frame()).offset == FILE_SIZE


# -- sending -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1_000, 32_768, 262_144])
async def test_an_empty_slave_gets_the_whole_log(tmp_path: Path, batch: int) -> None:
    files = LogDirectory(tmp_path, noise(5 * FILE_SIZE + 777))
    async with running(files, ha_transfer_batch_size=batch) as master, slave(master, 0) as one:
        assert await one.log(0, files.end, ack=True) == files.log
        await until(lambda: master.master.replicas.progress == (True, files.end, 1))


async def test_what_is_appended_follows_at_once(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path)
    async with running(files) as master, slave(master, 1) as one:
        await until(lambda: master.master.connections == 1)
        await until(lambda: any(replica.connected for replica in master.master.replicas))
        master.append(noise(300))
        assert await one.frame() == (1, files.bytes_at(1, 299))
        for at in range(200):
            begin = files.end
            master.append(noise(at * 7 + 1))
            assert await one.log(begin, files.end, ack=True) == files.bytes_at(begin, at * 7 + 1)


async def test_nothing_beyond_the_stores_word_is_sent(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, ha_send_heartbeat_interval=150) as master:
        master.say(400)
        async with slave(master, 0) as one:
            assert await one.log(0, 400) == files.bytes_at(0, 400)
            assert await one.frame() == (400, b"")


async def test_frames_of_every_size_hold_the_right_bytes(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(3 * FILE_SIZE))
    for batch in (1, 4_096, 16_384, 16_385, FILE_SIZE):
        begin = files.end - 2 * min(batch, 100) - 40_000 * (batch > 1)
        async with running(files, ha_transfer_batch_size=batch) as master, slave(master, begin) as one:
            assert await one.log(begin, files.end) == files.bytes_at(begin, files.end - begin)


async def test_a_slave_that_is_far_behind_is_served_by_a_thread(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(40 << 20), file_size=16 << 20)
    async with running(files) as master, slave(master, 2) as one, slave(master, files.end - 5) as near:
        assert (await near.log(files.end - 5, files.end)) == files.log[-5:]
        found = await one.log(2, files.end, ack=True)
        assert found == files.log[2:]
        master.append(b"more")
        assert (await one.frame()).body == b"more"
        assert (await near.frame()).body == b"more"


async def test_what_is_not_in_memory_is_read_by_a_thread(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(4 << 20), file_size=4 << 20)
    with files.path(0).open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    async with running(files) as master:
        if OpenLogFiles(tmp_path).at(0, files.file_size).resident(0, 1):  # begins to read ahead there
            pytest.skip("this file system keeps pages in memory, or does not tell")
        async with slave(master, files.end - 1_000) as one:
            assert await one.log(files.end - 1_000, files.end) == files.log[-1_000:]
            assert master.master._executor._threads
            begin = files.end
            master.append(noise(100))
            assert (await one.frame()).offset == begin


async def test_flow_control_spreads_the_bytes_without_empty_frames(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(250_000))
    limits = {"ha_flow_control_enable": True, "max_ha_transfer_byte_in_second": 100_000}
    async with running(files, **limits) as master, slave(master, 0) as one:
        begin = time.monotonic()
        assert await one.log(0, files.end) == files.log
        assert time.monotonic() - begin > 1.9
        assert master.metrics.heartbeats_sent == 0


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (-1, "negative"),
        (-(1 << 63), "negative"),
        (407 + FILE_SIZE, "ahead"),
        ((1 << 63) - 1, "ahead"),
        (5, "below_min"),
    ],
)
async def test_first_reports_out_of_range(tmp_path: Path, report: int, reason: str) -> None:
    files = LogDirectory(tmp_path, noise(406), begin=FILE_SIZE)
    async with running(files) as master, slave(master, report) as one:
        assert await one.ended() == b""
        assert master.closed(reason) == 1


@pytest.mark.parametrize(("ack", "reason"), [(-1, "negative"), (407, "beyond_sent"), (1 << 62, "beyond_sent")])
async def test_acks_out_of_range(tmp_path: Path, ack: int, reason: str) -> None:
    async with running(LogDirectory(tmp_path, noise(406))) as master, slave(master, 0) as one:
        await one.log(0, 406)
        one.report(ack)
        assert await one.ended() == b""
        assert master.closed(reason) == 1
        assert not master.master.replicas.progress.enough


async def test_an_old_ack_changes_nothing(tmp_path: Path) -> None:
    async with running(LogDirectory(tmp_path, noise(406))) as master, slave(master, 0) as one:
        await one.log(0, 406)
        one.report(406)
        await until(lambda: master.master.replicas.progress.replicated_offset == 406)
        one.report(3)
        await until(lambda: master.metrics.reports_received == 3)
        assert master.master.replicas.progress.replicated_offset == 406


async def test_peers_that_are_not_allowed_are_closed_unheard(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files, ha_allowed_peers="10.0.0.0/8; 192.0.2.7") as master, slave(master) as one:
        assert await one.ended() == b""
        assert master.closed("not_allowed") == 1
    async with running(files, ha_allowed_peers="127.0.0.0/8") as master, slave(master, 0) as one:
        assert (await one.frame()).offset == 0


async def test_no_more_connections_than_allowed(tmp_path: Path) -> None:
    async with running(LogDirectory(tmp_path, noise(406)), ha_max_connections=2) as master:
        async with slave(master, 0) as one, slave(master, 0) as two:
            await one.frame()
            await two.frame()
            async with slave(master, 0) as three:
                assert await three.ended() == b""
        await until(lambda: master.master.connections == 0)
        async with slave(master, 0) as one:
            await one.frame()
        assert master.closed("too_many") == 1


async def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotListen, match="Address already in use"):
            async with running(LogDirectory(tmp_path), ha_listen_port=taken.getsockname()[1]):
                pass


# -- the log changes ---------------------------------------------------------------------------------------------------


async def test_a_log_that_became_shorter_ends_the_connections_that_had_more(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files) as master, slave(master, 0) as one, slave(master, 100) as two:
        await one.log(0, 406)
        await two.log(100, 406)
        master.view.lost()
        files.append(noise(10))
        await asyncio.sleep(0.02)
        master.say(405)
        assert await one.ended() == b""
        assert await two.ended() == b""
        assert master.closed("log_cut") == 2
        assert not master.master.replicas.progress.enough


async def test_another_log_ends_all_connections_even_if_it_is_longer(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files) as master, slave(master, 0) as one:
        await one.log(0, 406)
        master.view.lost()
        (tmp_path / "commitlog").rename(tmp_path / "commitlog.old")
        other = LogDirectory(tmp_path, noise(1_000, 2))
        master.say(other.end)
        assert await one.ended() == b""
        assert master.closed("log_cut") == 1
        async with slave(master, 0) as again:
            assert await again.log(0, 1_000) == other.log


async def test_slaves_stay_while_the_store_is_away(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(406))
    async with running(files, ha_send_heartbeat_interval=150) as master, slave(master, 0) as one:
        await one.log(0, 406)
        master.view.lost()
        files.append(noise(10))
        assert await one.frame() == (406, b"")
        master.say()
        assert await one.frame() == (406, files.bytes_at(406, 10))


async def test_files_that_retention_removes_while_they_are_sent(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(40 << 20), file_size=1 << 20)
    whole = files.log
    async with running(files) as master, slave(master, 0, receive_buffer=1 << 16) as one:
        first = await one.frame()
        files.remove_below(30 << 20)
        master.say()
        assert len(master.master._files) <= 11
        heard, offset = await one.ended(), first.offset + len(first.body)
        while len(heard) >= 12:
            at, size = int.from_bytes(heard[:8], "big"), int.from_bytes(heard[8:12], "big")
            assert at == offset
            body = heard[12 : 12 + size]
            assert body == whole[at : at + len(body)]
            heard, offset = heard[12 + size :], offset + size
        assert master.closed("below_min") == 1


async def test_a_missing_file_ends_the_connection_and_is_counted(tmp_path: Path) -> None:
    files = LogDirectory(tmp_path, noise(2 * FILE_SIZE))
    files.path(FILE_SIZE).unlink()
    async with running(files) as master, slave(master, 0) as one:
        assert len(await one.ended()) == 12 + FILE_SIZE
        assert master.closed("unreadable") == 1
