"""Deadlines: what handlers know of them, and what happens when they are over."""

import asyncio
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import failure, hosted, in_time, settled
from tests.integration.grpc_transport.wire import wired
from tests.integration.grpc_transport.witness import KINDS, Witness, begin


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deadline_ends_the_handler_and_the_call(transport: str, kind: str) -> None:
    async def attempt(seconds: float) -> bool:
        witness = Witness()
        async with hosted(transport, **witness.behaviors) as server:
            error = await failure(begin(server, kind, timeout=seconds))
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert await server.method("Echo")(b"lives") == b"lives"
            if not witness.begun.is_set():
                return False
            await witness.judge(transport)
        assert len(witness.called_back) == 1
        return True

    await in_time(attempt)


async def test_a_deadline_is_kept_when_the_caller_does_not(transport: str) -> None:
    """The caller of this test never looks at its clock; the server does. (grpcio may only reset the stream.)"""
    soon = [(b"grpc-timeout", b"100m")]
    async with hosted(transport) as server, wired(server.target) as wire:
        waiting, dripping = wire.call("Wait", b"", more=soon), wire.call("Drip", b"", more=soon)
        answer = await wire.answer(waiting)
        assert answer.status == "4" or transport == "grpcio"
        await wire.answer(dripping)
        await settled(server)


async def test_a_deadline_while_requests_come(transport: str) -> None:
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Collect", b"one", ended=False, more=[(b"grpc-timeout", b"100m")])
        answer = await wire.answer(stream)
        assert answer.status == "4" or transport == "grpcio"
        assert answer.messages == []
        await settled(server)


async def test_the_handler_knows_how_long_the_caller_waits(transport: str) -> None:
    seen: list[float | None] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.time_remaining())
        await asyncio.sleep(0.02)
        seen.append(context.time_remaining())
        return request

    async with hosted(transport, unary=handler) as server:
        await server.unary(b"", timeout=600)
        await server.unary(b"")
    first, second, *endless = seen
    assert first is not None
    assert second is not None
    assert 500 < second < first <= 606
    assert endless == [None, None]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500S", 500), ("5M", 300), ("1H", 3600), ("99999999m", 99_999.999), ("99999999u", 99.999_999)],
)
async def test_all_units_of_a_deadline(transport: str, text: str, seconds: float) -> None:
    seen: list[float] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.time_remaining())
        return request

    async with hosted(transport, unary=handler) as server, wired(server.target) as wire:
        answer = await wire.answer(wire.call("/tandemmq.test.Own/unary", b"", more=[(b"grpc-timeout", text.encode())]))
        assert answer.status == "0"
    assert seconds * 0.9 < seen[0] <= seconds * 1.01


async def test_a_handler_that_is_done_in_time_is_not_disturbed(transport: str) -> None:
    async def attempt(seconds: float) -> bool:
        async with hosted(transport) as server:
            try:
                assert await server.method("Echo")(b"x", timeout=seconds) == b"x"
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    return False
                raise
            await asyncio.sleep(seconds + 0.1)
            assert await server.method("Echo")(b"y", timeout=30) == b"y"
            assert server.probe.cancelled == 0
        return True

    await in_time(attempt)


@pytest.mark.parametrize(("text", "status"), [("99999999H", "0"), ("99999999S", "0"), ("1n", "4"), ("0S", "4")])
async def test_deadlines_far_away_and_already_over(transport: str, text: str, status: str) -> None:
    async def handler(request: bytes, _context: Any) -> bytes:
        await asyncio.sleep(0.02)
        return request

    async with hosted(transport, unary=handler) as server, wired(server.target) as wire:
        answer = await wire.answer(wire.call("/tandemmq.test.Own/unary", b"", more=[(b"grpc-timeout", text.encode())]))
        assert answer.status == status
