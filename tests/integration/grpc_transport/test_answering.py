"""A handler without tasks: requests handed to a function in the turn that brought them, answers written at once."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import BytesValue

from tandemmq.common.grpc_transport import Answering, answer_at_once, answering, append_field, encoded_field
from tests.integration.grpc_transport.hosting import hosted, sending, until, within
from tests.integration.grpc_transport.wire import wired
from tests.unit.grpc_transport.wire import message

Handler = Callable[[Any, Any], Any]


def talking(on_call: Callable[[Answering[bytes, bytes]], Callable[[bytes], object]]) -> Handler:
    """A handler whose requests go to what `on_call` gives."""

    async def handler(_requests: Any, context: Any) -> None:
        call: Answering[bytes, bytes] = answering(context)
        await call.listen(on_call(call))

    return handler


async def test_requests_are_answered_in_order_and_the_end_is_seen() -> None:
    async with hosted(
        "fast", both=talking(lambda call: lambda request: call.write_now(b"<" + request + b">"))
    ) as server:
        call = server.both(sending(b"a", b"", b"c" * 200_000))
        assert [len(answer) async for answer in call] == [3, 2, 200_002]
        assert await call.code() is grpc.StatusCode.OK


async def test_what_came_before_the_handler_listened_is_not_lost() -> None:
    heard: list[bytes] = []

    async def handler(_requests: Any, context: Any) -> None:
        await asyncio.sleep(0.05)
        await answering(context).listen(heard.append)

    async with hosted("fast", both=handler) as server:
        call = server.both(sending(*(b"%d" % number for number in range(50))))
        assert [answer async for answer in call] == []
        assert heard == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 300_000])
async def test_a_field_is_appended_to_the_next_answer_alone(size: int) -> None:
    async def handler(_request: bytes, context: Any) -> Any:
        assert append_field(context, BytesValue.VALUE_FIELD_NUMBER, b"v" * size)
        yield BytesValue()
        yield BytesValue(value=b"set")

    async with hosted("fast", out=handler, serializer=BytesValue.SerializeToString) as server:
        answers = [BytesValue.FromString(answer).value async for answer in server.out(b"")]
        assert answers == [b"v" * size, b"set"]


async def test_fields_are_appended_in_order() -> None:
    """A large number of a field takes two bytes."""

    async def handler(_request: bytes, context: Any) -> bytes:
        assert append_field(context, 1, b"first")
        assert append_field(context, 1000, b"second")
        return b""

    async with hosted("fast", unary=handler) as server:
        assert await server.unary(b"") == b"\x0a\x05first" + b"\xc2\x3e\x06second"


async def test_a_context_of_grpcio_takes_no_field() -> None:
    async def handler(_request: bytes, context: Any) -> bytes:
        return b"set it" if not append_field(context, 1, b"value") else b""

    async with hosted("grpcio", unary=handler) as server:
        assert await server.unary(b"") == b"set it"


CALLER_STUMBLED = "Internal error from Core"
"""What grpcio's caller says when the status arrives just while it writes a message: its own fault, now and then."""


async def test_what_the_function_raises_ends_the_call_and_nothing_more_is_handed_over() -> None:
    heard: list[bytes] = []

    def take(request: bytes) -> None:
        heard.append(request)
        if request == b"bad":
            raise ValueError("secret")

    async with hosted("fast", both=talking(lambda _call: take)) as server:

        async def failure() -> grpc.aio.AioRpcError:
            heard.clear()
            call = server.both(sending(b"good", b"bad", b"more"))
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                [answer async for answer in call]
            return failed.value

        error = await failure()
        while error.details() == CALLER_STUMBLED:  # until the test's own timeout
            error = await failure()
        assert error.code() is grpc.StatusCode.UNKNOWN
        assert "secret" not in (error.details() or "")
        assert heard == [b"good", b"bad"]


