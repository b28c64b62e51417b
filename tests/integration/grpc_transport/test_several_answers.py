"""Several answers of a stream that are sent together: callers get each of them."""

import asyncio
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import write_all
from tests.integration.grpc_transport.hosting import failure, hosted, within

ANSWERS = [b"first", b"", b"x" * 100_000, b"y" * 20_000, b"last"]


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_each_of_them_arrives_by_itself(transport: str, compression: grpc.Compression | None) -> None:
    async def handler(_request: bytes, context: Any) -> None:
        if compression is not None:
            context.set_compression(compression)
        await write_all(context, ANSWERS)
        await context.write(b"alone")
        await write_all(context, [b"one"])

    async with hosted(transport, out=handler) as server:
        got = [answer async for answer in server.out(b"")]
    assert got == [*ANSWERS, b"alone", b"one"]


async def test_a_handler_that_never_waits_may_write_and_fail(transport: str) -> None:
    async def handler(request: bytes, context: Any) -> None:
        await write_all(context, [b"a", b"b"])
        if request:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no more")

    async with hosted(transport, out=handler) as server:
        assert [answer async for answer in server.out(b"")] == [b"a", b"b"]
        call = server.out(b"fail")
        assert [await call.read(), await call.read()] == [b"a", b"b"]
        assert (await failure(call)).details() == "no more"


async def test_they_wait_for_a_caller_that_does_not_read() -> None:
    written: list[int] = []

    async def handler(_request: bytes, context: Any) -> None:
        for number in range(40):
            await write_all(context, [bytes(200_000), bytes([number]) * 200_000])
            written.append(number)

    async with hosted("fast", out=handler) as server:
        call = server.out(b"")
        await within(call.read())
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(written) < 40
        got = 1
        while await within(call.read()) is not grpc.aio.EOF:
            got += 1
        assert (got, len(written)) == (80, 40)
