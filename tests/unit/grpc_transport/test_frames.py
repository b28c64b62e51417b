"""Every frame that a server sends, byte by byte; RFC 9113 section 6."""

import pytest

from tandemmq.common.grpc_transport.http2 import frames
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.reading import frames as parse
from tests.unit.grpc_transport.wire import END_HEADERS, END_STREAM, Frame, Type


def test_a_header_is_nine_bytes_big_endian() -> None:
    packed = frames.pack_header(0x010203 << 8 | 0x04, 0x05, 0x06070809)
    assert packed == bytes((1, 2, 3, 4, 5, 6, 7, 8, 9))
    assert frames.unpack_header(b"??" + packed, 2) == (0x01020304, 0x05, 0x06070809)


def test_settings() -> None:
    written = frames.settings({frames.Setting.HEADER_TABLE_SIZE: 0, frames.Setting.INITIAL_WINDOW_SIZE: 1 << 20})
    assert written == bytes.fromhex("00000c 04 00 00000000 0001 00000000 0004 00100000")
    assert frames.settings({}) == bytes.fromhex("000000 04 00 00000000")


def test_settings_ack() -> None:
    assert bytes.fromhex("000000 04 01 00000000") == frames.SETTINGS_ACK


def test_window_update() -> None:
    assert frames.window_update(0, 0x7FFFFFFF) == bytes.fromhex("000004 08 00 00000000 7fffffff")
    assert frames.window_update(0x11, 1) == bytes.fromhex("000004 08 00 00000011 00000001")


def test_rst_stream() -> None:
    assert frames.rst_stream(3, 8) == bytes.fromhex("000004 03 00 00000003 00000008")


def test_goaway_with_and_without_reason() -> None:
    assert frames.goaway(7, 0xB) == bytes.fromhex("000008 07 00 00000000 00000007 0000000b")
    assert frames.goaway(7, 1, "no") == bytes.fromhex("00000a 07 00 00000000 00000007 00000001") + b"no"


def test_a_long_reason_is_cut() -> None:
    (only,) = parse(frames.goaway(1, 1, "x" * 5000))
    assert only.payload[8:] == b"x" * 200


def test_ping_and_its_answer() -> None:
    assert frames.ping(b"abcdefgh") == bytes.fromhex("000008 06 00 00000000") + b"abcdefgh"
    assert frames.ping(b"abcdefgh", frames.ACK) == wire.ping(b"abcdefgh", ack=True)


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_block_that_fits_is_one_frame(size: int, end: bool) -> None:
    written = parse(frames.header_frames(5, b"b" * size, end, 100))
    assert written == [Frame(Type.HEADERS, END_HEADERS | (END_STREAM if end else 0), 5, b"b" * size)]


@pytest.mark.parametrize("size", [101, 200, 201, 1000])
def test_a_longer_block_goes_on_in_continuations(size: int) -> None:
    block = bytes(at % 251 for at in range(size))
    first, *rest = parse(frames.header_frames(5, block, True, 100))
    assert (first.type, first.flags) == (Type.HEADERS, END_STREAM)
    assert {one.type for one in rest} == {Type.CONTINUATION}
    assert [one.flags for one in rest] == [0] * (len(rest) - 1) + [END_HEADERS]
    assert b"".join(one.payload for one in [first, *rest]) == block
    assert max(len(one.payload) for one in [first, *rest]) == 100


def test_a_block_of_equal_parts_ends_once() -> None:
    for size in (200, 300, 400):
        written = parse(frames.header_frames(1, b"=" * size, False, 100))
        assert [one.flags & END_HEADERS for one in written].count(END_HEADERS) == 1
