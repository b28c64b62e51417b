"""ServiceHost on real sockets: health, reflection, errors, metrics, TLS, graceful stop."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry, Counter

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.identity.tls import UnreadableCertificate
from tandemmq.common.metrics.metrics_endpoint import MetricsPortTaken
from tandemmq.common.serving.guard import STATUS_KEY
from tandemmq.common.serving.health import NOT_SERVING, SERVING
from tandemmq.common.serving.server import AddressTaken, ServiceHost
from tandemmq.common.settings.server_settings import GrpcTransport, ServerSettings
from tandemmq.common.settings.settings import BadSetting

SERVICE = "tandemmq.test.Echo"


class DiskFull(TandemError):
    kind = Kind.DISK_FULL
    remedy = "free some space"


class Echo:
    """Answers bytes with the same bytes, or with the failure that the bytes name."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.finished: list[str] = []

    async def say(self, request: bytes, context: Any) -> bytes:
        if request == b"full":
            raise DiskFull("no space left")
        if request == b"bug":
            raise KeyError("secret/path")
        if request == b"abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, "said so")
        if request == b"wait":
            await self.released.wait()
        self.finished.append(request.decode())
        return request

    async def collect(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        return b"".join([request async for request in requests])

    async def repeat(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield request
        yield request
        raise DiskFull("in the middle")

    async def converse(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()

    async def write_twice(self, request: bytes, context: Any) -> None:
        await context.write(request)
        await context.write(request)


def add_echo(echo: Echo, server: Any) -> None:
    handlers: dict[str, Any] = {
        "Say": grpc.unary_unary_rpc_method_handler(echo.say),
        "Collect": grpc.stream_unary_rpc_method_handler(echo.collect),
        "Repeat": grpc.unary_stream_rpc_method_handler(echo.repeat),
        "Converse": grpc.stream_stream_rpc_method_handler(echo.converse),
        "WriteTwice": grpc.unary_stream_rpc_method_handler(echo.write_twice),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_registered_method_handlers(SERVICE, handlers)


@pytest.fixture(params=list(GrpcTransport), autouse=True)
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GrpcTransport:
    """What serves: every test runs on both."""
    monkeypatch.setitem(CHOSEN, "grpc_transport", request.param)
    return GrpcTransport(request.param)


CHOSEN: dict[str, Any] = {}
"""Settings of every host."""


def add_unused_methods(echo: Echo, server: Any) -> None:
    """Of a service that nobody calls."""
    handlers: dict[str, Any] = {f"Say{number}": grpc.unary_unary_rpc_method_handler(echo.say) for number in range(60)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{SERVICE}.Unused", handlers),))
    server.add_registered_method_handlers(f"{SERVICE}.Unused", handlers)


@asynccontextmanager
async def hosted(*more: Any, **settings: Any) -> AsyncIterator[tuple[ServiceHost, Echo, grpc.aio.Channel]]:
    echo = Echo()
    host = ServiceHost(ServerSettings(**CHOSEN, **settings))
    for add in (add_echo, *more):
        host.add(add, echo)
    await host.start()
    await host.serving()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
        yield host, echo, channel
    await host.stop()


def method(kind: Any, name: str) -> Any:
    return kind(f"/{SERVICE}/{name}")


def say(channel: grpc.aio.Channel) -> Any:
    return method(channel.unary_unary, "Say")


async def test_what_comes_to_life_later_stays_in_the_collector_s_sight() -> None:
    """Health comes and goes; frozen each time, all that is alive then would be kept for good."""
    async with hosted() as (host, _, _channel):
        frozen = gc.get_freeze_count()
        later = [[number] for number in range(100_000)]
        await host.health.not_serving(SERVICE)
        await host.serving()
        assert gc.get_freeze_count() < frozen + len(later)


async def test_all_four_kinds_of_calls_pass_the_guard() -> None:
    async def letters() -> AsyncIterator[bytes]:
        for letter in (b"a", b"b"):
            yield letter

    async with hosted() as (host, _, channel):
        assert await say(channel)(b"hello") == b"hello"
        assert await method(channel.stream_unary, "Collect")(letters()) == b"ab"
        assert [x async for x in method(channel.stream_stream, "Converse")(letters())] == [b"A", b"B"]
        assert [x async for x in method(channel.unary_stream, "WriteTwice")(b"x")] == [b"x", b"x"]
        assert host.guard.in_flight == 0


async def test_a_call_takes_the_same_steps_however_many_methods_the_port_has() -> None:
    async def steps(*more: Any) -> int:
        async with hosted(*more) as (_, _echo, channel):
            ask = say(channel)
            await ask(b"first")
            called: list[str] = []
            before = sys.getprofile()
            sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
            try:
                for _ in range(20):
                    await ask(b"again")
            finally:
                sys.setprofile(before)
            return len(called)

    alone = await steps()
    assert await steps(add_unused_methods) < 1.25 * alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("request_bytes", "code", "details", "status"),
    [
        (b"full", grpc.StatusCode.RESOURCE_EXHAUSTED, "no space left (free some space)", "SERVICE_NOT_AVAILABLE"),
        (b"bug", grpc.StatusCode.INTERNAL, "internal error", "UNKNOWN_ERROR"),
        (b"abort", grpc.StatusCode.NOT_FOUND, "said so", None),
    ],
)
async def test_errors_become_statuses(
    request_bytes: bytes, code: grpc.StatusCode, details: str, status: str | None
) -> None:
    async with hosted() as (_, _, channel):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await say(channel)(request_bytes)
        assert caught.value.code() is code
        assert str(caught.value.details()).startswith(details)
        assert "secret" not in str(caught.value.details())
        trailing = dict(caught.value.trailing_metadata() or ())
        assert trailing.get(STATUS_KEY) == status


async def test_an_error_in_the_middle_of_a_stream_keeps_what_was_sent() -> None:
    async with hosted() as (_, _, channel):
        call = method(channel.unary_stream, "Repeat")(b"x")
        assert [await call.read(), await call.read()] == [b"x", b"x"]
        with pytest.raises(grpc.aio.AioRpcError, match="in the middle"):
            await call.read()


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)


async def test_health_is_not_serving_until_told() -> None:
    host = ServiceHost(ServerSettings(**CHOSEN))
    host.add(add_echo, Echo())
    await host.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
        assert [await health_of(channel, name) for name in ("", SERVICE)] == [NOT_SERVING, NOT_SERVING]
        await host.serving()
        assert [await health_of(channel, name) for name in ("", SERVICE)] == [SERVING, SERVING]
        await host.health.not_serving(SERVICE)
        assert [await health_of(channel, name) for name in ("", SERVICE)] == [SERVING, NOT_SERVING]
    await host.stop()


async def test_reflection_lists_the_services() -> None:
    async def ask() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")

    async with hosted() as (_, _, channel):
        stub = cast(Any, reflection_pb2_grpc.ServerReflectionStub)(channel)
        answers = [answer async for answer in stub.ServerReflectionInfo(ask())]
        names = {service.name for service in answers[0].list_services_response.service}
        assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_stopping_lets_calls_finish_and_closes_in_reverse_order() -> None:
    closed = []
    async with hosted(shutdown_grace_ms=60_000) as (host, echo, channel):
        host.on_drain(echo.released.set)
        host.on_close(lambda: closed.append("first added"))
        host.on_close(lambda: closed.append("last added"))
        watch: Any = health_pb2_grpc.HealthStub(channel)
        watching = watch.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watching.read()).status == SERVING
        waiting = asyncio.ensure_future(say(channel)(b"wait"))
        while not host.guard.in_flight:
            await asyncio.sleep(0.01)
        begun_at = asyncio.get_running_loop().time()
        await host.stop()
        assert await waiting == b"wait"
        assert (await watching.read()).status == NOT_SERVING
        assert await watching.read() is grpc.aio.EOF
        assert asyncio.get_running_loop().time() - begun_at < 30, "an open health watch must not hold up the stop"
        assert closed == ["last added", "first added"]
        closed.clear()


async def test_calls_beyond_the_grace_are_cancelled() -> None:
    async with hosted(shutdown_grace_ms=100) as (host, echo, channel):
        waiting = asyncio.ensure_future(say(channel)(b"wait"))
        while not host.guard.in_flight:
            await asyncio.sleep(0.01)
        await host.stop()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await waiting
        assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        assert echo.finished == []


async def test_metrics_are_served_over_http_from_the_own_registry() -> None:
    registry = CollectorRegistry()
    Counter("tandem_test", "A counter.", registry=registry).inc(3)
    host = ServiceHost(ServerSettings(**CHOSEN), registry)
    await host.start()
    url = f"http://127.0.0.1:{host.metrics_port}/metrics"
    body = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=30).read().decode())
    assert "tandem_test_total 3.0" in body
    assert "python_gc" not in body
    other = ServiceHost(ServerSettings(**CHOSEN, metrics_port=host.metrics_port), registry)
    with pytest.raises(MetricsPortTaken, match=str(host.metrics_port)):
        await other.start()
    await host.stop()


