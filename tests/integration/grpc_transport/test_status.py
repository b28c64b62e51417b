"""How calls end: the handler's statuses, its mistakes, and what is no method at all."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from tests.grpc_probe import DETAILS
from tests.integration.grpc_transport.hosting import OWN, everything, failure, hosted, sending, settled, until, within

FAILURES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@pytest.mark.parametrize("code", FAILURES)
async def test_abort_with_every_code(transport: str, code: grpc.StatusCode) -> None:
    async with hosted(transport) as server:
        error = await failure(server.method("Fail")(code.name.encode()))
        assert (error.code(), error.details()) == (code, DETAILS)
        assert dict(error.trailing_metadata())["x-failed-bin"] == b"\x00\x01\xff"


@pytest.mark.parametrize(
    "details",
    [
        "",
        "plain",
        "100%",
        "é ü 漢字 🙂",
        "two\nlines\r\n\ttab",
        "\x00\x7f",
        "%41 is not decoded twice",
        " edges ",
        "d" * 3000,
    ],
)
async def test_details_come_as_they_were_given(transport: str, details: str) -> None:
    async def handler(request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.NOT_FOUND, request.decode())

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(details.encode()))
        assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, details)


async def test_details_too_long_for_a_header_block_do_not_break_the_connection(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.NOT_FOUND, "é" * 100_000)

    async with hosted(transport, unary=handler) as server:
        await failure(server.unary(b"", timeout=60))
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_abort_in_the_middle_of_a_stream_keeps_what_was_sent(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        await context.abort(grpc.StatusCode.DATA_LOSS, "in the middle", (("x-at", "2"),))

    async with hosted(transport, out=handler) as server:
        call = server.out(b"")
        assert [await within(call.read()), await within(call.read())] == [b"1", b"2"]
        error = await failure(call)
        assert (error.code(), error.details()) == (grpc.StatusCode.DATA_LOSS, "in the middle")
        assert dict(error.trailing_metadata())["x-at"] == "2"


async def test_abort_while_the_caller_still_sends(transport: str) -> None:
    async def handler(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            if request == b"bad":
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad")
            yield request

    async with hosted(transport, both=handler) as server:
        call = server.both()
        await call.write(b"good")
        assert await within(call.read()) == b"good"
        await call.write(b"bad")
        error = await failure(call)
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_abort_takes_over_what_was_set_before(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> None:
        context.set_code(grpc.StatusCode.NOT_FOUND)
        context.set_details("set before")
        context.set_trailing_metadata((("x-set", "before"),))
        await context.abort(grpc.StatusCode.ABORTED)

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.ABORTED, "set before")
        assert dict(error.trailing_metadata())["x-set"] == "before"


async def test_abort_overrides_what_was_set_before(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> None:
        context.set_details("set before")
        context.set_trailing_metadata((("x-set", "before"),))
        await context.abort(grpc.StatusCode.ABORTED, "now", (("x-now", "yes"),))

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert error.details() == "now"
        assert "x-set" not in dict(error.trailing_metadata())


async def test_abort_with_a_status_object(transport: str) -> None:
    class Busy(grpc.Status):
        code = grpc.StatusCode.UNAVAILABLE
        details = "busy"
        trailing_metadata = (("x-again", "later"),)

    async def handler(_request: bytes, context: Any) -> None:
        await context.abort_with_status(Busy())

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNAVAILABLE, "busy")
        assert dict(error.trailing_metadata())["x-again"] == "later"


async def test_abort_raises_for_the_handler_and_only_once(transport: str) -> None:
    seen: list[type[BaseException]] = []

    async def handler(_request: bytes, context: Any) -> None:
        try:
            await context.abort(grpc.StatusCode.NOT_FOUND, "first")
        except grpc.aio.AbortError as error:
            seen.append(type(error))
            try:
                await context.abort(grpc.StatusCode.INTERNAL, "second")
            except grpc.aio.UsageError as again:
                seen.append(type(again))
            raise

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "first")
        await until(lambda: len(seen) == 2)  # the caller may know before the handler has gone on
        assert seen == [grpc.aio.AbortError, grpc.aio.UsageError]


async def test_an_abort_that_the_handler_swallows_stays_an_abort(transport: str) -> None:
    async def unary(_request: bytes, context: Any) -> bytes:
        with suppress(grpc.aio.AbortError):
            await context.abort(grpc.StatusCode.NOT_FOUND, "said so")
        return b"pretend that all is well"

    async def out(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            await context.abort(grpc.StatusCode.NOT_FOUND, "said so")
        except grpc.aio.AbortError:
            yield b"pretend that all is well"

    async with hosted(transport, unary=unary, out=out) as server:
        for call in (server.unary(b""), server.out(b"")):
            error = await failure(call)
            assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "said so")


async def test_a_code_set_without_abort_drops_the_answer_of_a_unary_call(transport: str) -> None:
    async def handler(_request: Any, context: Any) -> bytes:
        context.set_code(grpc.StatusCode.FAILED_PRECONDITION)
        context.set_details("not now")
        context.set_trailing_metadata((("x-why", "test"),))
        return b"dropped"

    async with hosted(transport, unary=handler, into=handler) as server:
        for call in (server.unary(b""), server.into(sending())):
            error = await failure(call)
            assert (error.code(), error.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "not now")
            assert dict(error.trailing_metadata())["x-why"] == "test"


async def test_with_a_code_set_a_handler_may_answer_none(transport: str) -> None:
    async def handler(_request: Any, context: Any) -> None:
        context.set_code(grpc.StatusCode.NOT_FOUND)

    async with hosted(transport, unary=handler) as server:
        assert (await failure(server.unary(b""))).code() is grpc.StatusCode.NOT_FOUND


async def test_a_code_set_without_abort_ends_a_stream_behind_its_answers(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"1"
        context.set_code(grpc.StatusCode.OUT_OF_RANGE)
        context.set_details("no more")
        yield b"2"

    async with hosted(transport, out=handler) as server:
        call = server.out(b"")
        assert [await within(call.read()), await within(call.read())] == [b"1", b"2"]
        error = await failure(call)
        assert (error.code(), error.details()) == (grpc.StatusCode.OUT_OF_RANGE, "no more")


async def test_details_may_come_with_ok(transport: str) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        context.set_details("fine")
        return request

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"x")
        assert await call == b"x"
        assert await call.code() is grpc.StatusCode.OK


async def test_the_probe_counts_no_call_that_failed(transport: str) -> None:
    async with hosted(transport) as server:
        await failure(server.method("Crash")(b""))
        await failure(server.method("Fail")(b"NOT_FOUND"))
        await settled(server)


@pytest.mark.parametrize("path", ["/no.Service/Method", f"/{OWN}/NoMethod", "/", "/one", "/a/b/c", "/é/x"])
async def test_what_is_no_method_is_unimplemented(transport: str, path: str) -> None:
    async with hosted(transport) as server:
        error = await failure(server.channel.unary_unary(path)(b"x", timeout=60))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        error = await failure(server.channel.stream_stream(path)(timeout=60))
        assert error.code() is grpc.StatusCode.UNIMPLEMENTED
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_closing_generators_runs_their_finally_blocks(transport: str) -> None:
    seen = []

    async def handler(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        try:
            yield b"1"
            await context.abort(grpc.StatusCode.ABORTED, "enough")
        finally:
            seen.append("closed")

    async with hosted(transport, out=handler) as server:
        call = server.out(b"")
        with pytest.raises(grpc.aio.AioRpcError):
            await everything(call)
        await until(lambda: seen == ["closed"])
