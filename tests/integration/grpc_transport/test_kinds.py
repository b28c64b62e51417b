"""The four kinds of calls, each style of handler, messages of all sizes, sync and aio callers."""

import asyncio
import functools
import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import everything, hosted, sending, settled, within

SIZES = [0, 1, 16_378, 16_379, 16_383, 16_384, 16_385, 65_535, 1 << 20, 7 << 20]
"""Around a default frame with and without the prefix of 5 bytes, around a default window, and beyond."""


async def test_all_kinds_with_an_aio_caller(transport: str) -> None:
    async with hosted(transport) as server:
        assert await server.method("Echo")(b"hello") == b"hello"
        assert await server.method("Collect")(sending(b"a", b"", b"b")) == b"a||b"
        assert await everything(server.method("Repeat")(b"3:2")) == [b"rr"] * 3
        assert await everything(server.method("Converse")(sending(b"a", b"b"))) == [b"A", b"B"]


async def test_all_kinds_with_a_sync_caller(transport: str) -> None:
    async with hosted(transport) as server:

        def call() -> None:
            with grpc.insecure_channel(server.target) as channel:
                assert server.method("Echo", channel)(b"hello") == b"hello"
                assert server.method("Collect", channel)(iter([b"a", b"", b"b"])) == b"a||b"
                assert list(server.method("Repeat", channel)(b"3:2")) == [b"rr"] * 3
                assert list(server.method("Converse", channel)(iter([b"a", b"b"]))) == [b"A", b"B"]

        await asyncio.to_thread(call)


async def test_messages_of_all_sizes_come_whole(transport: str) -> None:
    async with hosted(transport) as server:
        for size in SIZES:
            message = b"m" * size
            assert await server.method("Echo")(message) == message, size
        messages = [b"s" * size for size in SIZES]
        assert await everything(server.method("Converse")(sending(*messages))) == [each.upper() for each in messages]


async def test_bytes_of_all_values_come_unchanged(transport: str) -> None:
    message = bytes(range(256)) * 300
    async with hosted(transport) as server:
        assert await server.method("Echo")(message) == message


async def test_empty_messages_and_empty_streams(transport: str) -> None:
    async with hosted(transport) as server:
        assert await server.method("Echo")(b"") == b""
        assert await server.method("Collect")(sending()) == b""
        assert await server.method("Collect")(sending(b"", b"")) == b"|"
        assert await everything(server.method("Converse")(sending())) == []
        assert await everything(server.method("Converse")(sending(b"", b""))) == [b"", b""]
        assert await everything(server.method("Repeat")(b"0:1")) == []
        assert await everything(server.method("Repeat")(b"2:0")) == [b"", b""]


@pytest.mark.slow
async def test_many_messages_in_order(transport: str) -> None:
    numbers = [b"%d" % number for number in range(3000)]
    async with hosted(transport) as server:
        assert await server.method("Collect")(sending(*numbers)) == b"|".join(numbers)
        assert await everything(server.method("Converse")(sending(*numbers))) == numbers
        assert len(await everything(server.method("Repeat")(b"3000:100"))) == 3000


async def test_many_calls_at_once_on_one_connection(transport: str) -> None:
    async with hosted(transport) as server:
        answers = await asyncio.gather(*(server.method("Echo")(b"%d" % number) for number in range(500)))
        assert answers == [b"%d" % number for number in range(500)]
        await settled(server)


async def test_a_conversation_takes_turns(transport: str) -> None:
    async with hosted(transport) as server:
        call = server.method("Converse")()
        for word in (b"one", b"two", b"three"):
            await within(call.write(word))
            assert await within(call.read()) == word.upper()
        await call.done_writing()
        assert await within(call.read()) is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK


async def into_by_read(_requests: Any, context: Any) -> bytes:
    found = []
    while (request := await context.read()) is not grpc.aio.EOF:
        found.append(request)
    assert await context.read() is grpc.aio.EOF, "the end stays the end"
    return b"+".join(found)


async def out_by_write(request: bytes, context: Any) -> None:
    for letter in request:
        await context.write(bytes([letter]))


async def both_by_read_and_write(_requests: Any, context: Any) -> None:
    while (request := await context.read()) is not grpc.aio.EOF:
        await context.write(request + b"!")


async def both_iterating_and_writing(requests: AsyncIterator[bytes], context: Any) -> None:
    async for request in requests:
        await context.write(request + b"!")


async def both_reading_and_yielding(_requests: Any, context: Any) -> AsyncIterator[bytes]:
    while (request := await context.read()) is not grpc.aio.EOF:
        yield request + b"!"


