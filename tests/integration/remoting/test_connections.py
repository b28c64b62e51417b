"""Remoting over real sockets: requests in any pieces and order, both directions, and peers that behave badly."""

import asyncio
import inspect
import shutil
import socket
import ssl
import struct
from pathlib import Path
from typing import cast

import pytest

from tandemmq.common.identity.tls import trusting_context
from tandemmq.common.net.remoting.client import RemotingClient
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.errors import PeerGone, PeerSilent, TooMuchAsked
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.command import ONE_WAY, Command
from tandemmq.common.wire.remoting.errors import NotEncodable
from tandemmq.common.wire.remoting.frames import RemotingFrameReader, Serialization
from tests.certificates import Authority
from tests.integration.remoting.serving import (
    AT_ONCE,
    CALL_BACK,
    ECHO,
    FAIL,
    HOLD,
    PATIENCE,
    REFUSE,
    TOO_LARGE,
    Running,
    serving,
)
from tests.manual_timers import ManualTimers


class Raw:
    """A client that writes bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.frames = RemotingFrameReader()

    @classmethod
    async def to(cls, running: Running) -> "Raw":
        """A connection that has been heard: one without a byte is none to the server."""
        raw = cls(*await asyncio.open_connection("127.0.0.1", running.port))
        raw.writer.write(codec.encode(Command(AT_ONCE)))
        await raw.responses(1)
        return raw

    async def responses(self, number: int) -> list[Command]:
        found: list[Command] = []
        while len(found) < number:
            data = await asyncio.wait_for(self.reader.read(65536), PATIENCE)
            assert data, "the connection is closed"
            found += map(codec.decode, self.frames.receive(data))
        return found

    async def ended(self) -> bool:
        """Whether the server has closed; what comes before is dropped."""
        try:
            while await asyncio.wait_for(self.reader.read(1 << 20), PATIENCE):
                pass
        except ConnectionError:
            pass
        self.writer.close()
        return True


async def until(true: object) -> None:
    assert callable(true)
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("serialization", Serialization)
async def test_an_answer_comes_in_the_serialization_of_its_request(serialization: Serialization) -> None:
    async with serving() as running:
        client = running.client()
        request = Command(ECHO, fields={"a": "ü"}, body=b"x" * 100_000, serialization=serialization)
        answer = await client.ask(request, PATIENCE)
        assert (answer.fields, answer.body, answer.serialization) == ({"a": "ü"}, b"x" * 100_000, serialization)
        await client.close()


async def test_a_request_that_is_held_delays_no_other() -> None:
    async with serving() as running:
        client = running.client()
        held = asyncio.ensure_future(client.ask(Command(HOLD), PATIENCE))
        for _ in range(10):
            assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        assert not held.done()
        running.served.let_go.set()
        assert (await held).code == 19
        await client.close()


async def test_requests_in_single_bytes_and_many_at_once() -> None:
    async with serving() as running:
        raw = await Raw.to(running)
        for byte in codec.encode(Command(AT_ONCE, 5)):
            raw.writer.write(bytes([byte]))
            await raw.writer.drain()
        raw.writer.write(b"".join(codec.encode(Command(AT_ONCE, at, body=b"%d" % at)) for at in range(500)))
        answers = await raw.responses(501)
        assert [(one.opaque, one.body) for one in answers] == [(5, b""), *((at, b"%d" % at) for at in range(500))]
        raw.writer.close()


async def test_what_nobody_handles_and_what_raises_is_answered_by_its_code() -> None:
    async with serving() as running:
        client = running.client()
        unknown = await client.ask(Command(31000), PATIENCE)
        assert (unknown.code, unknown.remark) == (3, " request type 31000 not supported")
        refused = await client.ask(Command(REFUSE), PATIENCE)
        assert (refused.code, refused.remark) == (22, "there is no 3")
        failed = await client.ask(Command(FAIL), PATIENCE)
        assert failed.code == 1
        assert "incident" in (failed.remark or "")
        assert running.server.told.failed == 1
        large = await client.ask(Command(TOO_LARGE), PATIENCE)
        assert (large.code, "larger" in (large.remark or "")) == (1, True)
        assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        await client.close()


async def test_one_way_requests_are_not_answered_whatever_becomes_of_them() -> None:
    async with serving() as running:
        raw = await Raw.to(running)
        for code in (ECHO, REFUSE, FAIL, 31000, AT_ONCE):
            raw.writer.write(codec.encode(Command(code, 7, ONE_WAY)))
        raw.writer.write(codec.encode(Command(AT_ONCE, 8)))
        assert [one.opaque for one in await raw.responses(1)] == [8]
        await until(lambda: running.served.seen == [7])
        raw.writer.close()


async def test_the_server_asks_its_client_and_tells_it() -> None:
    heard: list[Command] = []
    handlers = Handlers(
        {40: lambda _, request: request.answer(7, body=bytes(request.body)[::-1]), 220: lambda _, r: heard.append(r)}
    )
    async with serving() as running:
        client = running.client(handlers)
        answer = await client.ask(Command(CALL_BACK, body=b"abc"), PATIENCE)
        assert (answer.code, answer.body) == (7, b"cba")
        running.served.connections[0].tell(Command(220, body=b"!"))
        await until(lambda: heard)
        assert heard[0].flag & ONE_WAY
        await client.close()


async def test_a_client_that_does_not_answer_or_goes_away_is_told_to_who_asks() -> None:
    timers = ManualTimers()
    async with serving(RemotingLimits(asks=1), timers=timers) as running:
        raw = await Raw.to(running)
        connection = running.served.connections[0]
        silent = asyncio.ensure_future(connection.ask(Command(40), 5))
        await timers.advance(4)
        assert not silent.done()
        await timers.advance(1)
        with pytest.raises(PeerSilent, match="5 s"):
            await silent
        waiting = asyncio.ensure_future(connection.ask(Command(40), PATIENCE))
        await asyncio.sleep(0)
        with pytest.raises(TooMuchAsked):
            await connection.ask(Command(40), PATIENCE)
        raw.writer.close()
        with pytest.raises(PeerGone):
            await waiting
        with pytest.raises(PeerGone):
            await connection.ask(Command(40), PATIENCE)
        connection.tell(Command(40))
        assert running.served.ended == [connection]


async def test_a_response_that_nobody_waits_for_is_dropped() -> None:
    async with serving() as running:
        raw = await Raw.to(running)
        raw.writer.write(codec.encode(Command(0, 1, 1)) + codec.encode(Command(AT_ONCE, 2)))
        assert [one.opaque for one in await raw.responses(1)] == [2]
        raw.writer.close()


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">II", (16 << 20) + 1, 0),
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">II", 6, 2) + b"[]",
        codec.encode(Command(1, serialization=Serialization.ROCKETMQ))[:-6].replace(b"\0\0\0\x19", b"\0\0\0\x13", 1),
    ],
)
async def test_what_is_no_frame_ends_the_connection_behind_what_came_before(bad: bytes) -> None:
    async with serving() as running:
        raw = await Raw.to(running)
        raw.writer.write(codec.encode(Command(AT_ONCE, 1)) + bad + bytes(64))
        assert [one.opaque for one in await raw.responses(1)] == [1]
        assert await raw.ended()
        assert running.server.told.misbehaved == 1


async def test_a_peer_that_does_not_read_is_closed_and_others_are_served() -> None:
    async with serving(RemotingLimits(output_bytes=4 << 20)) as running:
        raw = await Raw.to(running)
        request = codec.encode(Command(AT_ONCE, body=bytes(1 << 20)))
        try:
            for _ in range(64):
                raw.writer.write(request)
                await asyncio.wait_for(raw.writer.drain(), 1.0)
        except (ConnectionError, TimeoutError):
            pass
        connection = running.served.connections[0]
        for _ in range(8):
            connection.tell(Command(40, body=bytes(1 << 20)))
        await until(lambda: connection.closed)
        assert running.server.told.slow == 1
        raw.writer.close()
        client = running.client()
        assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        await client.close()


async def test_what_a_peer_has_asked_waits_while_it_does_not_read() -> None:
    """Or a hundred of them, with a thousand requests each in one packet, have the answers to all made at once."""
    async with serving() as running:
        raw = await Raw.to(running)
        answer = bytes(1 << 20)
        running.server._handlers._table[AT_ONCE] = lambda _, request: request.answer(body=answer)
        cast(asyncio.Transport, raw.writer.transport).pause_reading()
        raw.writer.write(b"".join(codec.encode(Command(AT_ONCE, at)) for at in range(1, 201)))
        connection = running.served.connections[0]
        await until(lambda: connection.stalled)
        assert connection.waiting < 8 << 20
        cast(asyncio.Transport, raw.writer.transport).resume_reading()
        assert [one.opaque for one in await raw.responses(200)] == list(range(1, 201))
        assert running.server.told.slow == 0
        raw.writer.close()


async def test_what_waits_for_all_peers_is_bounded_together() -> None:
    async with serving(RemotingLimits(waiting_bytes=40 << 20)) as running:
        raws = [await Raw.to(running) for _ in range(3)]
        for raw, size in zip(raws, (30 << 20, 20 << 20, 10 << 20), strict=True):
            cast(asyncio.Transport, raw.writer.transport).pause_reading()
            running.served.connections[raws.index(raw)].send_bytes(bytes(size))
        await until(lambda: running.server.told.slow == 1)
        await until(lambda: len(running.served.ended) == 1)
        assert len(running.server.connections) == 2
        assert running.served.connections[0].closed
        for raw in raws:
            raw.writer.close()


async def test_a_peer_that_stalls_is_closed_after_a_while() -> None:
    async with serving(RemotingLimits(stalled_seconds=0.2)) as running:
        raw = await Raw.to(running)
        cast(asyncio.Transport, raw.writer.transport).pause_reading()
        connection = running.served.connections[0]
        connection.send_bytes(codec.encode(Command(40, body=bytes(12 << 20))))
        await until(lambda: connection.closed)
        assert running.server.told.slow == 1
        raw.writer.close()


async def test_idle_connections_are_closed() -> None:
    timers = ManualTimers()
    async with serving(RemotingLimits(idle_seconds=60), timers=timers) as running:
        raw = await Raw.to(running)
        await until(lambda: bool(running.served.connections))
        await timers.advance(60)
        assert not running.served.ended
        await timers.advance(2)
        assert await raw.ended()
        assert running.server.told.idle == 1


async def test_more_requests_than_there_is_room_for_are_answered_busy() -> None:
    async with serving(RemotingLimits(connection_request_bytes=64 << 10)) as running:
        raw = await Raw.to(running)
        raw.writer.write(b"".join(codec.encode(Command(HOLD, at, body=bytes(1000))) for at in range(100)))
        busy = await raw.responses(60)
        assert {one.code for one in busy} == {2}
        assert (busy[0].remark or "").startswith("[OVERLOAD]")
        running.served.let_go.set()
        others = await raw.responses(100 - len(busy))
        assert sorted(one.opaque for one in busy + others) == list(range(100))
        assert {one.code for one in others} <= {2, 19}
        await until(lambda: running.served.connections[0].request_bytes == 0)
        raw.writer.close()


async def test_half_frames_of_many_are_bounded_together() -> None:
    async with serving(RemotingLimits(held_bytes=8 << 20)) as running:
        raws = [await Raw.to(running) for _ in range(4)]
        for raw in raws:
            raw.writer.write(struct.pack(">II", 16 << 20, 2) + bytes(3 << 20))
        await until(lambda: running.server.told.misbehaved == 2)
        await until(lambda: len(running.served.ended) == 2)  # whoever keeps something for a client hears of it
        assert len(running.server.connections) == 2
        for raw in raws:
            raw.writer.close()


async def test_connections_over_the_limit_are_closed_at_once() -> None:
    async with serving(RemotingLimits(connections=2)) as running:
        first, second = await Raw.to(running), await Raw.to(running)
        third = Raw(*await asyncio.open_connection("127.0.0.1", running.port))
        assert await third.ended()
        assert running.server.told.turned_away == 1
        first.writer.close()
        await until(lambda: len(running.server.connections) == 1)
        for raw in (second, await Raw.to(running)):
            raw.writer.close()


async def test_many_idle_connections_leave_the_server_alone() -> None:
    async with serving() as running:
        raws = [await Raw.to(running) for _ in range(300)]
        for raw in raws:
            raw.writer.write(codec.encode(Command(AT_ONCE))[:9])
        client = running.client()
        for _ in range(20):
            assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        await client.close()
        for raw in raws:
            raw.writer.close()


async def test_plain_and_tls_on_one_port(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command")
    authority = Authority(tmp_path, "us")
    signed = authority.issue("server")
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(signed.certificate, signed.key)

    async def context() -> ssl.SSLContext:
        return inside

    outside = trusting_context(authority.certificate)
    async with serving(tls=context) as running:
        secret, plain = running.client(tls=outside), running.client()
        for client in (secret, plain):
            assert (await client.ask(Command(ECHO, body=bytes(200_000)), PATIENCE)).body == bytes(200_000)
        assert sorted(one.tls for one in running.served.connections) == [False, True]
        for client in (secret, plain):
            await client.close()
    async with serving(tls=context, only_tls=True) as running:
        assert (await running.client(tls=outside).ask(Command(ECHO), PATIENCE)).code == 0
        with pytest.raises(PeerGone):
            await running.client().ask(Command(ECHO), PATIENCE)
        assert len(running.served.connections) == 1
    async with serving() as running:
        with pytest.raises(PeerGone):
            await running.client(tls=outside).ask(Command(ECHO), PATIENCE)


async def test_a_client_dials_again_when_its_connection_is_lost() -> None:
    async with serving() as running:
        client = running.client()
        assert not client.connected
        answers = await asyncio.gather(*(client.ask(Command(ECHO), PATIENCE) for _ in range(5)))
        assert {answer.code for answer in answers} == {0}
        assert len(running.served.connections) == 1
        running.served.connections[0].abort("for the test")
        await until(lambda: not client.connected)
        assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        assert len(running.served.connections) == 2
        await client.close()


async def test_nobody_there_is_told() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        client = RemotingClient(f"127.0.0.1:{bound.getsockname()[1]}")
        with pytest.raises(PeerGone, match="cannot be reached"):
            await client.ask(Command(ECHO), PATIENCE)
    with pytest.raises(ValueError, match="host:port"):
        RemotingClient("nowhere")


async def test_what_cannot_be_written_is_told_to_who_asks() -> None:
    async with serving() as running:
        client = running.client()
        with pytest.raises(NotEncodable):
            await client.ask(Command(200050, serialization=Serialization.ROCKETMQ), PATIENCE)
        assert (await client.ask(Command(ECHO), PATIENCE)).code == 0
        await client.close()


async def test_stopping_lets_go_what_is_worked_at_within_the_grace() -> None:
    async with serving() as running:
        client = running.client()
        held = asyncio.ensure_future(client.ask(Command(HOLD), PATIENCE))
        await until(lambda: running.served.connections and running.served.connections[0].request_bytes)
        asyncio.get_running_loop().call_later(0.05, running.served.let_go.set)
        await running.server.stop(PATIENCE)
        assert (await held).code == 19
        with pytest.raises(PeerGone):
            await client.ask(Command(ECHO), PATIENCE)


def test_a_code_has_one_handler() -> None:
    handlers = Handlers({1: lambda _, request: request.answer()})
    with pytest.raises(ValueError, match="1 has a handler"):
        handlers.add({1: lambda _, request: request.answer()})
    assert handlers.codes == {1}


async def test_a_connection_with_thousands_of_frames_holds_up_no_other() -> None:
    """By turns, not by time: what a client asks behind another's flood is answered in the middle of it."""
    async with serving(RemotingLimits(turn_seconds=0.0)) as running:
        flood, other = await Raw.to(running), await Raw.to(running)
        flood.writer.write(b"".join(codec.encode(Command(AT_ONCE, 1_000 + at)) for at in range(3_000)))
        other.writer.write(b"".join(codec.encode(Command(AT_ONCE, 10 + at)) for at in range(5)))
        assert [one.opaque for one in await flood.responses(3_000)] == list(range(1_000, 4_000))
        assert [one.opaque for one in await other.responses(5)] == list(range(10, 15))
        handled = running.served.at_once_seen
        assert sorted(handled)[-3_000:] == list(range(1_000, 4_000))
        assert handled.index(14) < handled.index(1_200)
        flood.writer.close()
        other.writer.close()


