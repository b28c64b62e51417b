"""Compression both ways, and limits on the size of messages."""

import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import everything, failure, hosted, sending, within
from tests.integration.grpc_transport.wire import DATA, END_STREAM, frame, message, wired

TEXT = b"what is said over and over " * 2000
ALGORITHMS = [grpc.Compression.Gzip, grpc.Compression.Deflate]
NAMES = {grpc.Compression.Gzip: "gzip", grpc.Compression.Deflate: "deflate"}
PACKERS: dict[str, Any] = {"gzip": gzip.compress, "deflate": zlib.compress}
ACCEPTS = (b"grpc-accept-encoding", b"identity,deflate,gzip")
OWN_UNARY = "/tandemmq.test.Own/unary"


def unpacked(algorithm: grpc.Compression, packed: bytes) -> bytes:
    return zlib.decompress(packed, 31 if algorithm is grpc.Compression.Gzip else 15)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_callers_may_compress(transport: str, algorithm: grpc.Compression) -> None:
    async with hosted(transport, client_compression=algorithm) as server:
        assert await server.method("Echo")(TEXT) == TEXT
        assert await server.method("Echo")(b"") == b""
        assert await server.method("Collect")(sending(TEXT, b"", b"short")) == TEXT + b"||short"
        assert await everything(server.method("Converse")(sending(TEXT, b"x"))) == [TEXT.upper(), b"X"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_server_may_compress_all_it_says(transport: str, algorithm: grpc.Compression) -> None:
    async with hosted(transport, server_options={"compression": algorithm}) as server:
        assert await server.method("Echo")(TEXT) == TEXT
        assert await everything(server.method("Repeat")(b"3:50000")) == [b"r" * 50_000] * 3
        async with wired(server.target) as wire:
            answer = await wire.answer(wire.call("Echo", TEXT, more=[ACCEPTS]))
            assert dict(answer.head)["grpc-encoding"] == NAMES[algorithm]
            assert unpacked(algorithm, answer.messages[0]) == TEXT
            assert len(answer.data) < len(TEXT) / 10


async def test_nothing_is_compressed_for_a_caller_that_does_not_accept_it(transport: str) -> None:
    if transport == "grpcio":
        pytest.skip("grpcio compresses for all")
    options = {"compression": grpc.Compression.Gzip}
    async with hosted(transport, server_options=options) as server, wired(server.target) as wire:
        answer = await wire.answer(wire.call("Echo", TEXT))
        assert answer.messages == [TEXT]
        assert dict(answer.head).get("grpc-encoding", "identity") == "identity"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_handler_may_compress_its_call(transport: str, algorithm: grpc.Compression) -> None:
    async def unary(request: bytes, context: Any) -> bytes:
        context.set_compression(algorithm)
        return request

    async def out(request: bytes, context: Any) -> AsyncIterator[bytes]:
        context.set_compression(algorithm)
        yield request
        context.disable_next_message_compression()
        yield request
        yield request

    async with hosted(transport, unary=unary, out=out) as server:
        assert await server.unary(TEXT) == TEXT
        assert await everything(server.out(TEXT)) == [TEXT] * 3
        async with wired(server.target) as wire:
            answer = await wire.answer(wire.call("/tandemmq.test.Own/out", TEXT, more=[ACCEPTS]))
            assert dict(answer.head)["grpc-encoding"] == NAMES[algorithm]
            first, second, third = answer.messages
            assert second == TEXT
            assert unpacked(algorithm, first) == unpacked(algorithm, third) == TEXT
            plain = await wire.answer(wire.call("Echo", TEXT, more=[ACCEPTS]))
            assert plain.messages == [TEXT], "the next call is another one"


async def test_compression_cannot_be_set_after_the_head_was_sent(transport: str) -> None:
    seen: list[Exception] = []

    async def handler(request: bytes, context: Any) -> bytes:
        await context.send_initial_metadata(())
        try:
            context.set_compression(grpc.Compression.Gzip)
        except RuntimeError as error:
            seen.append(error)
        return request

    async with hosted(transport, unary=handler) as server:
        assert await within(server.unary(b"x")) == b"x"
    assert len(seen) == 1


async def test_no_compression_overrides_the_servers(transport: str) -> None:
    if transport == "grpcio":
        pytest.skip("grpcio does not know how to stop compressing")

    async def handler(request: bytes, context: Any) -> bytes:
        context.set_compression(grpc.Compression.NoCompression)
        return request

    options = {"compression": grpc.Compression.Gzip}
    async with hosted(transport, unary=handler, server_options=options) as server, wired(server.target) as wire:
        assert (await wire.answer(wire.call(OWN_UNARY, TEXT, more=[ACCEPTS]))).messages == [TEXT]


@pytest.mark.parametrize("name", PACKERS)
async def test_compressed_messages_in_pieces_and_plain_ones_between(transport: str, name: str) -> None:
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Collect", ended=False, more=[(b"grpc-encoding", name.encode())])
        raw = message(PACKERS[name](b"packed"), 1) + message(b"plain") + message(PACKERS[name](b""), 1)
        for at in range(len(raw)):
            wire.write(frame(DATA, 0, stream, raw[at : at + 1]))
        wire.write(frame(DATA, END_STREAM, stream))
        assert (await wire.answer(stream)).messages == [b"packed|plain|"]


async def test_an_unknown_encoding_is_unimplemented(transport: str) -> None:
    """As gRPC's specification has it; grpcio says INTERNAL."""
    async with hosted(transport) as server, wired(server.target) as wire:
        answer = await wire.answer(wire.call("Echo", b"x", more=[(b"grpc-encoding", b"snappy")]))
        assert answer.status == ("12" if transport == "fast" else "13")
        assert transport == "grpcio" or "gzip" in dict(answer.head)["grpc-accept-encoding"]


@pytest.mark.parametrize(
    "raw",
    [message(b"not packed", 1), message(gzip.compress(b"cut off")[:-9], 1), message(gzip.compress(b"x") + b"more", 1)],
    ids=["not packed", "cut off", "more behind"],
)
async def test_what_cannot_be_unpacked_fails_the_call(transport: str, raw: bytes) -> None:
    """grpcio takes what is after the packed bytes as nothing; the call must fail or give what was packed."""
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Echo", ended=False, more=[(b"grpc-encoding", b"gzip")])
        wire.write(frame(DATA, END_STREAM, stream, raw))
        answer = await wire.answer(stream)
        assert answer.status not in (None, "0") or answer.reset is not None or answer.messages == [b"x"]
        assert (await wire.answer(wire.call("Echo", b"lives"))).messages == [b"lives"]


async def test_a_compressed_message_without_an_encoding_fails_the_call(transport: str) -> None:
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Echo", ended=False)
        wire.write(frame(DATA, END_STREAM, stream, message(gzip.compress(TEXT), 1)))
        answer = await wire.answer(stream)
        assert answer.status == "13" or answer.messages == [gzip.compress(TEXT)], "grpcio hands it on as it is"


@pytest.mark.parametrize("compression", [None, *ALGORITHMS])
async def test_requests_over_the_limit(transport: str, compression: grpc.Compression | None) -> None:
    """Judged by what a message is unpacked: few bytes on the wire may be many."""
    options = {"receive_limit": 10_000}
    async with hosted(transport, server_options=options, client_compression=compression) as server:
        assert await server.method("Echo")(b"x" * 10_000) == b"x" * 10_000
        for call in (
            server.method("Echo")(b"x" * 10_001),
            server.method("Repeat")(b"1:1" + b" " * 10_000),
            server.method("Collect")(sending(b"fits", b"x" * 10_001)),
            server.method("Echo")(b"x" * (5 << 20)),
        ):
            error = await failure(call)
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, error
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_a_handler_is_cut_off_by_a_request_over_the_limit(transport: str) -> None:
    """It must not take what came before for the whole (grpcio lets it)."""
    whole: list[bytes] = []

    async def handler(requests: AsyncIterator[bytes], _context: Any) -> bytes:
        whole.append(b"".join([request async for request in requests]))
        return b""

    async with hosted(transport, into=handler, server_options={"receive_limit": 100}) as server:
        error = await failure(server.into(sending(b"first", b"x" * 101)))
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert whole == [] or transport == "grpcio"


async def test_answers_over_the_servers_limit(transport: str) -> None:
    async def twice(request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield b"fits"
        yield request * 2

    async with hosted(transport, out=twice, server_options={"send_limit": 1000}) as server:
        assert await server.method("Echo")(b"x" * 1000) == b"x" * 1000
        assert (await failure(server.method("Echo")(b"x" * 1001))).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        call = server.out(b"x" * 600)
        assert await within(call.read()) == b"fits"
        assert (await failure(call)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await server.method("Echo")(b"lives") == b"lives"