async def test_reading_and_writing_through_the_context(transport: str) -> None:
    async with hosted(transport, into=into_by_read, out=out_by_write, both=both_by_read_and_write) as server:
        assert await server.into(sending(b"a", b"b")) == b"a+b"
        assert await everything(server.out(b"xyz")) == [b"x", b"y", b"z"]
        assert await everything(server.both(sending(b"a", b"b"))) == [b"a!", b"b!"]


@pytest.mark.parametrize("handler", [both_iterating_and_writing, both_reading_and_yielding])
async def test_both_styles_in_one_handler(transport: str, handler: Any) -> None:
    async with hosted(transport, both=handler) as server:
        assert await everything(server.both(sending(b"a", b"b"))) == [b"a!", b"b!"]


async def test_a_generator_that_also_writes_through_the_context(transport: str) -> None:
    async def handler(_request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"first"
        await context.write(b"second")
        yield b"third"

    async with hosted(transport, out=handler) as server:
        assert await everything(server.out(b"")) == [b"first", b"second", b"third"]


async def test_reading_by_anext_and_then_by_read(transport: str) -> None:
    async def handler(requests: AsyncIterator[bytes], context: Any) -> bytes:
        first = await anext(requests)
        second = await context.read()
        rest = [request async for request in requests]
        return b"/".join([first, second, *rest])

    async with hosted(transport, into=handler) as server:
        assert await server.into(sending(b"1", b"2", b"3", b"4")) == b"1/2/3/4"


async def test_a_handler_that_answers_before_the_requests_end(transport: str) -> None:
    async def first_is_enough(requests: AsyncIterator[bytes], _context: Any) -> bytes:
        return await anext(requests)

    async def never_reads(_requests: Any, _context: Any) -> AsyncIterator[bytes]:
        yield b"done"

    async with hosted(transport, into=first_is_enough, both=never_reads) as server:
        into, both = server.into(), server.both()
        await into.write(b"first")
        assert await within(into) == b"first"
        assert await within(everything(both)) == [b"done"]
        assert await server.method("Echo")(b"connection lives") == b"connection lives"


async def test_answers_before_requests(transport: str) -> None:
    async def greets(requests: AsyncIterator[bytes], context: Any) -> None:
        await context.write(b"hello")
        async for request in requests:
            await context.write(request)

    async with hosted(transport, both=greets) as server:
        call = server.both()
        assert await within(call.read()) == b"hello"
        await call.write(b"and you")
        assert await within(call.read()) == b"and you"
        await call.done_writing()
        assert await within(call.read()) is grpc.aio.EOF


async def test_one_handler_reads_and_writes_at_the_same_time(transport: str) -> None:
    async def handler(requests: AsyncIterator[bytes], context: Any) -> None:
        async def write() -> None:
            for number in range(50):
                await context.write(b"w%d" % number)

        writing = asyncio.ensure_future(write())
        taken = [request async for request in requests]
        await writing
        await context.write(b"read %d" % len(taken))

    async with hosted(transport, both=handler) as server:
        answers = await within(everything(server.both(sending(*[b"r"] * 70))))
        assert answers == [*[b"w%d" % number for number in range(50)], b"read 70"]


async def test_messages_go_through_serializer_and_deserializer(transport: str) -> None:
    async def handler(request: list[str], _context: Any) -> list[str]:
        return request[::-1]

    async def each(requests: AsyncIterator[list[str]], _context: Any) -> AsyncIterator[list[str]]:
        async for request in requests:
            yield request[::-1]

    def serialize(message: list[str]) -> bytes:
        return json.dumps(message).encode()

    async with hosted(transport, unary=handler, both=each, deserializer=json.loads, serializer=serialize) as server:
        assert await server.unary(b'["a", "b"]') == b'["b", "a"]'
        assert await everything(server.both(sending(b"[1, 2]", b"[]"))) == [b"[2, 1]", b"[]"]


async def test_handlers_may_be_methods_partials_and_wrappers(transport: str) -> None:
    class Servicer:
        async def unary(self, request: bytes, _context: Any) -> bytes:
            return request

        async def out(self, request: bytes, _context: Any) -> AsyncIterator[bytes]:
            yield request

    async def with_suffix(suffix: bytes, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        return b"".join([request async for request in requests]) + suffix

    servicer = Servicer()
    into = functools.partial(with_suffix, b"!")
    async with hosted(transport, unary=servicer.unary, out=servicer.out, into=into) as server:
        assert await server.unary(b"x") == b"x"
        assert await everything(server.out(b"y")) == [b"y"]
        assert await server.into(sending(b"z")) == b"z!"