async def test_a_caller_that_goes_ends_the_handler() -> None:
    ended = asyncio.Event()
    calls: list[Answering[bytes, bytes]] = []

    async def handler(_requests: Any, context: Any) -> None:
        calls.append(answering(context))
        try:
            await calls[0].listen(lambda _request: None)
        finally:
            ended.set()

    async with hosted("fast", both=handler) as server:
        call = server.both()
        await call.write(b"x")
        await until(lambda: bool(calls))
        call.cancel()
        await within(ended.wait())
        with pytest.raises(grpc.aio.UsageError):
            calls[0].write_now(b"too late")


async def test_a_caller_that_does_not_read_is_told_of_and_nothing_piles_up() -> None:
    refused = asyncio.Event()
    written = 0

    async def handler(_requests: Any, context: Any) -> None:
        nonlocal written
        call: Answering[bytes, bytes] = answering(context)
        heard = call.listen(lambda _request: None)
        while call.write_now(bytes(100_000)):
            written += 1
            call.flush()
            await asyncio.sleep(0)
        refused.set()
        await heard

    async with hosted("fast", both=handler) as server:
        call = server.both()
        await call.write(b"x")
        await within(refused.wait())
        assert written < 200
        call.cancel()


async def test_grpcios_contexts_do_not_have_it() -> None:
    async def handler(_requests: Any, context: Any) -> None:
        answering(context)

    async with hosted("grpcio", both=handler) as server:
        call = server.both(sending(b"x"))
        with pytest.raises(grpc.aio.AioRpcError):
            [answer async for answer in call]


async def test_requests_are_heard_whole_and_in_order_however_they_are_cut() -> None:
    heard: list[bytes] = []

    def on_call(call: Answering[bytes, bytes]) -> Callable[[bytes], object]:
        call.write_now(b"listens")
        return heard.append

    async with hosted("fast", both=talking(on_call)) as server, wired(server.target) as wire:
        stream = wire.call("/tandemmq.test.Own/both", ended=False)
        await wire.wait_for(lambda: wire.answers[stream].data)
        whole, cut, joined = message(b"whole"), message(b"cut in two"), message(b"") + message(b"joined")
        for body in (whole, cut[:9], cut[9:], whole, joined, cut[:3], cut[3:] + whole[:7], whole[7:], whole):
            wire.send(stream, body, False)
        wire.send(stream, message(b"last"), True)
        assert (await within(wire.answer(stream))).status == "0"
    assert heard == [
        b"whole", b"cut in two", b"whole", b"", b"joined", b"cut in two", b"whole", b"whole", b"last",
    ]  # fmt: skip


def reading(at_once: Callable[[bytes], bytes | None], begun: asyncio.Event) -> Handler:
    """A handler that marks the requests that it reads itself."""

    async def handler(requests: Any, context: Any) -> Any:
        answer_at_once(context, at_once)
        begun.set()
        async for request in requests:
            yield b"read " + request

    return handler


async def rest(call: Any) -> list[bytes]:
    """The answers that still come."""
    answers: list[bytes] = []
    while (answer := await call.read()) is not grpc.aio.EOF:
        answers.append(answer)
    return answers


async def test_requests_are_answered_before_they_are_read_and_in_order() -> None:
    """Where the function answers none, the handler reads it, as what comes while that one waits to be read."""
    begun = asyncio.Event()
    async with hosted("fast", both=reading(lambda one: None if one == b"read" else b"at once " + one, begun)) as server:
        call = server.both()
        await call.write(b"read")
        assert await call.read() == b"read read"
        for number in range(20):
            await call.write(b"%d" % number)
            assert await call.read() == b"at once %d" % number
            await call.write(b"read")
            assert await call.read() == b"read read"
        for number in range(200):
            await call.write(b"read" if number % 3 == 0 else b"%d" % number)
        await call.done_writing()
        answers = await rest(call)
        assert [answer.rpartition(b" ")[2] for answer in answers] == [
            b"read" if number % 3 == 0 else b"%d" % number for number in range(200)
        ]


