"""Our channel: connections and their ends, TLS, sizes, calls without tasks; against grpcio's server and ours."""

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tandemmq.common.grpc_transport import Channel, Duplex, Limits, channel, duplex
from tandemmq.common.identity.tls import trusting_context
from tests.faults.pair_process import free_port
from tests.grpc_probe import Probe, add_probe, make_server, server_tls
from tests.integration.grpc_transport.conftest import Certificates
from tests.integration.grpc_transport.hosting import (
    PATIENCE,
    Hosted,
    everything,
    failure,
    hosted,
    sending,
    until,
    within,
)

ECHO = "/tandemmq.test.Probe/Echo"
CONVERSE = "/tandemmq.test.Probe/Converse"
State = grpc.ChannelConnectivity


@asynccontextmanager
async def ours(transport: str, **options: Any) -> AsyncIterator[tuple[Hosted, Channel]]:
    """A server of either kind, and our channel to it."""
    limits = options.pop("limits", Limits())
    async with hosted(transport, **options) as server, channel(server.target, limits=limits) as made:
        yield server, made


async def conversation(made: Any) -> Duplex[bytes, bytes]:
    """A bidirectional call that is on its connection."""
    call: Any = made.stream_stream(CONVERSE)()
    await within(call.wait_for_connection())
    return duplex(call)