async def test_frames_that_wait_for_their_turn_are_handled_before_the_connection_ends() -> None:
    """One-way requests, whose sender is gone before they are all handled; and what follows them is no frame."""
    for last in (b"", b"\xff" * 8):
        async with serving(RemotingLimits(turn_seconds=0.0)) as running:
            raw = await Raw.to(running)
            sent = [Command(AT_ONCE, 10 + at, flag=ONE_WAY) for at in range(2_000)]
            raw.writer.write(b"".join(map(codec.encode, sent)) + last)
            raw.writer.write_eof()
            assert await raw.ended()
            assert running.served.at_once_seen[1:] == list(range(10, 2_010))
            assert running.server.told.misbehaved == bool(last)


async def test_frames_of_a_connection_that_is_lost_are_dropped() -> None:
    async with serving(RemotingLimits(turn_seconds=0.0)) as running:
        raw = await Raw.to(running)
        served = running.served
        raw.writer.write(b"".join(codec.encode(Command(AT_ONCE, 10 + at)) for at in range(2_000)))
        while len(served.at_once_seen) <= 10:
            await asyncio.sleep(0)  # a turn, in which one frame is handled
        served.connections[0].abort("the test wants it")
        await until(lambda: served.ended)
        handled = len(served.at_once_seen)
        await asyncio.sleep(0.05)
        assert len(served.at_once_seen) == handled < 2_000
        raw.writer.close()


