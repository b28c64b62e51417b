"""Length-prefixed messages, cut anywhere, compressed, too long, broken off; gRPC's PROTOCOL-HTTP2."""

import gzip
import tracemalloc
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.rpc.compression import compressor, decompress, known
from tandemmq.common.grpc_transport.rpc.messages import MessageReader, pack_prefix
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status
from tests.unit.grpc_transport.wire import message

LIMIT = 1000
IDENTITY, GZIP, DEFLATE = b"identity", b"gzip", b"deflate"


def feed(parts: list[bytes], encoding: bytes = IDENTITY, limit: int = LIMIT) -> tuple[list[bytes], MessageReader]:
    reader = MessageReader(encoding, limit)
    found = []
    for part in parts:
        found += reader.feed(b"<" + part + b">", 1, 1 + len(part))
    return [reader.plain(one) for one in found], reader


def failing(parts: list[bytes], encoding: bytes = IDENTITY) -> Status:
    with pytest.raises(CallFailure) as caught:
        feed(parts, encoding)
    return caught.value.status


def test_the_prefix() -> None:
    assert pack_prefix(0, 0x01020304) == bytes((0, 1, 2, 3, 4))
    assert pack_prefix(1, 0) == bytes((1, 0, 0, 0, 0))


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(0, 300), max_size=12))
def test_messages_come_whole_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(map(message, bodies))
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    parts = [sent[start:stop] for start, stop in pairwise(places)]
    found, reader = feed(parts)
    assert found == bodies
    assert not reader.incomplete
    assert reader.size == 0


@given(st.lists(st.binary(max_size=20), max_size=3), st.integers(0, 80))
def test_where_a_request_breaks_off(bodies: list[bytes], at: int) -> None:
    """``incomplete`` everywhere but between messages, and at least as many bytes counted as are kept."""
    sent = b"".join(map(message, bodies))
    ends = {len(b"".join(map(message, bodies[:count]))) for count in range(len(bodies) + 1)}
    at = min(at, len(sent))
    _found, reader = feed([sent[:at]])
    assert reader.incomplete == (at not in ends)
    since = at - max(end for end in ends if end <= at)
    assert max(0, since - 5) <= reader.size <= since + 200


@pytest.mark.parametrize("flag", [2, 3, 0x80, 0xFF])
def test_flags_that_do_not_exist(flag: int) -> None:
    assert failing([message(b"x", flag=flag)]) == Status.INTERNAL


def test_a_message_that_is_too_long_is_refused_by_its_prefix() -> None:
    assert feed([message(b"x" * LIMIT)])[0] == [b"x" * LIMIT]
    assert failing([message(b"", length=LIMIT + 1)]) == Status.RESOURCE_EXHAUSTED
    assert failing([message(b"", length=(1 << 32) - 1)]) == Status.RESOURCE_EXHAUSTED
    assert failing([b"\0", b"\xff\xff", b"\xff\xff"]) == Status.RESOURCE_EXHAUSTED


def test_a_long_promise_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        reader = MessageReader(IDENTITY, 1 << 30)
        reader.feed(message(b"a little", length=1 << 30), 0, 13)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_what_is_collected_takes_about_as_much_memory_as_it_counts() -> None:
    """In frames of two bytes as well: what a connection may hold is counted in these."""
    reader = MessageReader(IDENTITY, 1 << 20)
    reader.feed(pack_prefix(0, 1 << 20), 0, 5)
    tracemalloc.start()
    try:
        for at in range(100_000):
            reader.feed(b"%02d" % (at % 100), 0, 2)
        assert reader.size >= 200_000
        assert tracemalloc.get_traced_memory()[0] < 1.5 * reader.size
    finally:
        tracemalloc.stop()


def test_many_empty_messages() -> None:
    assert feed([message(b"") * 1000])[0] == [b""] * 1000


# ------------------------------------------------------------------------------------------------- compression


def zipped(body: bytes, encoding: bytes = GZIP) -> bytes:
    content = gzip.compress(body) if encoding == GZIP else zlib.compress(body)
    return message(content, flag=1)


@pytest.mark.parametrize("encoding", [GZIP, DEFLATE])
@given(st.lists(st.binary(max_size=200), max_size=4))
def test_compressed_messages(encoding: bytes, bodies: list[bytes]) -> None:
    assert feed([b"".join(zipped(body, encoding) for body in bodies)], encoding)[0] == bodies
    assert [decompress(encoding, compressor(encoding)(body), LIMIT) for body in bodies] == bodies


def test_messages_may_be_plain_in_a_compressed_call() -> None:
    assert feed([zipped(b"one") + message(b"two") + zipped(b"")], GZIP)[0] == [b"one", b"two", b""]


def test_the_limit_is_for_what_comes_out() -> None:
    assert feed([zipped(b"x" * LIMIT)], GZIP)[0] == [b"x" * LIMIT]
    assert failing([zipped(b"x" * (LIMIT + 1))], GZIP) == Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("encoding", [GZIP, DEFLATE])
def test_a_bomb_is_not_let_off(encoding: bytes) -> None:
    bomb = zipped(bytes(100_000_000), encoding)
    tracemalloc.start()
    try:
        with pytest.raises(CallFailure) as caught:
            feed([bomb], encoding, limit=1 << 20)
        assert caught.value.status == Status.RESOURCE_EXHAUSTED
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_message_is_decompressed_when_it_is_wanted() -> None:
    """Until then it takes no more than it cost its sender: a frame may hold hundreds of bombs."""
    sent = zipped(bytes(1 << 20)) * 200
    reader = MessageReader(GZIP, 1 << 20)
    tracemalloc.start()
    try:
        found = reader.feed(sent, 0, len(sent))
        assert len(found) == 200
        assert tracemalloc.get_traced_memory()[1] < 2 * len(sent)
        assert reader.plain(found[7]) == bytes(1 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not compressed", id="something else"),
        pytest.param(gzip.compress(b"x" * 100)[:-1], id="cut"),
        pytest.param(gzip.compress(b"x" * 100)[:-4] + b"\0\0\0\0", id="wrong length"),
        pytest.param(gzip.compress(b"x" * 100)[:-8] + bytes(8), id="wrong checksum"),
        pytest.param(gzip.compress(b"x") + b"more", id="bytes behind the end"),
        pytest.param(zlib.compress(b"x"), id="another format"),
    ],
)
def test_what_cannot_be_decompressed(content: bytes) -> None:
    assert failing([message(content, flag=1)], GZIP) == Status.INTERNAL


def test_the_flag_without_an_encoding() -> None:
    """compression.md: INTERNAL."""
    assert failing([zipped(b"x")]) == Status.INTERNAL


@given(st.binary(max_size=100), st.sampled_from([GZIP, DEFLATE]))
def test_any_bytes_decompress_or_fail_the_call(content: bytes, encoding: bytes) -> None:
    try:
        assert len(decompress(encoding, content, LIMIT)) <= LIMIT
    except CallFailure as failure:
        assert failure.status in (Status.INTERNAL, Status.RESOURCE_EXHAUSTED)  # noqa: PT017


def test_encodings() -> None:
    assert [known(name) for name in (IDENTITY, GZIP, DEFLATE, b"snappy", b"", b"GZIP")] == [True] * 3 + [False] * 3