class Heard:
    """What a listener was told."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends: list[tuple[grpc.StatusCode, str]] = []
        self.writables = 0

    def listen(self, link: Duplex[bytes, bytes]) -> None:
        link.listen(self.messages.append, on_end=self._end, on_writable=self._writable)

    def _end(self, code: grpc.StatusCode, details: str) -> None:
        self.ends.append((code, details))

    def _writable(self) -> None:
        self.writables += 1


# -- calls without tasks ----------------------------------------------------------------------------------------------


async def test_messages_are_written_and_heard_without_waiting(transport: str) -> None:
    async with ours(transport) as (_, made):
        call: Any = made.stream_stream(CONVERSE)()
        link, heard = duplex(call), Heard()
        heard.listen(link)
        assert not link.write_now(b"too early"), "there is no connection yet"
        await within(until(lambda: heard.writables == 1))
        assert all(link.write_now(b"%d-a" % at) for at in range(1000))
        await within(until(lambda: len(heard.messages) == 1000))
        assert heard.messages == [b"%d-A" % at for at in range(1000)]
        await call.done_writing()
        await within(until(lambda: bool(heard.ends)))
        assert heard.ends == [(grpc.StatusCode.OK, "")]
        assert link.done()
        with pytest.raises(asyncio.InvalidStateError):
            link.write_now(b"too late")


async def test_a_listener_answers_in_the_turn_that_brought_the_message(transport: str) -> None:
    async with ours(transport) as (_, made):
        link = await conversation(made)
        left = 500
        done = asyncio.Event()

        def again(message: bytes) -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()
            elif not link.write_now(message):
                raise AssertionError("there was room")

        link.listen(again)
        assert link.write_now(b"x")
        link.flush()
        await within(done.wait())
        assert link.cancel()


async def test_writing_stops_at_the_window_and_goes_on(transport: str) -> None:
    go_on = asyncio.Event()
    got: list[int] = []

    async def slow(requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        await go_on.wait()
        got.extend([len(request) async for request in requests])
        yield b"all"

    async with ours(transport, both=slow) as (server, made):
        call = server.own("both", made)()
        await within(call.wait_for_connection())
        link, heard = duplex(call), Heard()
        heard.listen(link)
        written = 0
        async with asyncio.timeout(PATIENCE):
            while link.write_now(bytes(100_000)) or heard.writables:
                written += 1
                heard.writables = 0
                await asyncio.sleep(0)
                assert written < 2000
        assert not heard.writables
        go_on.set()
        await within(until(lambda: heard.writables == 1))
        assert link.write_now(b"more")
        await call.done_writing()
        await within(until(lambda: bool(heard.ends)))
        assert (sum(got), heard.messages) == (written * 100_000 + 4, [b"all"])


async def test_a_listener_that_raises_ends_its_call_only(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    async with ours(transport) as (server, made):
        link, other, heard = await conversation(made), await conversation(made), Heard()
        ends: list[grpc.StatusCode] = []
        link.listen(lambda message: [][len(message)], on_end=lambda code, _details: ends.append(code))
        heard.listen(other)
        assert link.write_now(b"x")
        await within(until(lambda: ends == [grpc.StatusCode.INTERNAL]))
        assert "could not be taken" in caplog.text
        with pytest.raises(grpc.aio.AioRpcError):
            link.write_now(b"x")
        assert other.write_now(b"x")
        await within(until(lambda: heard.messages == [b"X"]))
        other.cancel()
        await within(until(lambda: server.probe.active == 0))


async def test_what_came_before_the_listener_is_heard_first(transport: str) -> None:
    async with ours(transport) as (_, made):
        call: Any = made.stream_stream(CONVERSE)()
        for at in range(3):
            await call.write(b"%d" % at)
        await within(until(lambda: len(call._queue) == 3))
        heard = Heard()
        heard.listen(duplex(call))
        assert heard.messages == [b"0", b"1", b"2"]
        with pytest.raises(grpc.aio.UsageError):
            await call.read()
        call.cancel()


async def test_a_link_hears_that_its_server_is_gone(transport: str) -> None:
    async with ours(transport) as (server, made):
        link, heard = await conversation(made), Heard()
        heard.listen(link)
        await server.server.stop(None)
        await within(until(lambda: bool(heard.ends)))
        assert heard.ends[0][0] in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


async def test_a_call_of_grpcio_is_no_link() -> None:
    async with hosted("fast") as server:
        call = server.method("Converse")()
        with pytest.raises(TypeError, match="grpc_transport"):
            duplex(call)
        call.cancel()


# -- connections ------------------------------------------------------------------------------------------------------


async def test_generated_stubs_take_it(transport: str) -> None:
    def prepare(server: grpc.aio.Server) -> None:
        health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)

    async with ours(transport, prepare=prepare) as (_, made):
        stub: Any = health_pb2_grpc.HealthStub(made)
        answer = await within(stub.Check(health_pb2.HealthCheckRequest(), timeout=60))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError, match="NOT_FOUND"):
            await within(stub.Check(health_pb2.HealthCheckRequest(service="other")))
        watching: Any = stub.Watch(health_pb2.HealthCheckRequest())
        async for state in watching:
            assert state.status == health_pb2.HealthCheckResponse.SERVING
            break
        watching.cancel()


async def test_nothing_is_connected_before_the_first_call(transport: str) -> None:
    async with ours(transport) as (_, made):
        assert made.get_state() is State.IDLE
        assert await within(made.unary_unary(ECHO)(b"x")) == b"x"
        assert made.get_state() is State.READY
        await made.close()
        assert made.get_state() is State.SHUTDOWN
        with pytest.raises(grpc.aio.UsageError):
            made.unary_unary(ECHO)(b"x")


async def test_the_next_call_connects_again(transport: str) -> None:
    address = f"127.0.0.1:{free_port()}"  # nobody else's in between
    async with hosted(transport, address=address) as first:
        made = channel(first.target)
        waiting = made.unary_unary("/tandemmq.test.Probe/Wait")(b"x")
        await within(until(lambda: first.probe.active == 1))
    assert (await failure(waiting)).code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    error = await failure(made.unary_unary(ECHO)(b"x", timeout=30))
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "failed to connect" in str(error.details())
    patient = made.unary_unary(ECHO)(b"x", timeout=30, wait_for_ready=True)
    await asyncio.sleep(0.2)
    assert not patient.done()
    async with hosted(transport, address=address):
        assert await within(patient) == b"x"
        assert await within(made.unary_unary(ECHO)(b"y")) == b"y"
    await made.close()


async def test_a_server_that_drains_loses_no_call() -> None:
    """Of ours: grpcio's cancels calls that come while it stops."""
    transport = "fast"
    address = f"127.0.0.1:{free_port()}"
    async with hosted(transport, address=address) as first:
        made = channel(first.target)
        calls = [made.unary_unary(ECHO)(b"%d" % at) for at in range(100)]
        await within(calls[0])
        running = [made.unary_unary(ECHO)(b"%d" % at) for at in range(100)]
        stopping = asyncio.ensure_future(first.server.stop(PATIENCE))
        assert [await within(call) for call in (*calls, *running)] == [b"%d" % at for at in range(100)] * 2
        await within(stopping)
    async with hosted(transport, address=address):
        assert await within(made.unary_unary(ECHO)(b"x")) == b"x"
    await made.close()


