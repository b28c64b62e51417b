"""Metadata in all three places: the caller's, before the answer, behind it."""

from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import channel_to, failure, hosted, until, within

SENT = (
    ("x-plain", "value"),
    ("x-repeated", "one"),
    ("x-repeated", "two"),
    ("x-empty", ""),
    ("x-spaces", "a b  c"),
    ("x-punctuation", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    ("x-binary-bin", bytes(range(256))),
    ("x-comma-bin", b",,"),
    ("x-empty-bin", b""),
    ("x-repeated-bin", b"\x00"),
    ("x-repeated-bin", b"\xff\xff"),
    ("x-long", "l" * 3000),
    ("x.dots_and-dashes9", "yes"),
)


def own(metadata: Any) -> list[tuple[str, str | bytes]]:
    """What begins with x, sorted by key: grpc libraries may put keys into another order, not values of one key."""
    return sorted(((key, value) for key, value in metadata if key[:1] == "x"), key=lambda pair: pair[0])


ARRIVED = own(SENT)


async def test_the_handler_sees_what_the_caller_sent(transport: str) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.invocation_metadata())
        return request

    async with hosted(transport, unary=handler) as server:
        await server.unary(b"", metadata=SENT)
        assert own(seen[0]) == ARRIVED


async def test_invocation_metadata_is_a_tuple_of_pairs_with_names(transport: str) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.invocation_metadata())
        return request

    async with hosted(transport, unary=handler) as server:
        await server.unary(b"", metadata=(("x-a", "1"), ("x-b-bin", b"2")))
    metadata: Any = seen[0]
    assert type(metadata) is tuple
    assert all((*entry,) == (entry.key, entry.value) for entry in seen[0])
    by_key = dict(metadata)
    assert (by_key["x-a"], by_key["x-b-bin"]) == ("1", b"2")
    assert "grpc-python-asyncio" in by_key["user-agent"]
    transports_own = {":path", ":method", "content-type", "te", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding"}
    assert not transports_own & by_key.keys()


async def test_the_caller_sees_initial_and_trailing_metadata(transport: str) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(SENT)
        context.set_trailing_metadata(SENT)
        return request

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"")
        assert own(await within(call.initial_metadata())) == ARRIVED
        await call
        assert own(await within(call.trailing_metadata())) == ARRIVED


async def test_initial_metadata_goes_before_the_first_answer(transport: str) -> None:
    async def handler(requests: Any, context: Any) -> None:
        await context.send_initial_metadata((("x-early", "yes"),))
        async for request in requests:
            await context.write(request)

    async with hosted(transport, both=handler) as server:
        call = server.both()
        assert own(await within(call.initial_metadata())) == [("x-early", "yes")]
        await call.write(b"1")
        assert await within(call.read()) == b"1"
        await call.done_writing()
        assert await within(call.read()) is grpc.aio.EOF


async def test_without_metadata_there_is_none(transport: str) -> None:
    async with hosted(transport) as server:
        call = server.method("Echo")(b"")
        assert own(await call.initial_metadata()) == []
        await call
        assert own(await call.trailing_metadata()) == []


async def test_a_failure_without_answers_has_only_trailing_metadata(transport: str) -> None:
    async with hosted(transport) as server:
        error = await failure(server.method("Fail")(b"NOT_FOUND"))
        assert list(error.initial_metadata()) == []
        assert own(error.trailing_metadata()) == [("x-failed", "yes"), ("x-failed-bin", b"\x00\x01\xff")]


async def test_metadata_may_be_an_aio_metadata_object(transport: str) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(grpc.aio.Metadata(("x-a", "1"), ("x-a", "2")))
        context.set_trailing_metadata(grpc.aio.Metadata(("x-b", "3")))
        return request

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"")
        assert own(await within(call.initial_metadata())) == [("x-a", "1"), ("x-a", "2")]
        await call
        assert own(await call.trailing_metadata()) == [("x-b", "3")]


