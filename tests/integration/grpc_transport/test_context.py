"""What a handler's context tells."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import connection_of
from tests.integration.grpc_transport.hosting import channel_to, failure, hosted, until


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:0", "ipv4:127.0.0.1:"), ("[::1]:0", "ipv6:%5B::1%5D:"), ("localhost:0", "ipv")],
)
async def test_peer_of_tcp_callers(transport: str, address: str, expected: str) -> None:
    async with hosted(transport, address=address) as server:
        peer = (await server.method("Mirror")(b"")).decode()
        assert peer.startswith(expected)
        assert 0 < int(peer.rpartition(":")[2]) < 1 << 16


async def test_peer_of_an_ipv4_caller_on_a_port_for_both_families(transport: str) -> None:
    async with hosted(transport, address="[::]:0") as server:
        port = server.target.rpartition(":")[2]
        async with channel_to(f"127.0.0.1:{port}") as channel:
            assert (await server.method("Mirror", channel)(b"")).startswith(b"ipv4:127.0.0.1:")


async def test_peer_of_a_unix_socket(transport: str, tmp_path: Path) -> None:
    async with hosted(transport, address=f"unix:{tmp_path / 'socket'}") as server:
        assert (await server.method("Mirror")(b"")).decode().startswith("unix:")


async def test_a_caller_without_tls_has_no_identity(transport: str) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.extend([context.peer_identities(), context.peer_identity_key()])
        assert "x509_common_name" not in context.auth_context()
        return request

    async with hosted(transport, unary=handler) as server:
        await server.unary(b"")
    assert seen == [None, None]


async def test_whether_its_caller_is_connected_can_be_asked_after_the_call() -> None:
    connected: list[Callable[[], bool]] = []

    async def handler(request: bytes, context: Any) -> bytes:
        connected.append(connection_of(context))
        return request

    async with hosted("fast", unary=handler) as server:
        await server.unary(b"")
        async with channel_to(server.target) as other:
            await server.own("unary", other)(b"")
            assert [one() for one in connected] == [True, True]
        await until(lambda: not connected[1]())
        assert connected[0]()


async def test_code_details_and_trailing_metadata_read_back(transport: str) -> None:
    seen: list[Any] = []

    async def handler(_request: bytes, context: Any) -> None:
        seen.append((context.code(), context.details(), tuple(context.trailing_metadata())))
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details("none")
        context.set_trailing_metadata((("x-a", "1"),))
        seen.append((context.code(), context.details(), tuple(context.trailing_metadata())))

    async with hosted(transport, unary=handler) as server:
        await failure(server.unary(b""))
    assert seen[0][1:] == ("", ())
    assert seen[1] == (grpc.StatusCode.NOT_FOUND, "none", (("x-a", "1"),))


async def test_code_and_details_after_an_abort(transport: str) -> None:
    seen: list[Any] = []

    async def handler(_request: bytes, context: Any) -> None:
        try:
            await context.abort(grpc.StatusCode.NOT_FOUND, "none", (("x-a", "1"),))
        finally:
            seen.append((context.code(), context.details(), tuple(context.trailing_metadata()), context.done()))

    async with hosted(transport, unary=handler) as server:
        await failure(server.unary(b""))
        await until(lambda: bool(seen))  # the caller may hear of it before the handler has ended
    assert seen == [(grpc.StatusCode.NOT_FOUND, "none", (("x-a", "1"),), True)]


async def test_the_context_is_a_grpc_aio_servicer_context(transport: str) -> None:
    """For the libraries that ask; grpcio registers its own class with this one."""
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context)
        return request

    async with hosted(transport, unary=handler) as server:
        await server.unary(b"")
    names = {name for name in dir(grpc.aio.ServicerContext) if not name.startswith("_")}
    assert not names - set(dir(seen[0]))
    if transport == "fast":
        assert isinstance(seen[0], grpc.aio.ServicerContext)


async def test_metadata_of_one_call_is_not_another_ones(transport: str) -> None:
    async with hosted(transport) as server:

        async def ask(number: int) -> None:
            call = server.method("Mirror")(b"", metadata=(("x-number", str(number)),))
            await call
            assert dict(await call.trailing_metadata())["x-number"] == str(number)

        await asyncio.gather(*(ask(number) for number in range(100)))