async def test_a_taken_port_is_a_clear_error() -> None:
    async with hosted() as (host, _, _):
        other = ServiceHost(ServerSettings(**CHOSEN, grpc_port=host.port))
        with pytest.raises(AddressTaken, match=f"127.0.0.1:{host.port}"):
            await other.start()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A certificate for localhost that signs itself, made by openssl."""
    directory = tmp_path_factory.mktemp("tls")
    key, certificate = directory / "key.pem", directory / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command to make certificates with")
    return {"key": key, "certificate": certificate}


@pytest.mark.parametrize("mutual", [False, True])
async def test_tls_and_mtls(certificates: dict[str, Path], mutual: bool) -> None:
    key, certificate = certificates["key"], certificates["certificate"]
    host = ServiceHost(
        ServerSettings(
            **CHOSEN,
            tls_server_cert_path=certificate,
            tls_server_key_path=key,
            tls_server_trust_cert_path=certificate if mutual else None,
        )
    )
    host.add(add_echo, Echo())
    await host.start()
    root = certificate.read_bytes()
    known = grpc.ssl_channel_credentials(root, key.read_bytes(), root)
    stranger = grpc.ssl_channel_credentials(root)
    for credentials, welcome in ((known, True), (stranger, not mutual)):
        async with grpc.aio.secure_channel(f"localhost:{host.port}", credentials) as channel:
            if welcome:
                assert await say(channel)(b"private", timeout=60) == b"private"
            else:
                with pytest.raises(grpc.aio.AioRpcError):
                    await say(channel)(b"private", timeout=60)
    await host.stop()


def test_half_a_tls_setting_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="certificate and key together"):
        ServerSettings(tls_server_cert_path=tmp_path / "cert.pem")
    with pytest.raises(BadSetting, match="tlsServerTrustCertPath is set"):
        ServerSettings(tls_server_trust_cert_path=tmp_path / "ca.pem")


async def test_unreadable_certificate_names_setting_and_path(tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"
    host = ServiceHost(ServerSettings(**CHOSEN, tls_server_cert_path=missing, tls_server_key_path=missing))
    with pytest.raises(UnreadableCertificate, match="none.pem: No such file"):
        await host.start()


PROGRAM = """
import asyncio
from tandemmq.common.log_output import configure_logging
from tandemmq.common.processes.process import prepare_process
from tandemmq.common.serving.server import ServiceHost, run
from tandemmq.common.settings.server_settings import ServerSettings

async def main():
    host = ServiceHost(ServerSettings.load())
    host.on_close(lambda: print("closed", flush=True))
    await host.start()
    print(host.port, flush=True)
    await host.run_until_stopped()

prepare_process()
configure_logging()
run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_whole_process_stops_cleanly_on_a_signal(number: signal.Signals, transport: GrpcTransport) -> None:
    environment = {**os.environ, "TANDEM_SHUTDOWN_GRACE_MS": "500", "TANDEM_GRPC_TRANSPORT": transport.value}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
            assert answer.status in (SERVING, NOT_SERVING)
            while stub.Check(health_pb2.HealthCheckRequest(), timeout=60).status != SERVING:
                pass
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output == "closed\n"
    events = [json.loads(line) for line in errors.splitlines()]
    assert [event["event"] for event in events] == ["listening", "serving", "stopping", "stopped"]
    assert events[2]["reason"] == number.name
