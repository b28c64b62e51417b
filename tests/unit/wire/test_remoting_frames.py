"""Frames of the remoting protocol: exact bytes, pieces, and what is no frame."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.wire.remoting.errors import BadRemotingFrame, NotEncodable
from tandemmq.common.wire.remoting.frames import (
    FRAME_BYTES_MAX,
    RemotingFrame,
    RemotingFrameReader,
    Serialization,
    encode_frame,
)

FRAMES = st.builds(RemotingFrame, st.sampled_from(Serialization), st.binary(max_size=40), st.binary(max_size=60))


def test_the_bytes_of_a_frame() -> None:
    assert encode_frame(Serialization.ROCKETMQ, b"head", b"body") == bytes.fromhex("0000000c01000004") + b"headbody"
    assert encode_frame(Serialization.JSON, b"", b"") == bytes.fromhex("0000000400000000")


@given(st.lists(FRAMES, max_size=5), st.data())
def test_frames_come_out_as_they_went_in_whatever_the_pieces(frames: list[RemotingFrame], data: st.DataObject) -> None:
    stream = b"".join(encode_frame(*frame) for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader, read = RemotingFrameReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        read += reader.receive(stream[begin:end])
    assert read == frames
    assert reader.incomplete == 0


@given(st.lists(st.binary(max_size=64), max_size=8))
def test_hostile_bytes_end_in_frames_or_in_bad_frame(pieces: list[bytes]) -> None:
    reader, taken = RemotingFrameReader(largest=200), 0
    for piece in pieces:
        try:
            taken += sum(8 + len(frame.header) + len(frame.body) for frame in reader.receive(piece))
        except BadRemotingFrame:
            with pytest.raises(BadRemotingFrame):
                reader.receive(b"")
            assert reader.incomplete == 0
            return
    assert taken + reader.incomplete == sum(map(len, pieces))
    assert reader.incomplete < 204


@pytest.mark.parametrize(
    "prefix",
    [
        struct.pack(">II", FRAME_BYTES_MAX + 1, 0),
        struct.pack(">II", 2**32 - 1, 0),
        struct.pack(">II", 0, 0),
        struct.pack(">II", 3, 0),
        struct.pack(">II", 10, 7),
        struct.pack(">II", 10, 2 << 24),
        struct.pack(">II", 10, 255 << 24),
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
def test_what_is_no_frame_is_told_by_its_first_bytes(prefix: bytes) -> None:
    good = encode_frame(Serialization.JSON, b"{}", b"1")
    with pytest.raises(BadRemotingFrame) as caught:
        RemotingFrameReader().receive(good + prefix)
    assert caught.value.frames == (RemotingFrame(Serialization.JSON, b"{}", b"1"),)


def test_a_frame_of_the_largest_size_is_read_and_one_more_byte_is_not_written() -> None:
    body = bytes(FRAME_BYTES_MAX - 4 - 2)
    raw = encode_frame(Serialization.JSON, b"{}", body)
    reader = RemotingFrameReader()
    read = [frame for at in range(0, len(raw), 65536) for frame in reader.receive(raw[at : at + 65536])]
    assert read == [RemotingFrame(Serialization.JSON, b"{}", body)]
    with pytest.raises(NotEncodable, match="larger"):
        encode_frame(Serialization.JSON, b"{}", body + b"1")