async def test_nobody_listens() -> None:
    async with channel("127.0.0.1:1") as made:
        for call in (made.unary_unary(ECHO)(b"x"), made.unary_stream(ECHO)(b"x"), made.stream_stream(ECHO)()):
            assert (await failure(call)).code() is grpc.StatusCode.UNAVAILABLE
        assert made.get_state() is State.TRANSIENT_FAILURE
        impatient = made.unary_unary(ECHO)(b"x", timeout=0.2, wait_for_ready=True)
        assert (await failure(impatient)).code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_host_that_does_not_exist() -> None:
    async with channel("does-not-exist.invalid:1") as made:
        assert (await failure(made.unary_unary(ECHO)(b"x"))).code() is grpc.StatusCode.UNAVAILABLE


async def test_closing_cancels_calls_or_waits_for_them(transport: str) -> None:
    async with hosted(transport) as server:
        made = channel(server.target)
        waiting = made.unary_unary("/tandemmq.test.Probe/Wait")(b"x")
        unconnected = channel("127.0.0.1:1").unary_unary(ECHO)(b"x", wait_for_ready=True)
        await within(until(lambda: server.probe.active == 1))
        await within(made.close(0.1))
        assert await waiting.code() is grpc.StatusCode.CANCELLED
        await within(unconnected.method.channel.close())
        assert unconnected.cancelled()
        await within(until(lambda: server.probe.active == 0))
        made = channel(server.target)
        answering = made.unary_unary(ECHO)(b"x")
        await within(made.close(PATIENCE))
        assert await answering == b"x"


async def test_channel_ready_waits_for_a_server(transport: str, tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'socket'}"
    made = channel(address)
    ready = asyncio.ensure_future(made.channel_ready())
    await asyncio.sleep(0.1)
    assert not ready.done()
    async with hosted(transport, address=address):
        await within(ready)
        assert await within(made.unary_unary(ECHO)(b"x")) == b"x"
    await within(made.wait_for_state_change(State.READY))
    await made.close()


@pytest.mark.parametrize("address", ["[::1]:0", "unix"])
async def test_other_kinds_of_sockets(transport: str, address: str, tmp_path: Path) -> None:
    address = f"unix:{tmp_path / 'socket'}" if address == "unix" else address
    async with ours(transport, address=address) as (_, made):
        assert await within(made.unary_unary(ECHO)(b"x")) == b"x"


async def test_asyncios_own_loop_will_do() -> None:
    """The tests run on uvloop."""

    async def talk() -> bytes:
        async with ours("fast") as (_, made):
            return bytes(await within(made.unary_unary(ECHO)(b"x" * 1_000_000)))

    assert len(await asyncio.to_thread(asyncio.run, talk())) == 1_000_000


# -- sizes ------------------------------------------------------------------------------------------------------------


async def test_large_messages_both_ways(transport: str) -> None:
    options = {"server_options": {"receive_limit": 32 << 20}, "limits": Limits(max_receive_message_length=32 << 20)}
    large = bytes(range(256)) * (1 << 16)
    async with ours(transport, **options) as (_, made):
        assert await within(made.unary_unary(ECHO)(large)) == large
        assert (
            len(await within(made.stream_unary("/tandemmq.test.Probe/Collect")(sending(large, b"x")))) == len(large) + 2
        )
        call: Any = made.stream_stream(CONVERSE)()
        await call.write(b"a" * (16 << 20))
        assert await within(call.read()) == b"A" * (16 << 20)
        call.cancel()


