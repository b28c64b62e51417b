"""TLS and mutual TLS with certificates of the openssl command."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tandemmq.common.identity.tls import trusting_context
from tests.grpc_probe import DRIP_SIZE, Probe, add_probe, make_server, server_tls
from tests.integration.grpc_transport.conftest import Certificates
from tests.integration.grpc_transport.hosting import add_own, channel_to, everything, failure, sending, until, within
from tests.integration.grpc_transport.wire import INITIAL_WINDOW_SIZE, WIDE, wired

ECHO = "/tandemmq.test.Probe/Echo"


@asynccontextmanager
async def secured(
    transport: str, certificates: Certificates, mutual: bool = False, **behaviors: Any
) -> AsyncIterator[str]:
    """A TLS server; gives its target."""
    server = make_server(transport)
    add_probe(Probe(), server)
    add_own(server, **behaviors)
    trust = certificates.authority if mutual else None
    tls = server_tls(transport, certificates.server, certificates.server_key, trust)
    port = server.add_secure_port("127.0.0.1:0", tls)
    await server.start()
    try:
        yield f"localhost:{port}"
    finally:
        await server.stop(None)


def known(certificates: Certificates) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        certificates.authority.read_bytes(), certificates.client_key.read_bytes(), certificates.client.read_bytes()
    )


def unknown(certificates: Certificates) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        certificates.authority.read_bytes(), certificates.stranger_key.read_bytes(), certificates.stranger.read_bytes()
    )


def anonymous(certificates: Certificates) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(certificates.authority.read_bytes())


async def test_calls_of_all_kinds_over_tls(transport: str, certificates: Certificates) -> None:
    async with (
        secured(transport, certificates) as target,
        channel_to(target, anonymous(certificates)) as channel,
    ):
        assert await within(channel.unary_unary(ECHO)(b"x")) == b"x"
        large = b"x" * (5 << 20)
        assert await within(channel.unary_unary(ECHO)(large)) == large
        assert await within(channel.stream_unary("/tandemmq.test.Probe/Collect")(sending(b"a", b"b"))) == b"a|b"
        repeat, converse = "/tandemmq.test.Probe/Repeat", "/tandemmq.test.Probe/Converse"
        assert len(await within(everything(channel.unary_stream(repeat)(b"300:10000")))) == 300
        assert await within(everything(channel.stream_stream(converse)(sending(b"a", b"b")))) == [b"A", b"B"]


async def test_a_sync_caller_over_tls(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as target:

        def call() -> bytes:
            channel: Any
            with grpc.secure_channel(target, anonymous(certificates)) as channel:
                return bytes(channel.unary_unary(ECHO)(b"x", timeout=60))

        assert await asyncio.to_thread(call) == b"x"


async def test_mutual_tls_welcomes_whom_it_knows(transport: str, certificates: Certificates) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.extend([context.peer_identity_key(), list(context.peer_identities()), context.auth_context()])
        return request

    async with (
        secured(transport, certificates, mutual=True, unary=handler) as target,
        channel_to(target, known(certificates)) as channel,
    ):
        assert await within(channel.unary_unary("/tandemmq.test.Own/unary")(b"x")) == b"x"
    key, identities, properties = seen
    assert (key, identities) == ("x509_subject_alternative_name", [b"client.test"])
    assert list(properties["x509_subject_alternative_name"]) == [b"client.test"]
    assert list(properties["x509_common_name"]) == [b"client"]
    assert list(properties["transport_security_type"]) == [b"ssl"]
    pem = certificates.client.read_bytes()
    assert b"".join(properties["x509_pem_cert"]).split() == pem[pem.index(b"-----BEGIN CERT") :].split()


async def test_an_identity_without_alternative_names_is_the_common_name(
    transport: str, certificates: Certificates
) -> None:
    """The authority's own certificate has none, and signed itself."""
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.extend([context.peer_identity_key(), list(context.peer_identities())])
        return request

    root, key = certificates.authority.read_bytes(), certificates.authority.with_suffix(".key").read_bytes()
    async with (
        secured(transport, certificates, mutual=True, unary=handler) as target,
        channel_to(target, grpc.ssl_channel_credentials(root, key, root)) as channel,
    ):
        assert await within(channel.unary_unary("/tandemmq.test.Own/unary")(b"x")) == b"x"
    assert seen == ["x509_common_name", [b"authority"]]


