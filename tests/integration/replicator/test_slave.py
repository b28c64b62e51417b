"""A follower over real sockets: the conversation with its master, as the spec's vectors have it."""

import asyncio
import random
import ssl
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.replication.v1.replication_pb2 import FollowerState, JoinRequest, JoinResponse
from tandemmq.replicator.frames import encode_header
from tests.integration.replicator.slave_kit import FILE_SIZE, Context, JoinServicer, scene, until

LOG = b"\0" + random.Random(2).randbytes(3 * FILE_SIZE + 54321)


async def test_an_empty_slave_takes_the_whole_history(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        slave = await it.master.connection()
        assert slave.reports == [1]
        slave.send(encode_header(1, 0))
        slave.send_log(LOG, 1)
        await slave.acked(len(LOG))
        assert it.store.log == LOG
        assert slave.reports == sorted(slave.reports)
        status = it.follower.status()
        assert status.state == FollowerState.FOLLOWING
        assert (status.received_offset, status.acked_offset) == (len(LOG), len(LOG))
        assert status.problem == ""
        assert sorted(path.name for path in (tmp_path / "commitlog").iterdir()) == [
            f"{at:020d}" for at in range(0, len(LOG), FILE_SIZE)
        ]


async def test_the_first_report_comes_at_once(tmp_path: Path) -> None:
    """A RocketMQ slave takes five seconds; here the next one would be due long after this test has lost patience."""
    async with scene(tmp_path, LOG[:1000], ha_send_heartbeat_interval=100_000) as it:
        slave = await it.master.connection()
        assert slave.received == encode_header(1, 0)[:8]


async def test_bytes_of_half_a_frame_reach_the_store_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1000], 1)
        await slave.acked(1000)
        slave.send(encode_header(1000, 5000) + LOG[1000:1100])
        await slave.acked(1100)
        slave.send(LOG[1100:6000])
        await slave.acked(6000)
        assert it.store.log == LOG[:6000]


async def test_vector_6_a_heartbeat_tells_an_empty_slave_where_to_begin(tmp_path: Path) -> None:
    async with scene(tmp_path, sync_from_last_file=True) as it:
        slave = await it.master.connection()
        slave.send(encode_header(2 * FILE_SIZE, 0))
        await slave.acked(2 * FILE_SIZE)
        assert slave.reports == [0, 2 * FILE_SIZE]
        slave.send_log(LOG, 2 * FILE_SIZE)
        await slave.acked(len(LOG))
        assert it.store.min_offset == 2 * FILE_SIZE
        assert it.store.log == LOG[2 * FILE_SIZE :]


async def test_vector_7_a_heartbeat_that_goes_back_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000], ha_refused_pause=100) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1000], 1)
        await slave.acked(1000)
        slave.send(encode_header(1000 - 406, 0))
        await slave.ended()
        await until(lambda: it.follower.refused)
        assert "a frame at offset 594, expected was 1000: it goes back" in it.follower.problem
        again = await it.master.connection(2)
        assert again.reports == [1]
        assert it.follower.refused, "until it really follows again"
        again.send_log(LOG, 1)
        await again.acked(len(LOG))
        assert it.follower.state == FollowerState.FOLLOWING
        assert it.follower.counters.ends == {"offset": 1}


async def test_vectors_8_and_9_frames_in_any_pieces(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send(encode_header(1, 9) + LOG[1:10] + encode_header(10, 20) + LOG[10:30])
        await slave.acked(30)
        header = encode_header(30, 406)
        slave.send(header[:6])
        reads = it.follower.counters.received_bytes
        await until(lambda: it.follower.counters.received_bytes == reads + 6 or it.store.max_offset == 30)
        slave.send(header[6:])
        slave.send(LOG[30:436])
        await slave.acked(436)
        assert it.store.log == LOG[:436]


async def test_vector_10_an_oversized_frame_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send(encode_header(1, 5 << 20) + bytes(100_000))
        await slave.ended()
        await until(lambda: it.follower.refused)
        assert "5242880 bytes at offset 1" in it.follower.problem
        assert it.store.max_offset == 1


@pytest.mark.parametrize(
    "garbage", [encode_header(1, -1), encode_header(-7, 3), b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 4096]
)
async def test_garbage_is_refused(tmp_path: Path, garbage: bytes) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send(garbage)
        await slave.ended()
        await until(lambda: it.follower.refused)
        assert it.follower.counters.ends == {"frame": 1}
        assert it.store.max_offset == 1


async def test_a_fork_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:2_000_000]) as it:
        slave = await it.master.connection()
        assert slave.reports == [2_000_000 - 65_536]
        other = bytearray(LOG)
        other[1_999_990] ^= 1
        slave.send_log(bytes(other), slave.reports[0])
        await slave.ended()
        await until(lambda: it.follower.refused)
        assert "other bytes than we from offset 1999990 on" in it.follower.problem
        advice = it.follower.problem
        steps = [advice.find(step) for step in ("tandem data audit --pair", "--repair", "tandem replica reseed")]
        assert 0 < steps[0] < steps[1] < steps[2], "it may be the master that is damaged"
        assert it.follower.status().state == FollowerState.REFUSED
        assert it.store.log == LOG[:2_000_000]
        assert it.follower.counters.ends == {"fork": 1}