async def test_messages_over_our_limits(transport: str) -> None:
    limits = Limits(max_receive_message_length=1000, max_send_message_length=2000)
    async with ours(transport, limits=limits) as (server, made):
        for size in (1001, 2001):
            error = await failure(made.unary_unary(ECHO)(bytes(size)))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        call: Any = made.stream_stream(CONVERSE)()
        with pytest.raises(grpc.aio.AioRpcError):
            await call.write(bytes(2001))
        await call.write(bytes(10))
        assert await within(call.read()) == bytes(10)
        call.cancel()
        await within(until(lambda: server.probe.active == 0))


async def test_many_calls_at_once(transport: str) -> None:
    async with ours(transport) as (_, made):
        calls = [made.unary_unary(ECHO)(b"%d" % at) for at in range(500)]
        assert [await within(call) for call in calls] == [b"%d" % at for at in range(500)]


async def test_a_broken_iterator_cancels_its_call(transport: str) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"a"
        raise ValueError("no more")

    async with ours(transport) as (server, made):
        call = made.stream_unary("/tandemmq.test.Probe/Collect")(broken())
        with pytest.raises(asyncio.CancelledError):
            await within(call)
        assert await call.code() is grpc.StatusCode.CANCELLED
        await within(until(lambda: server.probe.active == 0))


async def test_who_stops_waiting_cancels_the_call(transport: str) -> None:
    async with ours(transport) as (server, made):
        for kind in ("unary", "stream"):
            call: Any
            if kind == "unary":
                call = made.unary_unary("/tandemmq.test.Probe/Wait")(b"")
                waiting = asyncio.ensure_future(within(call))
            else:
                call = made.stream_stream(CONVERSE)()
                waiting = asyncio.ensure_future(call.read())
            await within(until(lambda: server.probe.active == 1))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert call.cancelled()
            await within(until(lambda: server.probe.active == 0))


async def test_nothing_stays_of_calls_that_ended(transport: str) -> None:
    async with ours(transport) as (_, made):
        for _ in range(3):
            await within(made.unary_unary(ECHO)(b"x", timeout=60))
            await within(everything(made.unary_stream("/tandemmq.test.Probe/Repeat")(b"10:100000")))
            made.unary_unary("/tandemmq.test.Probe/Wait")(b"").cancel()
            await failure(made.unary_unary("/tandemmq.test.Probe/Wait")(b"", timeout=0.01))
        (protocol,) = made.protocols
        connection = protocol.connection
        await within(until(lambda: not connection.streams))
        assert (connection.held, connection.sender.pending_bytes, made.waiting, protocol.writers) == (0, 0, {}, {})


async def test_a_channel_that_was_closed_is_garbage(transport: str) -> None:
    async with hosted(transport) as server:
        made = channel(server.target)
        assert await within(made.unary_unary(ECHO)(b"x", timeout=60)) == b"x"
        link = await conversation(made)
        link.listen(lambda _message: None)
        waiting = made.unary_unary("/tandemmq.test.Probe/Wait")(b"", timeout=1000)
        await made.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gone = [weakref.ref(thing) for thing in (made, link, waiting)]
        del made, link, waiting
        async with asyncio.timeout(PATIENCE):
            while [ref for ref in gone if ref() is not None]:  # the socket's last callbacks have their turns first
                await asyncio.sleep(0.01)
                gc.collect()


async def test_answers_that_cannot_be_read(transport: str) -> None:
    def unreadable(_message: bytes) -> Any:
        raise KeyError("what is this?")

    async with ours(transport) as (server, made):
        error = await failure(made.unary_unary(ECHO, None, unreadable)(b"x"))
        assert error.code() is grpc.StatusCode.INTERNAL
        call = made.unary_stream("/tandemmq.test.Probe/Drip", None, unreadable)(b"x")
        assert (await failure(call)).code() is grpc.StatusCode.INTERNAL
        await within(until(lambda: server.probe.active == 0))
        with pytest.raises(KeyError):
            made.unary_unary(ECHO, unreadable)(b"x", timeout=60)


