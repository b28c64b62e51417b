"""Calls through a real server with an accessFile, on both transports: unary, streams, revocation, certificates."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.common.access.errors import MissingRule, PermissionDenied, Unauthenticated
from tandemmq.common.access.needs import Action, Need, publish, subscribe
from tandemmq.common.access.rules import SIGNED_IN, Rule, Rules, ability, about
from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tandemmq.common.identity.credentials import authorization
from tandemmq.common.serving.server import ServiceHost
from tandemmq.common.settings.server_settings import GrpcTransport, ServerSettings
from tests.certificates import Authority

SERVICE = "tandemmq.test.Topics"
HASH = hash_secret("secret", GENERATED)
TEXT = f"""
[users.alice]
secret = "{HASH}"
roles = ["a"]
[users.cert]
certificate = "cert.example"
roles = ["a"]
[users.nobody]
secret = "{HASH}"
[roles.a]
publish = ["a*"]
subscribe = ["a*"]
"""
ALICE = (authorization("alice", "secret"),)
NOBODY = (authorization("nobody", "secret"),)


def _publish(request: bytes) -> tuple[Need]:
    return (publish(request.decode()),)


RULES: Rules = {
    "Say": about(Action.PUBLISH, _publish),
    "Collect": about(Action.PUBLISH, _publish),
    "Repeat": about(Action.SUBSCRIBE, lambda request: (subscribe(request.decode()),)),
    "Converse": about(Action.PUBLISH, _publish),
    "WhoAmI": SIGNED_IN,
    "Manage": ability(Action.MANAGE),
}


class Topics:
    """Requests are names of topics."""

    def __init__(self, host: ServiceHost) -> None:
        self.host = host
        self.seen: list[str] = []
        self.more = asyncio.Event()

    async def say(self, request: bytes, _context: Any) -> bytes:
        self.seen.append(request.decode())
        return request

    async def collect(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        async for request in requests:
            self.seen.append(request.decode())
        return b",".join(map(str.encode, self.seen))

    async def repeat(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield request
        await self.more.wait()
        yield request

    async def converse(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            self.seen.append(request.decode())
            yield request

    async def who_am_i(self, _request: bytes, context: Any) -> bytes:
        await asyncio.sleep(0)
        caller = self.host.guard.caller(context)
        return b"-" if caller is None else caller.name.encode()


def add_topics(topics: Topics, server: Any) -> None:
    handlers: dict[str, Any] = {
        "Say": grpc.unary_unary_rpc_method_handler(topics.say),
        "Collect": grpc.stream_unary_rpc_method_handler(topics.collect),
        "Repeat": grpc.unary_stream_rpc_method_handler(topics.repeat),
        "Converse": grpc.stream_stream_rpc_method_handler(topics.converse),
        "WhoAmI": grpc.unary_unary_rpc_method_handler(topics.who_am_i),
        "Manage": grpc.unary_unary_rpc_method_handler(topics.say),
    }
    server.add_registered_method_handlers(SERVICE, handlers)


@pytest.fixture(params=list(GrpcTransport))
def transport(request: pytest.FixtureRequest) -> GrpcTransport:
    """What serves."""
    return GrpcTransport(request.param)


@pytest.fixture
def access(tmp_path: Path) -> Path:
    """The access file."""
    path = tmp_path / "access.toml"
    path.write_text(TEXT)
    return path


@asynccontextmanager
async def hosted(**settings: Any) -> AsyncIterator[tuple[Topics, grpc.aio.Channel]]:
    host = ServiceHost(ServerSettings(**settings))
    topics = Topics(host)
    host.add(add_topics, topics, RULES)
    await host.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
            yield topics, channel
    finally:
        await host.stop()
    assert host.guard.gate is None or host.guard.gate.callers == {}, "nobody calls any more"


def method(kind: Any, name: str) -> Any:
    return kind(f"/{SERVICE}/{name}")


def unary(channel: grpc.aio.Channel, name: str) -> Any:
    return method(channel.unary_unary, name)


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code()


async def each(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_unary_calls(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (topics, channel):
        say = unary(channel, "Say")
        assert await code_of(say(b"a1")) is grpc.StatusCode.UNAUTHENTICATED
        wrong = (authorization("alice", "wrong"),)
        assert await code_of(say(b"a1", metadata=wrong)) is grpc.StatusCode.UNAUTHENTICATED
        assert await code_of(say(b"a1", metadata=NOBODY)) is grpc.StatusCode.PERMISSION_DENIED
        assert await code_of(say(b"b1", metadata=ALICE)) is grpc.StatusCode.PERMISSION_DENIED
        assert topics.seen == []
        assert await say(b"a1", metadata=ALICE) == b"a1"
        assert await code_of(unary(channel, "Manage")(b"", metadata=ALICE)) is grpc.StatusCode.PERMISSION_DENIED
        assert topics.seen == ["a1"]
        names = await asyncio.gather(*(unary(channel, "WhoAmI")(b"", metadata=who) for who in (ALICE, NOBODY) * 20))
        assert names == [b"alice", b"nobody"] * 20


async def test_without_a_file_nobody_is_asked(transport: GrpcTransport) -> None:
    async with hosted(grpc_transport=transport) as (topics, channel):
        assert await unary(channel, "Say")(b"b1") == b"b1"
        assert await unary(channel, "WhoAmI")(b"") == b"-"
        guard = topics.host.guard
        assert await guard.authenticate(None, "ipv4:1.2.3.4:5") is None
        guard.check(None, f"/{SERVICE}/Say", b"b1")
        assert guard.methods(None, SERVICE) is None
        with guard.entered(object(), None):
            pass


async def test_each_message_of_a_stream_is_checked_before_the_handler_sees_it(
    access: Path, transport: GrpcTransport
) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (topics, channel):
        collect = method(channel.stream_unary, "Collect")
        assert await collect(each(b"a1", b"a2"), metadata=ALICE) == b"a1,a2"
        topics.seen.clear()
        assert await code_of(collect(each(b"a1", b"b1", b"a2"), metadata=ALICE)) is grpc.StatusCode.PERMISSION_DENIED
        assert topics.seen == ["a1"]
        converse = method(channel.stream_stream, "Converse")(metadata=ALICE)
        await converse.write(b"a3")
        assert await converse.read() == b"a3"
        await converse.write(b"b1")
        with pytest.raises(grpc.aio.AioRpcError, match="alice may not PUBLISH to topic b1"):
            await converse.read()
        assert topics.seen == ["a1", "a3"]


async def test_who_may_nothing_learns_it_before_a_stream_begins(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (_, channel):
        for who, code in ((None, grpc.StatusCode.UNAUTHENTICATED), (NOBODY, grpc.StatusCode.PERMISSION_DENIED)):
            converse = method(channel.stream_stream, "Converse")(metadata=who)
            assert await converse.code() is code
            repeat = method(channel.unary_stream, "Repeat")(b"a1", metadata=who)
            assert await repeat.code() is code


async def test_what_is_taken_away_ends_streams_that_run(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (topics, channel):
        gate = topics.host.guard.gate
        assert gate is not None
        repeat = method(channel.unary_stream, "Repeat")(b"a1", metadata=ALICE)
        assert await repeat.read() == b"a1"
        converse = method(channel.stream_stream, "Converse")(metadata=ALICE)
        await converse.write(b"a1")
        assert await converse.read() == b"a1"
        access.write_text(TEXT.replace('subscribe = ["a*"]', "").replace('publish = ["a*"]', 'publish = ["a2"]'))
        gate.keeper.refresh()
        topics.more.set()
        with pytest.raises(grpc.aio.AioRpcError, match="may not SUBSCRIBE"):
            await repeat.read()
        await converse.write(b"a2")
        with pytest.raises(grpc.aio.AioRpcError, match="may not PUBLISH to topic a1"):
            await converse.read()


async def test_who_is_removed_is_cut_off_too(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (topics, channel):
        gate = topics.host.guard.gate
        assert gate is not None
        converse = method(channel.stream_stream, "Converse")(metadata=ALICE)
        await converse.write(b"a1")
        assert await converse.read() == b"a1"
        access.write_text(TEXT.replace("users.alice", "users.bob"))
        gate.keeper.refresh()
        await converse.write(b"a1")
        with pytest.raises(grpc.aio.AioRpcError, match="alice was removed") as caught:
            await converse.read()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_client_certificate_says_who_calls(tmp_path: Path, access: Path, transport: GrpcTransport) -> None:
    authority = Authority(tmp_path / "tls", "ca")
    server, known, stranger = (authority.issue(name) for name in ("localhost", "cert.example", "other.example"))
    settings = {
        "tls_server_cert_path": server.certificate,
        "tls_server_key_path": server.key,
        "tls_server_trust_cert_path": authority.certificate,
    }
    root = authority.certificate.read_bytes()
    async with hosted(access_file=access, grpc_transport=transport, **settings) as (topics, _):
        answers: list[object] = []
        for own, metadata in ((known, None), (stranger, None), (stranger, ALICE)):
            credentials = grpc.ssl_channel_credentials(root, own.key.read_bytes(), own.certificate.read_bytes())
            async with grpc.aio.secure_channel(f"localhost:{topics.host.port}", credentials) as channel:
                try:
                    answers.append(await unary(channel, "WhoAmI")(b"", metadata=metadata, timeout=60))
                except grpc.aio.AioRpcError as error:
                    answers.append(error.code())
        assert answers == [b"cert", grpc.StatusCode.UNAUTHENTICATED, b"alice"]


async def test_other_entrances_use_the_same_rules(access: Path) -> None:
    async with hosted(access_file=access) as (topics, _):
        guard = topics.host.guard
        alice = await guard.authenticate(ALICE[0][1], "ipv4:1.2.3.4:5")
        assert alice is not None
        guard.check(alice, f"/{SERVICE}/Say", b"a1")
        with pytest.raises(PermissionDenied):
            guard.check(alice, f"/{SERVICE}/Say", b"b1")
        with pytest.raises(Unauthenticated):
            guard.check(None, f"/{SERVICE}/WhoAmI", b"")
        with pytest.raises(Unauthenticated):
            await guard.authenticate(None, "ipv4:1.2.3.4:5")
        assert guard.methods(alice, SERVICE) == ["Say", "Collect", "Repeat", "Converse", "WhoAmI"]
        assert guard.current(alice) is alice
        context = object()
        with guard.entered(context, alice):
            assert guard.caller(context) is alice
        assert guard.caller(context) is None


async def test_refused_calls_are_told(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (topics, channel):
        told: list[tuple[str, str, str]] = []
        topics.host.guard.on_refused = lambda method, user, context, error: told.append(
            (method.rpartition("/")[2], user, f"{error.kind.name} {context.peer()[:5]}")
        )
        for metadata in (None, (authorization("eve", "x"),), ALICE):
            await code_of(unary(channel, "Say")(b"b1", metadata=metadata))
        assert await unary(channel, "Say")(b"a1", metadata=ALICE) == b"a1"
        await method(channel.unary_stream, "Repeat")(b"b1", metadata=ALICE).code()
        assert told == [
            ("Say", "", "UNAUTHENTICATED ipv4:"),
            ("Say", "eve", "UNAUTHENTICATED ipv4:"),
            ("Say", "alice", "NOT_PERMITTED ipv4:"),
            ("Repeat", "alice", "NOT_PERMITTED ipv4:"),
        ]
        guard = topics.host.guard
        assert guard.refused == {"unauthenticated": 2, "too_many_attempts": 0, "denied": 2}
        with pytest.raises(Unauthenticated):
            await guard.authenticate(None, "")
        with pytest.raises(Unauthenticated):
            guard.check(None, f"/{SERVICE}/Say", b"b1")
        assert guard.refused["unauthenticated"] == 4


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (None, "no rule says who may call Say, Collect"),
        ({name: rule for name, rule in RULES.items() if name != "Say"}, "no rule says who may call Say$"),
        ({**RULES, "Sya": Rule()}, "rules for methods that it has not: Sya"),
    ],
)
async def test_a_method_without_a_rule_fails_the_start(access: Path, rules: Rules | None, words: str) -> None:
    host = ServiceHost(ServerSettings(access_file=access))
    with pytest.raises(MissingRule, match=words):
        host.add(add_topics, Topics(host), rules)
    await host.start()
    await host.stop()


async def test_a_changed_file_is_followed_by_a_server(access: Path, transport: GrpcTransport) -> None:
    async with hosted(access_file=access, grpc_transport=transport) as (_, channel):
        say = unary(channel, "Say")
        assert await code_of(say(b"b1", metadata=ALICE)) is grpc.StatusCode.PERMISSION_DENIED
        new = access.with_name("new")
        new.write_text(TEXT.replace('publish = ["a*"]', 'publish = ["b*"]'))
        os.replace(new, access)
        async with asyncio.timeout(60):
            while True:
                try:
                    await say(b"b1", metadata=ALICE)
                    break
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.02)
        assert await code_of(say(b"a1", metadata=ALICE)) is grpc.StatusCode.PERMISSION_DENIED