async def test_a_gap_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1000], 1)
        await slave.acked(1000)
        slave.send(encode_header(1500, 100) + LOG[1500:1600])
        await slave.ended()
        await until(lambda: it.follower.refused)
        assert "bytes are missing before it" in it.follower.problem
        assert it.store.log == LOG[:1000]


async def test_a_flood_of_empty_frames_holds_nothing_up(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1000], 1)
        for _ in range(20):
            slave.send(encode_header(1000, 0) * 10_000)
        slave.send_log(LOG[:5000], 1000)
        await slave.acked(5000)
        assert slave.reports == [1, 1000, 5000]


async def test_a_silent_master_is_left_and_dialled_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ha_housekeeping_interval": 2_000, "ha_send_heartbeat_interval": 100}
    async with scene(tmp_path, LOG[:1000], **settings) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:1000], 1)
        await slave.acked(1000)
        await slave.ended()
        assert slave.reports[2:] == [1000] * len(slave.reports[2:]), "the last report is repeated"
        assert len(slave.reports) >= 4
        again = await it.master.connection(2)
        assert again.reports[0] == 1
        assert it.follower.counters.ends["silent"] >= 1
        assert not it.follower.refused


@pytest.mark.parametrize("sent", [0, 5, 12, 100, 4012])
async def test_a_master_that_closes_anywhere_is_dialled_again(tmp_path: Path, sent: int) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        slave.send((encode_header(1, 4000) + LOG[1:4001])[:sent])
        slave.transport.close()
        again = await it.master.connection(2)
        have = 1 + max(0, sent - 12)
        assert it.store.log == LOG[:have]
        assert again.reports == [1]
        again.send_log(LOG, 1)
        await again.acked(len(LOG))
        assert it.store.log == LOG
        assert it.follower.counters.ends == {"closed": 1}


async def test_a_master_that_is_not_there_is_tried_again_and_again(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000]) as it:
        slave = await it.master.connection()
        await it.master.stop()
        await slave.ended()
        await until(lambda: it.follower.counters.ends.get("unreachable", 0) >= 3)
        assert f"cannot reach the master at 127.0.0.1:{it.master.port}: Connection refused" in it.follower.problem
        await it.master.start()
        again = await it.master.connection(2)
        again.send_log(LOG, 1)
        await again.acked(len(LOG))
        assert it.follower.status().reconnects >= 3
        assert it.follower.problem == ""


async def test_a_master_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1000]) as it:
        slave = await it.master.connection()
        slave.send_log(LOG[:800], 1)
        while not slave.closed:
            slave.send(encode_header(800, 0))
            await asyncio.sleep(0.1)
        await until(lambda: it.follower.refused)
        assert "the master's log ends at offset 800, ours at 1000" in it.follower.problem


async def test_a_master_without_the_file_before_is_asked_from_our_last_file_on(tmp_path: Path) -> None:
    end = FILE_SIZE + 1000
    async with scene(tmp_path, LOG[:end]) as it:
        slave = await it.master.connection()
        assert slave.reports == [end - 65_536]
        slave.transport.close()
        again = await it.master.connection(2)
        assert again.reports == [FILE_SIZE]
        again.send_log(LOG, FILE_SIZE)
        await again.acked(len(LOG))
        assert it.store.log == LOG


async def test_bytes_on_hand_reach_the_store_when_the_master_dies(tmp_path: Path) -> None:
    async with scene(tmp_path, LOG[:1]) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(LOG, 1)
        await until(lambda: it.follower.status().received_offset == len(LOG))
        await it.master.stop()
        it.store.may_take.set()
        await until(lambda: it.store.max_offset == len(LOG))
        assert it.store.log == LOG