async def test_trailing_metadata_can_be_set_again_and_read_back(transport: str) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        seen.append(context.trailing_metadata())
        context.set_trailing_metadata((("x-a", "first"),))
        context.set_trailing_metadata((("x-a", "second"),))
        seen.append(context.trailing_metadata())
        return request

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"")
        await call
        assert own(await call.trailing_metadata()) == [("x-a", "second")]
    assert [tuple(each) for each in seen] == [(), (("x-a", "second"),)]


async def test_initial_metadata_twice_is_an_error_of_the_handler(transport: str) -> None:
    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata((("x-a", "1"),))
        with pytest.raises(grpc.aio.UsageError):
            await context.send_initial_metadata((("x-a", "2"),))
        return b"went on"

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"")
        assert await within(call) == b"went on"
        assert own(await call.initial_metadata()) == [("x-a", "1")]


async def test_initial_metadata_after_an_answer_is_an_error_of_the_handler(transport: str) -> None:
    seen = []

    async def handler(_request: bytes, context: Any) -> None:
        await context.write(b"1")
        try:
            await context.send_initial_metadata((("x-a", "1"),))
        except grpc.aio.UsageError as error:
            seen.append(error)

    async with hosted(transport, out=handler) as server:
        call = server.out(b"")
        assert await within(call.read()) == b"1"
        assert await within(call.read()) is grpc.aio.EOF
    assert len(seen) == 1


@pytest.mark.parametrize(
    "metadata",
    [
        (("X-Upper", "case"),),
        (("x-newline", "a\nb"),),
        (("x y", "space in key"),),
        (("x-nul", "a\x00b"),),
        (("x-letters", "é"),),
    ],
)
async def test_metadata_that_cannot_be_sent_fails_the_call_and_nothing_else(transport: str, metadata: Any) -> None:
    async def initial(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(metadata)
        return request

    async def trailing(_requests: Any, context: Any) -> bytes:
        context.set_trailing_metadata(metadata)
        return b"answer"

    async with hosted(transport, unary=initial, into=trailing) as server:
        error = await failure(server.unary(b"", timeout=60))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
        error = await failure(server.into(timeout=60))
        assert error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_a_rich_status_travels_in_trailing_metadata(transport: str) -> None:
    """`grpc-status-details-bin` carries a google.rpc.Status: the name is grpc's, yet a handler's to set."""
    details = (("grpc-status-details-bin", b"\x08\x05"), ("grpc-retry-pushback-ms", "-1"))

    async def handler(_request: bytes, context: Any) -> None:
        await context.abort(grpc.StatusCode.NOT_FOUND, "rich", details)

    async with hosted(transport, unary=handler) as server:
        error = await failure(server.unary(b""))
        assert error.code() is grpc.StatusCode.NOT_FOUND
        assert set(details) <= set(error.trailing_metadata())


async def test_metadata_longer_than_a_frame(transport: str) -> None:
    """It goes out as HEADERS and CONTINUATION."""
    long, longer = "i" * 30_000, "t" * 40_000

    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata((("x-initial", long),))
        context.set_trailing_metadata((("x-trailing", longer),))
        return request

    options = [("grpc.max_metadata_size", 100_000), ("grpc.absolute_max_metadata_size", 100_000)]
    async with hosted(transport, unary=handler) as server, channel_to(server.target, options=options) as channel:
        call = server.own("unary", channel)(b"x")
        assert await within(call) == b"x"
        assert own(await call.initial_metadata()) == [("x-initial", long)]
        assert own(await call.trailing_metadata()) == [("x-trailing", longer)]


async def test_metadata_over_the_servers_limit_fails_the_call_only(transport: str) -> None:
    async with hosted(transport) as server:
        waiting = server.method("Wait")(b"")
        await until(lambda: server.probe.active == 1)
        error = await failure(server.method("Echo")(b"", metadata=(("x-long", "l" * 17_000),), timeout=60))
        assert error.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNKNOWN)
        assert await server.method("Echo")(b"lives") == b"lives"
        assert not waiting.done()
        waiting.cancel()