async def test_a_lane_has_what_comes_first_and_frames_in_pieces_come_in_order() -> None:
    """Whatever the pieces, each frame is answered once, and none before those that came before it."""
    async with serving() as running:
        frames = [codec.encode(Command(AT_ONCE, number, body=bytes(number % 50))) for number in range(60)]
        seen: list[int] = []
        came: list[int] = []

        def lane(connection: RemotingConnection, data: bytes) -> int:
            """Takes even frames, until it meets an odd one."""
            at = 0
            for one in RemotingFrameReader().receive(data):
                command = codec.decode(one)
                if command.opaque % 2:
                    break
                came.append(command.opaque)
                seen.append(command.opaque)
                connection.send(command.answer())
                at += 8 + len(one.header) + len(one.body)
            return at

        def odd(_: RemotingConnection, request: Command) -> Command:
            seen.append(request.opaque)
            return request.answer()

        running.server._handlers.lane = lane
        running.server._handlers._table[AT_ONCE] = odd
        raw = await Raw.to(running)
        seen.clear()
        data, at = b"".join(frames), 0
        for size in (1, 6, 1, 300, 3, 5, 17, 400, 8, 2, 1000, 4, 4, 90) * 3:
            raw.writer.write(data[at : at + size])
            await raw.writer.drain()
            at += size
            await asyncio.sleep(0)
        raw.writer.write(data[at:])
        answers = await raw.responses(len(frames))
        assert [one.opaque for one in answers] == seen == list(range(60))
        assert came, "some came whole"
        raw.writer.write(struct.pack(">II", 1 << 30, 0))
        assert await raw.ended()