async def test_an_empty_slave_finds_the_first_file_of_a_rocketmq_master(tmp_path: Path) -> None:
    """Its first file has expired: asked for 1 it sends heartbeats for ever, and looks healthy."""
    async with scene(tmp_path) as it:
        for number in range(1, 6):
            slave = await it.master.connection(number)
            asked = slave.reports[0] or len(LOG) - len(LOG) % FILE_SIZE
            if asked < FILE_SIZE:
                slave.send(encode_header(asked, 0))
            else:
                slave.send_log(LOG, asked)
        await it.master.connections[4].acked(len(LOG))
        assert [slave.reports[0] for slave in it.master.connections] == [1, 0, FILE_SIZE, 1, FILE_SIZE]
        assert it.store.min_offset == FILE_SIZE
        assert it.store.log == LOG[FILE_SIZE:]
        assert it.follower.problem == ""


async def test_an_empty_master_is_searched_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        (await it.master.connection(1)).send(encode_header(1, 0))
        question = await it.master.connection(2)
        assert question.reports == [0]
        question.send(encode_header(0, 0))
        slave = await it.master.connection(3)
        assert slave.reports == [1]
        slave.send(encode_header(1, 0))
        await until(lambda: it.follower.counters.heartbeats == 2)
        slave.send_log(LOG, 1)
        await slave.acked(len(LOG))
        assert it.store.log == LOG
        assert len(it.master.connections) == 3


class SlowJoin(JoinServicer):
    """Holds the slave in its introduction, so that it has a connection and has not asked yet."""

    def __init__(self) -> None:
        super().__init__(JoinResponse())
        self.go_on = asyncio.Event()

    async def Join(self, request: JoinRequest, context: Context) -> JoinResponse:
        await self.go_on.wait()
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "later")


async def test_a_master_that_speaks_first_is_none(tmp_path: Path) -> None:
    """What it says is read before the slave has asked; a RocketMQ master would wait."""
    join = SlowJoin()  # type: ignore[abstract]  # it has the one call that matters
    async with scene(tmp_path, LOG[:1], join=join) as it:
        await until(lambda: bool(it.master.connections))
        it.master.connections[0].send(encode_header(1, 0))
        await until(lambda: it.master.connections[0].closed, "it hangs up")
        join.go_on.set()
        await until(lambda: it.follower.refused)
        assert "spoke before it was asked" in it.follower.problem
        assert it.store.calls == 0


# -- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key for localhost, signed by itself."""
    directory = tmp_path_factory.mktemp("tls")
    made = directory / "cert.pem", directory / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*command, "-keyout", made[1], "-out", made[0]], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command to make certificates with")
    return made


def server_side(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


async def test_over_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    tls: dict[str, Any] = {"ha_tls_enable": True, "ha_tls_trust_cert_path": certificate[0]}
    async with scene(tmp_path, LOG[:1000], ssl=server_side(certificate), **tls) as it:
        slave = await it.master.connection()
        slave.send_log(LOG, 1)
        await slave.acked(len(LOG))
        assert it.store.log == LOG


async def test_a_slow_store_over_tls_loses_nothing(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    tls: dict[str, Any] = {"ha_tls_enable": True, "ha_tls_trust_cert_path": certificate[0]}
    log = LOG * 8
    async with scene(tmp_path, LOG[:1000], ssl=server_side(certificate), **tls) as it:
        slave = await it.master.connection()
        await until(lambda: bool(it.store.messages))
        it.store.may_take.clear()
        slave.send_log(log, 1)
        await until(lambda: it.follower.counters.staging_pauses > 0, "reading pauses")
        it.store.may_take.set()
        await slave.acked(len(log), 60)
        assert it.store.log == log


async def test_a_master_that_is_not_trusted_is_not_followed(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    async with scene(tmp_path, LOG[:1000], ssl=server_side(certificate), ha_tls_enable=True) as it:
        await until(lambda: it.follower.counters.ends.get("unreachable", 0) >= 2)
        assert "cannot reach the master" in it.follower.problem
        assert "CERTIFICATE_VERIFY_FAILED" in it.follower.problem
        assert all(not connection.received for connection in it.master.connections)


async def test_without_tls_a_tls_master_is_left(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    async with scene(tmp_path, LOG[:1000], ssl=server_side(certificate)) as it:
        await until(lambda: len(it.follower.counters.ends) > 0)
        assert it.follower.counters.ends.keys() <= {"closed", "frame"}
        assert it.store.log == LOG[:1000]
