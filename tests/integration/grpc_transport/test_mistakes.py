"""Mistakes of handlers and callers: they fail their own call, in time, and tell the caller nothing internal."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import failure, hosted, sending, settled, within

SECRET = "secret/path of the server"


@pytest.mark.parametrize("details", [5, [1], b"bytes"])
@pytest.mark.parametrize("where", ["set", "abort"])
async def test_details_that_are_no_text_fail_the_call(transport: str, where: str, details: Any) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        if where == "abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, details)
        context.set_details(details)
        return request

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b"", timeout=30))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize(("code", "name"), [(5, "NOT_FOUND"), (99, "UNKNOWN"), (-1, "UNKNOWN"), ("x", "UNKNOWN")])
async def test_codes_may_be_numbers_and_others_are_unknown(transport: str, code: Any, name: str) -> None:
    async def unary(_request: bytes, context: Any) -> None:
        await context.abort(code)

    async def into(_requests: Any, context: Any) -> bytes:
        context.set_code(code)
        return b"dropped"

    async with hosted(transport, unary=unary, into=into) as server:
        assert (await failure(server.unary(b"", timeout=30))).code().name == name
        assert (await failure(server.into(sending(), timeout=30))).code().name == name


async def test_abort_with_ok_is_a_mistake_of_the_handler(transport: str) -> None:
    """grpcio sends OK without an answer, which callers report as INTERNAL or UNKNOWN; nobody gets an answer."""

    async def handler(_request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.OK, "not a failure")

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"", timeout=30 if transport == "fast" else 1)
        if transport == "fast":
            assert (await failure(call)).code() is grpc.StatusCode.UNKNOWN
        else:
            assert await within(call.code()) is not None
        assert await server.method("Echo")(b"lives") == b"lives"


async def crashing_unary(_request: Any, _context: Any) -> bytes:
    raise KeyError(SECRET)


async def crashing_out(_request: Any, _context: Any) -> AsyncIterator[bytes]:
    yield b"1"
    raise KeyError(SECRET)


async def crashing_later(_request: Any, _context: Any) -> bytes:
    await asyncio.sleep(0)
    raise KeyError(SECRET)


def judge_crash(transport: str, error: grpc.aio.AioRpcError) -> None:
    """grpcio shows the caller what was raised; ours does not: a path or a password may be in it."""
    assert error.code() is grpc.StatusCode.UNKNOWN
    if transport == "fast":
        assert SECRET not in str(error.details())
        assert "KeyError" not in str(error.details())
    else:
        assert SECRET in str(error.details())


async def test_exceptions_of_handlers_are_unknown_and_logged(transport: str, caplog: pytest.LogCaptureFixture) -> None:
    async with hosted(
        transport, unary=crashing_unary, out=crashing_out, into=crashing_later, both=crashing_out
    ) as server:
        judge_crash(transport, await failure(server.unary(b"")))
        judge_crash(transport, await failure(server.into(sending())))
        for call in (server.out(b""), server.both(sending())):
            assert await within(call.read()) == b"1"
            judge_crash(transport, await failure(call))
        assert await server.method("Echo")(b"lives") == b"lives"
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR and record.exc_info]
    assert len([record for record in logged if SECRET in str(record.exc_info)]) == 4


async def test_what_a_log_says_and_what_the_caller_gets_are_joined_by_an_incident(
    caplog: pytest.LogCaptureFixture, transport: str
) -> None:
    if transport != "fast":
        pytest.skip("grpcio tells the caller everything")
    async with hosted(transport, unary=crashing_unary) as server:
        details = str((await failure(server.unary(b""))).details())
    incident = details.split()[-1]
    assert len(incident) >= 6
    assert incident in caplog.text


async def test_an_exception_after_set_code_ends_with_that_code(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> bytes:
        context.set_code(grpc.StatusCode.PERMISSION_DENIED)
        raise ValueError(SECRET)

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert (SECRET in str(error.details())) == (transport == "grpcio")


async def test_requests_that_cannot_be_deserialized_fail_the_call(transport: str) -> None:
    """grpcio: UNKNOWN with the exception's text, for unary requests and those of streams."""

    async def one(_request: str, _context: Any) -> bytes:
        return b"not reached"

    async def each(requests: AsyncIterator[str], _context: Any) -> bytes:
        return b"".join([request.encode() async for request in requests])

    def deserialize(message: bytes) -> str:
        if message == b"bad":
            raise ValueError(SECRET)
        return message.decode()

    async with hosted(transport, unary=one, into=each, deserializer=deserialize) as server:
        for call in (server.unary(b"bad", timeout=30), server.into(sending(b"good", b"bad"), timeout=30)):
            error = await failure(call)
            assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
            assert (SECRET in str(error.details())) == (transport == "grpcio")


async def test_answers_that_cannot_be_serialized_fail_the_call(transport: str) -> None:
    async def one(_request: bytes, _context: Any) -> Any:
        return 7

    async def each(_request: bytes, _context: Any) -> AsyncIterator[Any]:
        yield b"good"
        yield 7

    def serialize(message: Any) -> bytes:
        if not isinstance(message, bytes):
            raise TypeError(SECRET)
        return message

    async with hosted(transport, unary=one, out=each, serializer=serialize) as server:
        error = await failure(server.unary(b"", timeout=30))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
        call = server.out(b"", timeout=30)
        assert await within(call.read()) == b"good"
        error = await failure(call)
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)


async def test_answers_that_are_no_bytes_and_have_no_serializer_fail_the_call(transport: str) -> None:
    async def unary(_request: bytes, _context: Any) -> Any:
        return 7

    async def out(_request: bytes, _context: Any) -> AsyncIterator[Any]:
        yield 7

    async with hosted(transport, unary=unary, out=out) as server:
        for call in (server.unary(b"", timeout=30), server.out(b"", timeout=30)):
            error = await failure(call)
            assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_a_unary_call_without_or_with_two_requests_fails(transport: str) -> None:
    """grpcio ends a call without request silently (the caller sees it fail) and ignores a second one."""
    async with hosted(transport) as server:
        call = server.channel.stream_unary("/tandemmq.test.Probe/Echo")
        await failure(call(sending(), timeout=2))
        if transport == "fast":
            assert (await failure(call(sending(b"1", b"2"), timeout=30))).code() is grpc.StatusCode.INTERNAL
        await settled(server)
        assert await server.method("Echo")(b"lives") == b"lives"


ILL_FORMED: list[Any] = [
    ("x-a",),
    (("x-a",),),
    (("x-a", "1", "2"),),
    ((1, "x"),),
    (("x-a", 5),),
    (("x-a-bin", 5),),
    "x-a",
    7,
    {"x-a": "1"},
]


@pytest.mark.parametrize("metadata", [*ILL_FORMED, None, (("x-a", None),), ((b"x-a", 1),)])
@pytest.mark.parametrize("where", ["set", "abort"])
async def test_ill_formed_trailing_metadata_fails_the_call(transport: str, where: str, metadata: Any) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        if where == "abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, "said so", metadata)
        context.set_trailing_metadata(metadata)
        return request

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b"", timeout=30))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.NOT_FOUND)
        assert "x-a" not in {key for key, _ in error.trailing_metadata()}


@pytest.mark.parametrize("metadata", [*ILL_FORMED, None])
async def test_ill_formed_initial_metadata_fails_the_call(transport: str, metadata: Any) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(metadata)
        return request

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b"", timeout=30))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
