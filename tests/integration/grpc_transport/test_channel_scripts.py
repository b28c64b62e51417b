"""Servers that break off, misbehave, flood or keep silent: what a caller gets told by our channel and by grpcio's.

Most scripts end with the same status on both; where ours tells more (grpcio waits for the deadline), they stand apart.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import Limits, channel
from tests.integration.grpc_transport.hosting import failure, in_time, until, within
from tests.integration.grpc_transport.scripted import HEAD, OK, Caller, scripted
from tests.unit.grpc_transport.wire import (
    WINDOW_MAX,
    Fields,
    Setting,
    Type,
    continuation,
    data,
    goaway,
    headers,
    literals,
    message,
    ping,
    push_promise,
    rst_stream,
    settings,
    window_update,
)

GRPC = (b"content-type", b"application/grpc")
METHOD = "/tandemmq.test.Scripted/Method"


@asynccontextmanager
async def caller(kind: str, port: int, **limits: Any) -> AsyncIterator[Any]:
    """A channel of either kind."""
    if kind == "grpcio":
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as made:
            yield made
    else:
        async with channel(f"127.0.0.1:{port}", limits=Limits(**limits)) as made:
            yield made


def head(*more: tuple[bytes, bytes]) -> bytes:
    return literals([(b":status", b"200"), GRPC, *more])


def only(*fields: tuple[bytes, bytes]) -> Callable[[int], bytes]:
    """An answer of one header block."""
    return lambda stream: headers(stream, literals(fields), end=True)


def body(*parts: bytes, trailers: Fields = ((b"grpc-status", b"0"),)) -> Callable[[int], bytes]:
    """A head, DATA and trailers."""
    return lambda stream: b"".join(
        (headers(stream, HEAD), *(data(stream, part) for part in parts), headers(stream, literals(trailers), end=True))
    )


def http(status: bytes) -> Callable[[int], bytes]:
    return only((b":status", status), (b"content-type", b"text/html"))


SAME: dict[str, tuple[Callable[[int], bytes], str]] = {
    "trailers only": (
        only((b":status", b"200"), GRPC, (b"grpc-status", b"5"), (b"grpc-message", b"a%20b%zz")),
        "NOT_FOUND",
    ),
    "status beside http 404": (only((b":status", b"404"), GRPC, (b"grpc-status", b"7")), "PERMISSION_DENIED"),
    "unknown status": (only((b":status", b"200"), GRPC, (b"grpc-status", b"99")), "UNKNOWN"),
    "no status": (only((b":status", b"200"), GRPC), "UNKNOWN"),
    "no status in trailers": (body(message(b"x"), trailers=[(b"x", b"y")]), "UNKNOWN"),
    "an error behind an answer": (body(message(b"x"), trailers=[(b"grpc-status", b"5")]), "NOT_FOUND"),
    "an error inside an answer": (body(message(b"xyz")[:6], trailers=[(b"grpc-status", b"5")]), "NOT_FOUND"),
    "metadata that is not base64": (
        only((b":status", b"200"), GRPC, (b"grpc-status", b"5"), (b"x-bin", b"!")),
        "INTERNAL",
    ),
    "a web page": (
        lambda s: headers(s, literals([(b":status", b"200"), (b"content-type", b"text/html")]), end=True),
        "UNKNOWN",
    ),
    "DATA that ends": (lambda s: headers(s, HEAD) + data(s, message(b"x"), end=True), "UNKNOWN"),
    "compressed without saying how": (body(b"\1\0\0\0\1x"), "INTERNAL"),
    "a message over the limit": (lambda s: headers(s, HEAD) + data(s, b"\0\1\0\0\0x"), "RESOURCE_EXHAUSTED"),
    "capitals in a name": (lambda s: headers(s, literals([(b":status", b"200"), (b"Content-Type", b"x")])), "INTERNAL"),
    "too many fields": (
        lambda s: (
            headers(s, (block := head(*[(b"x-%d" % at, b"v" * 1000) for at in range(20)]))[:16000], more=True, end=True)
            + continuation(s, block[16000:])
        ),
        "RESOURCE_EXHAUSTED",
    ),
    "refused by GOAWAY": (lambda s: goaway(0), "UNAVAILABLE"),
    **{
        f"http {status}": (http(b"%d" % status), code)
        for status, code in {
            204: "UNKNOWN",
            301: "UNKNOWN",
            400: "INTERNAL",
            401: "UNAUTHENTICATED",
            403: "PERMISSION_DENIED",
            404: "UNIMPLEMENTED",
            429: "UNAVAILABLE",
            500: "UNKNOWN",
            502: "UNAVAILABLE",
            503: "UNAVAILABLE",
            504: "UNAVAILABLE",
        }.items()
    },
    **{
        f"reset {code}": (lambda s, code=code: rst_stream(s, code), status)  # type: ignore[misc]
        for code, status in {
            0: "INTERNAL",
            1: "INTERNAL",
            2: "INTERNAL",
            5: "INTERNAL",
            8: "CANCELLED",
            11: "RESOURCE_EXHAUSTED",
            12: "PERMISSION_DENIED",
            99: "INTERNAL",
        }.items()
    },
}
"""What is said on the stream of a call -> the status that both callers see."""

STRICTER: dict[str, tuple[Callable[[int], bytes], str]] = {
    "two answers of a method with one": (body(message(b"x") + message(b"y")), "INTERNAL"),
    "no answer of a method with one": (body(), "INTERNAL"),
    "half an answer": (body(message(b"xyz")[:6]), "INTERNAL"),
    "an unknown flag": (body(b"\2\0\0\0\1x"), "INTERNAL"),
    "DATA before the head": (lambda s: data(s, message(b"x")), "INTERNAL"),
    "no :status": (lambda s: headers(s, literals([GRPC])), "INTERNAL"),
    "a status that is no number": (only((b":status", b"200"), GRPC, (b"grpc-status", b"abc")), "UNKNOWN"),
    "another length than announced": (
        lambda s: headers(s, head((b"content-length", b"9"))) + data(s, message(b"x")) + headers(s, OK, end=True),
        "INTERNAL",
    ),
    "a window that grows by nothing": (lambda s: window_update(s, 0), "INTERNAL"),
    "a push": (lambda s: push_promise(s, 2, literals([(b":method", b"GET")])), "UNAVAILABLE"),
    "DATA on no stream": (lambda s: data(0, b"x"), "UNAVAILABLE"),
    "an answer that nobody asked for": (lambda s: headers(s + 98, HEAD), "UNAVAILABLE"),
    "an answer on a stream of its own": (lambda s: headers(2, HEAD), "UNAVAILABLE"),
    "a header block that cannot be read": (lambda s: headers(s, b"\xff" * 9), "UNAVAILABLE"),
    "a window over the limit": (lambda s: window_update(0, WINDOW_MAX), "UNAVAILABLE"),
    "a server that asks for pushes": (lambda s: settings([(Setting.ENABLE_PUSH, 1)]), "UNAVAILABLE"),
    "garbage": (lambda s: b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10, "UNAVAILABLE"),
    "a flood of PING": (lambda s: ping() * 20_000, "UNAVAILABLE"),
    "a flood of SETTINGS": (lambda s: settings() * 200, "UNAVAILABLE"),
    "a flood of empty DATA": (lambda s: headers(s, HEAD) + data(s) * 20_000, "UNAVAILABLE"),
    "a flood of informational answers": (
        lambda s: headers(s, literals([(b":status", b"103")])) * 20_000,
        "UNAVAILABLE",
    ),
    "a header block without end": (
        lambda s: headers(s, b"", more=True) + continuation(s, b"x" * 64, more=True) * 200,
        "UNAVAILABLE",
    ),
}
"""The same for ours alone: grpcio hands out nothing as an answer, another status, or waits for the deadline."""


async def answered(said: Callable[[int], bytes], to: Caller) -> None:
    await to.greet()
    to.say(said(await to.request()))


@pytest.mark.parametrize("kind", ["grpcio", "fast"])
@pytest.mark.parametrize("name", SAME)
async def test_both_callers_understand_the_same(kind: str, name: str) -> None:
    said, expected = SAME[name]
    async with scripted(lambda to: answered(said, to)) as server, caller(kind, server.port) as made:
        error = await failure(made.unary_unary(METHOD)(b"x", timeout=30))
        assert error.code().name == expected, error.details()


@pytest.mark.parametrize("name", STRICTER)
async def test_what_ours_takes_more_seriously(name: str) -> None:
    said, expected = STRICTER[name]
    async with scripted(lambda to: answered(said, to)) as server, caller("fast", server.port) as made:
        error = await failure(made.unary_unary(METHOD)(b"x", timeout=30))
        assert error.code().name == expected, error.details()


async def silent(_to: Caller) -> None:
    """Says nothing."""


async def hang_up(to: Caller) -> None:
    to.hang_up()


async def garbage(to: Caller) -> None:
    to.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def hang_up_after_greeting(to: Caller) -> None:
    await to.greet()
    to.hang_up()


async def hang_up_after_request(to: Caller) -> None:
    await to.greet()
    await to.request()
    to.hang_up()


async def break_off_in_a_frame(to: Caller) -> None:
    await to.greet()
    stream = await to.request()
    to.say((headers(stream, HEAD) + data(stream, message(b"x")))[:-1])
    to.hang_up()


async def greet_and_wait(to: Caller) -> None:
    await to.greet()


ENDINGS: list[tuple[Callable[[Caller], Awaitable[None]], str]] = [
    (silent, "DEADLINE_EXCEEDED"),
    (greet_and_wait, "DEADLINE_EXCEEDED"),
    (hang_up, "UNAVAILABLE"),
    (garbage, "UNAVAILABLE"),
    (hang_up_after_greeting, "UNAVAILABLE"),
    (hang_up_after_request, "UNAVAILABLE"),
    (break_off_in_a_frame, "UNAVAILABLE"),
]


@pytest.mark.parametrize("kind", ["grpcio", "fast"])
@pytest.mark.parametrize(("script", "expected"), ENDINGS)
async def test_connections_that_end_or_never_begin(
    kind: str, script: Callable[[Caller], Awaitable[None]], expected: str
) -> None:
    async with scripted(script) as server, caller(kind, server.port) as made:
        timeout = 0.3 if expected == "DEADLINE_EXCEEDED" else 30
        assert (await failure(made.unary_unary(METHOD)(b"x", timeout=timeout))).code().name == expected
        assert (await failure(made.unary_stream(METHOD)(b"x", timeout=timeout))).code().name == expected


@pytest.mark.parametrize("kind", ["grpcio", "fast"])
async def test_an_answer_in_pieces_of_one_byte(kind: str) -> None:
    async def slowly(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        await to.say_slowly(headers(stream, HEAD), data(stream, message(b"abc")), headers(stream, OK, end=True))

    async with scripted(slowly) as server, caller(kind, server.port) as made:
        assert await within(made.unary_unary(METHOD)(b"x")) == b"abc"


async def test_informational_answers_come_before_the_answer() -> None:
    def said(stream: int) -> bytes:
        return headers(stream, literals([(b":status", b"103")])) + body(message(b"x"))(stream)

    async with scripted(lambda to: answered(said, to)) as server, caller("fast", server.port) as made:
        assert await within(made.unary_unary(METHOD)(b"x")) == b"x"


@pytest.mark.parametrize("kind", ["grpcio", "fast"])
async def test_goaway_lets_calls_end_and_the_next_one_goes_elsewhere(kind: str) -> None:
    async def leaving(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        to.say(goaway(stream))
        to.answer(stream, b"the last one")

    async def staying(to: Caller) -> None:
        await to.greet()
        to.answer(await to.request(), b"elsewhere")

    async with scripted(leaving, staying) as server, caller(kind, server.port) as made:
        assert await within(made.unary_unary(METHOD)(b"x", timeout=60)) == b"the last one"
        assert await within(made.unary_unary(METHOD)(b"x", timeout=60)) == b"elsewhere"
        assert len(server.callers) == 2
        await within(server.callers[0].gone.wait())


async def test_a_call_that_nobody_looked_at_is_begun_once_more() -> None:
    async def refusing(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        to.say(goaway(0) if len(server.callers) == 1 else rst_stream(stream, 7))
        if len(server.callers) == 2:
            to.answer(await to.request(), b"at last")

    async with scripted(refusing) as server, caller("fast", server.port) as made:
        error = await failure(made.unary_unary(METHOD)(b"x", timeout=60))
        assert error.code() is grpc.StatusCode.UNAVAILABLE, "refused twice"
        assert await within(made.unary_unary(METHOD)(b"x", timeout=60)) == b"at last"


async def test_calls_wait_for_a_stream_when_the_server_wants_few() -> None:
    async def one_by_one(to: Caller) -> None:
        await to.greet((Setting.MAX_CONCURRENT_STREAMS, 1))
        for at in range(3):
            stream = await to.request()
            assert sum(frame.type == Type.HEADERS for frame in to.frames) == at + 1
            await asyncio.sleep(0.02)  # a second call would come meanwhile
            to.answer(stream, b"%d" % at)

    async with scripted(one_by_one) as server, caller("fast", server.port) as made:
        calls = [made.unary_unary(METHOD)(b"x", timeout=60) for _ in range(3)]
        assert [await within(call) for call in calls] == [b"0", b"1", b"2"]


async def test_a_server_that_falls_silent_is_left() -> None:
    async def deaf(to: Caller) -> None:
        await to.greet()
        await to.request()
        await asyncio.Event().wait()

    async with (
        scripted(deaf) as server,
        caller("fast", server.port, keepalive_seconds=0.5, keepalive_timeout_seconds=0.5) as made,
    ):
        error = await failure(made.unary_unary(METHOD)(b"x"))
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "does not answer" in str(error.details())


async def test_a_cancelled_call_is_reset_and_what_comes_late_is_ignored() -> None:
    streams: list[int] = []

    async def late(to: Caller) -> None:
        await to.greet()
        streams.append(await to.request())
        frame = await to.next(Type.RST_STREAM)
        assert (frame.stream, frame.payload) == (streams[0], b"\0\0\0\x08")
        to.answer(streams[0], b"too late")
        to.answer(await to.request(), b"in time")

    async with scripted(late) as server, caller("fast", server.port) as made:
        call = made.unary_unary(METHOD)(b"x")
        await within(until(lambda: bool(streams)))
        assert call.cancel()
        assert not call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await call.code() is grpc.StatusCode.CANCELLED
        assert await within(made.unary_unary(METHOD)(b"x")) == b"in time"


async def test_a_deadline_is_told_and_kept() -> None:
    told: list[bytes] = []

    async def reset(to: Caller) -> None:
        await to.greet()
        await to.request()
        told.append(to.frames[-2].payload)
        assert (await to.next(Type.RST_STREAM)).payload == b"\0\0\0\x08"
        told.append(b"reset")

    async def attempt(seconds: float) -> bool:
        async with scripted(reset) as server, caller("fast", server.port) as made:
            error = await failure(made.unary_unary(METHOD)(b"x", timeout=seconds))
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if told:
                await within(until(lambda: len(told) == 2))
                assert b"grpc-timeout" in told[0]
        return bool(told)

    await in_time(attempt)


async def test_a_stream_that_is_not_read_stops_its_server_at_the_window() -> None:
    async def flooding(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        to.say(headers(stream, HEAD), *[data(stream, message(bytes(995)))] * 65)
        opened = await to.next(Type.WINDOW_UPDATE)
        while opened.stream != stream:
            opened = await to.next(Type.WINDOW_UPDATE)
        to.say(headers(stream, OK, end=True))

    async with scripted(flooding) as server, caller("fast", server.port, stream_window=65_535) as made:
        call = made.unary_stream(METHOD)(b"x")
        await within(until(lambda: len(call._queue) == 65))
        assert not any(frame.type == Type.WINDOW_UPDATE and frame.stream for frame in server.callers[0].frames)
        assert len([answer async for answer in call]) == 65


async def test_a_server_that_ignores_the_window_is_stopped() -> None:
    async def flooding(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        to.say(headers(stream, HEAD), *[data(stream, message(bytes(995)))] * 100)

    async with scripted(flooding) as server, caller("fast", server.port, stream_window=65_535) as made:
        call = made.unary_stream(METHOD)(b"x")
        assert await within(call.code()) is grpc.StatusCode.INTERNAL
        assert "FLOW_CONTROL_ERROR" in await call.details()


async def test_a_server_that_wants_fewer_pings_gets_them() -> None:
    async def annoyed(to: Caller) -> None:
        await to.greet()
        stream = await to.request()
        to.say(goaway(stream, 11, b"too_many_pings"))
        to.answer(stream)

    async with scripted(annoyed) as server, caller("fast", server.port, keepalive_seconds=7) as made:
        assert await within(made.unary_unary(METHOD)(b"x")) == b"answer"
        assert made.limits.keepalive_seconds == 14