async def test_a_lane_gets_nothing_after_a_connection_is_closed() -> None:
    async with serving() as running:
        given: list[bytes] = []

        def lane(connection: RemotingConnection, data: bytes) -> int:
            given.append(data)
            return 0

        def close(connection: RemotingConnection, request: Command) -> None:
            connection.close("a test")

        running.server._handlers._table[AT_ONCE] = close
        running.server._handlers.lane = lane
        raw = Raw(*await asyncio.open_connection("127.0.0.1", running.port))
        frame = codec.encode(Command(AT_ONCE))
        raw.writer.write(frame[:-1])
        await until(lambda: running.server.connections)
        (connection,) = running.server.connections
        await until(lambda: connection.held)
        connection.data_received(frame[-1:] + frame)  # the rest of the first, which closes, and one more
        assert given == [frame[:-1]]
        assert await raw.ended()


async def test_what_is_closed_before_its_handler_begins_leaves_nothing_behind() -> None:
    """A task that is cancelled before its first step never comes to the coroutine that it should wait for."""

    async def answer(request: Command) -> Command:
        raise AssertionError(request)

    request = Command(ECHO)
    outcome = answer(request)
    handlers = Handlers({ECHO: lambda _connection, _request: outcome})
    async with serving() as running:
        raw = await Raw.to(running)
        handlers.handle(running.served.connections[0], request, 10)
        await handlers.close()
        raw.writer.close()
    assert inspect.getcoroutinestate(outcome) == inspect.CORO_CLOSED