# -- TLS --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def secured(transport: str, certificates: Certificates, mutual: bool = False) -> AsyncIterator[int]:
    server = make_server(transport)
    add_probe(Probe(), server)
    trust = certificates.authority if mutual else None
    tls = server_tls(transport, certificates.server, certificates.server_key, trust)
    port = server.add_secure_port("127.0.0.1:0", tls)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def trusting(certificates: Certificates) -> ssl.SSLContext:
    return trusting_context(certificates.authority)


async def test_tls(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as port:
        for host, name in (("localhost", None), ("127.0.0.1", None), ("127.0.0.1", "localhost")):
            async with channel(f"{host}:{port}", tls=trusting(certificates), server_name=name) as made:
                large = b"x" * (3 << 20)
                assert await within(made.unary_unary(ECHO)(large)) == large
                assert await within(everything(made.stream_stream(CONVERSE)(sending(b"a", b"b")))) == [b"A", b"B"]


async def test_tls_to_whom_it_does_not_trust(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as port:
        for tls, name in (
            (ssl.create_default_context(), None),
            (trusting(certificates), "else.where"),
        ):
            async with channel(f"localhost:{port}", tls=tls, server_name=name) as made:
                error = await failure(made.unary_unary(ECHO)(b"x"))
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                assert "certificate" in str(error.details()).lower()


async def test_mutual_tls(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates, mutual=True) as port:
        known = trusting(certificates)
        known.load_cert_chain(certificates.client, certificates.client_key)
        async with channel(f"localhost:{port}", tls=known) as made:
            assert await within(made.unary_unary(ECHO)(b"x")) == b"x"
        async with channel(f"localhost:{port}", tls=trusting(certificates)) as made:
            assert (await failure(made.unary_unary(ECHO)(b"x"))).code() is grpc.StatusCode.UNAVAILABLE


async def test_tls_and_plain_text_do_not_mix(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as port, channel(f"localhost:{port}") as made:
        assert (await failure(made.unary_unary(ECHO)(b"x", timeout=30))).code() is grpc.StatusCode.UNAVAILABLE
    async with hosted(transport) as server, channel(server.target, tls=trusting(certificates)) as made:
        assert (await failure(made.unary_unary(ECHO)(b"x", timeout=30))).code() is grpc.StatusCode.UNAVAILABLE


async def test_a_server_without_http2_in_tls(certificates: Certificates) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server, certificates.server_key)

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(hold, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    async with channel(f"localhost:{port}", tls=trusting(certificates)) as made:
        error = await failure(made.unary_unary(ECHO)(b"x", timeout=30))
        assert (error.code(), "ALPN" in str(error.details())) == (grpc.StatusCode.UNAVAILABLE, True)
    listener.close()


# -- mistakes ---------------------------------------------------------------------------------------------------------


async def test_what_a_channel_does_not_take() -> None:
    async with channel("127.0.0.1:1") as made:
        with pytest.raises(ValueError, match="is no method"):
            made.unary_unary("no slash")
        with pytest.raises(ValueError, match="metadata key"):
            made.unary_unary(ECHO)(b"x", metadata=(("Upper", "x"),))
        with pytest.raises(TypeError, match="takes bytes"):
            made.unary_unary(ECHO)("text")
        with pytest.raises(grpc.aio.UsageError, match="compression"):
            made.unary_unary(ECHO)(b"x", compression=grpc.Compression.Gzip)
    with pytest.raises(ValueError, match="is no address"):
        channel("nowhere")


async def test_a_dial_that_is_cancelled_at_any_moment_leaves_a_channel_that_can_be_closed() -> None:
    """uvloop closes the transport of such a dial itself, and tells the protocol nothing."""
    async with hosted("fast") as server:
        for step in range(60):
            made = channel(server.target)
            dialling = asyncio.ensure_future(made.channel_ready())
            for _ in range(step % 12):
                await asyncio.sleep(0)
            dialling.cancel()
            await asyncio.gather(dialling, return_exceptions=True)
            call = asyncio.ensure_future(made.unary_unary(ECHO)(b"x"))
            for _ in range(step // 5):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await within(made.close())
            assert made.get_state() is grpc.ChannelConnectivity.SHUTDOWN