@pytest.mark.parametrize("who", [anonymous, unknown])
async def test_mutual_tls_refuses_others(transport: str, certificates: Certificates, who: Any) -> None:
    async with secured(transport, certificates, mutual=True) as target:
        async with channel_to(target, who(certificates)) as channel:
            assert (await failure(channel.unary_unary(ECHO)(b"x", timeout=30))).code() is grpc.StatusCode.UNAVAILABLE
        async with channel_to(target, known(certificates)) as channel:
            assert await within(channel.unary_unary(ECHO)(b"x")) == b"x"


async def test_plain_text_to_a_tls_port_is_hung_up(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as target:
        async with channel_to(target) as channel:
            assert (await failure(channel.unary_unary(ECHO)(b"x", timeout=30))).code() is grpc.StatusCode.UNAVAILABLE
        async with wired(target) as wire:
            await wire.wait_for(lambda: wire.closed)


async def test_tls_to_a_plain_port_is_hung_up(transport: str, certificates: Certificates) -> None:
    server = make_server(transport)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with channel_to(f"localhost:{port}", anonymous(certificates)) as channel:
        assert (await failure(channel.unary_unary(ECHO)(b"x", timeout=30))).code() is grpc.StatusCode.UNAVAILABLE
    await server.stop(None)


def client_context(certificates: Certificates, *protocols: str) -> ssl.SSLContext:
    context = trusting_context(certificates.authority)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


async def test_alpn_selects_h2(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as target:
        context = client_context(certificates, "http/1.1", "h2")
        async with wired(target, ssl=context, server_hostname="localhost") as wire:
            assert wire.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
            assert (await wire.answer(wire.call("Echo", b"x"))).messages == [b"x"]


@pytest.mark.parametrize("protocols", [("http/1.1",), ()])
async def test_without_h2_in_alpn_there_is_no_service(
    transport: str, certificates: Certificates, protocols: tuple[str, ...]
) -> None:
    async with secured(transport, certificates) as target:
        try:
            context = client_context(certificates, *protocols)
            async with wired(target, ssl=context, server_hostname="localhost") as wire:
                answer = await wire.answer(wire.call("Echo", b"x"))
                assert wire.closed
                assert not answer.ended
        except OSError:
            pass  # refused in the handshake


async def test_handlers_learn_that_a_tls_connection_vanished(transport: str, certificates: Certificates) -> None:
    ended: list[str] = []
    begun = asyncio.Event()

    async def handler(_request: bytes, _context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        return b""

    async with secured(transport, certificates, unary=handler) as target:
        context = client_context(certificates, "h2")
        async with wired(target, ssl=context, server_hostname="localhost") as wire:
            wire.call("/tandemmq.test.Own/unary", b"x")
            await within(begun.wait())
        await until(lambda: bool(ended))
    assert ended == ["ended"], "once, though the server stopped too"


async def test_fast_takes_an_ssl_context_and_says_so(certificates: Certificates, transport: str) -> None:
    if transport == "grpcio":
        pytest.skip("grpcio takes its own credentials")
    server = make_server(transport)
    with pytest.raises(TypeError, match="SSLContext"):
        server.add_secure_port("127.0.0.1:0", server_tls("grpcio", certificates.server, certificates.server_key))
    await server.stop(None)


async def test_a_slow_reader_behind_tls_holds_only_itself(transport: str, certificates: Certificates) -> None:
    async with secured(transport, certificates) as target:
        context = client_context(certificates, "h2")
        options: dict[str, Any] = {"ssl": context, "server_hostname": "localhost"}
        async with wired(target, (INITIAL_WINDOW_SIZE, WIDE), **options) as slow, wired(target, **options) as quick:
            slow.call("Drip", b"")
            await slow.wait_for(lambda: slow.answers[1].data)
            slow.writer.transport.pause_reading()  # type: ignore[attr-defined]

            async def dripped() -> int:
                answer = await quick.answer(quick.call("Count", b""))
                return int(json.loads(answer.messages[0])["dripped"])

            last, same = await dripped(), 0
            async with asyncio.timeout(60):
                while same < 10:
                    await asyncio.sleep(0.02)
                    now = await dripped()
                    last, same = now, same + 1 if now == last else 0
            assert last * DRIP_SIZE < 64 << 20