async def test_requests_in_pieces_and_large_answers_are_answered_at_once_too() -> None:
    """An answer for which the window is too small waits, and what comes then is read."""
    begun, first = asyncio.Event(), asyncio.Event()

    async def requests() -> Any:
        yield b"first"
        await first.wait()
        for number in range(30):
            yield bytes([number]) * 100_000

    async with hosted("fast", both=reading(lambda one: one * 3, begun)) as server:
        lengths: list[int] = []
        last: list[int] = []
        async for answer in server.both(requests()):
            first.set()
            lengths.append(len(answer))
            last.append(answer[-1])
        assert last[1:] == list(range(30))
        assert set(lengths[1:]) <= {300_000, 100_005}
        assert lengths[1] == 300_000, "nothing waits any more"


async def test_what_a_function_raises_that_answers_at_once_ends_its_call_alone() -> None:
    first = asyncio.Event()

    def at_once(request: bytes) -> bytes | None:
        if request == b"bad":
            raise ValueError("secret")
        return None

    async def requests() -> Any:
        yield b"first"
        await first.wait()
        yield b"bad"
        await asyncio.Event().wait()

    handler = reading(at_once, asyncio.Event())
    async with hosted("fast", both=handler, unary=lambda request, _context: request) as server:
        call = server.both(requests())
        assert await anext(aiter(call)) == b"read first"
        first.set()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await anext(aiter(call))
        assert failed.value.code() is grpc.StatusCode.UNKNOWN
        assert "secret" not in (failed.value.details() or "")
        assert await server.unary(b"still there") == b"still there"


async def test_nothing_is_held_of_what_comes_with_a_request_that_ends_its_call() -> None:
    def at_once(request: bytes) -> bytes | None:
        if request == b"bad":
            raise ValueError(request)
        return request

    async with hosted("fast", both=reading(at_once, asyncio.Event())) as server, wired(server.target) as wire:
        stream = wire.call("/tandemmq.test.Own/both", ended=False)
        wire.send(stream, message(b"first"), False)
        await wire.wait_for(lambda: wire.answers[stream].messages)
        wire.send(stream, message(b"bad") + message(b"next"), False)
        assert (await within(wire.answer(stream))).messages[1:] == []
        server_side: Any = server.server
        assert [protocol.connection.held for protocol in server_side.protocols] == [0]


async def test_requests_that_are_messages_are_read() -> None:
    begun = asyncio.Event()

    async def handler(requests: Any, context: Any) -> Any:
        answer_at_once(context, lambda _request: b"at once")
        begun.set()
        async for request in requests:
            yield request.value

    async with hosted("fast", both=handler, deserializer=BytesValue.FromString) as server:
        call = server.both()
        for value in (b"one", b"two"):
            await call.write(BytesValue(value=value).SerializeToString())
            assert await call.read() == value
            await within(begun.wait())


@pytest.mark.parametrize("listens", [True, False])
async def test_a_call_that_has_ended_does_not_wait_for_the_garbage_collector(listens: bool) -> None:
    """Though what answers its requests knows the call."""
    calls: list[weakref.ref[Any]] = []

    async def handler(requests: Any, context: Any) -> Any:
        calls.append(weakref.ref(context))
        if listens:
            await answering(context).listen(context.write_now)
            return
        answer_at_once(context, partial(_echo, context))
        async for request in requests:
            await context.write(request)

    async with hosted("fast", both=handler) as server:
        gc.disable()
        try:
            for _ in range(3):
                call = server.both()
                for _ in range(3):
                    await call.write(b"x")
                    assert await call.read() == b"x"
                await call.done_writing()
                assert await rest(call) == []
            await until(lambda: not any(one() for one in calls))
        finally:
            gc.enable()


def _echo(_context: Any, request: bytes) -> bytes:
    return request


@pytest.mark.parametrize("size", [0, 127, 128, 20_000])
def test_a_field_is_encoded_as_protobuf_does(size: int) -> None:
    value = b"v" * size
    assert BytesValue.FromString(encoded_field(BytesValue.VALUE_FIELD_NUMBER, value)).value == value
