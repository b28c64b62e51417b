"""The HA protocol's bytes: the vectors of the specification, and any cut of a stream meaning the same."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.replicator.frames import (
    HEADER_SIZE,
    MAX_BODY_SIZE,
    MAX_FRAME_SIZE,
    MAX_OFFSET,
    BadOffset,
    Body,
    BodyTooLarge,
    Heartbeat,
    NegativeSize,
    ReportReader,
    TransferReader,
    encode_header,
    encode_report,
)


@pytest.mark.parametrize(
    ("frame", "hexadecimal"),
    [
        (encode_header(0, 0), "000000000000000000000000"),
        (encode_header(1024, 0), "000000000000040000000000"),
        (encode_header(406, 0), "000000000000019600000000"),
        (encode_header(3 << 30, 0), "00000000c000000000000000"),
        (encode_header(1024, 3) + b"abc", "000000000000040000000003616263"),
        (encode_header(1024, 3) + bytes((1, 2, 3)), "000000000000040000000003010203"),
        (encode_header(0, 406), "000000000000000000000196"),
        (encode_report(1024), "0000000000000400"),
        (encode_report(0), "0000000000000000"),
        (encode_report(2_097_152), "0000000000200000"),
    ],
)
def test_vectors_of_the_specification(frame: bytes, hexadecimal: str) -> None:
    assert frame.hex() == hexadecimal


def test_frames_stay_within_a_java_slaves_buffer() -> None:
    assert MAX_FRAME_SIZE == 4_194_304
    assert HEADER_SIZE + MAX_BODY_SIZE == MAX_FRAME_SIZE


# -- reports -----------------------------------------------------------------------------------------------------------


def test_of_reports_in_one_read_the_last_counts() -> None:
    reader = ReportReader()
    assert reader.feed(encode_report(0) + encode_report(203)) == 203
    assert reader.received == 2


def test_half_a_report_is_kept() -> None:
    reader, report = ReportReader(), encode_report(1 << 40)
    assert reader.feed(report[:4]) is None
    assert reader.feed(report[4:]) == 1 << 40


def test_a_report_and_a_half() -> None:
    reader, second = ReportReader(), encode_report(7)
    assert reader.feed(encode_report(5) + second[:1]) == 5
    assert reader.feed(second[1:7]) is None
    assert reader.feed(second[7:] + encode_report(-9)) == -9
    assert reader.received == 3


@given(st.lists(st.integers(-(1 << 63), MAX_OFFSET), max_size=20), st.data())
def test_any_cut_of_reports_ends_with_the_last(offsets: list[int], data: st.DataObject) -> None:
    stream = b"".join(map(encode_report, offsets))
    reader, last = ReportReader(), None
    for piece in cut(stream, data):
        said = reader.feed(piece)
        last = said if said is not None else last
    assert reader.received == len(offsets)
    assert last == (offsets[-1] if offsets else None)


# -- frames ------------------------------------------------------------------------------------------------------------


def test_a_body_is_given_as_it_arrives() -> None:
    reader = TransferReader()
    frame = encode_header(1024, 5) + b"abcde" + encode_header(1029, 0)
    assert reader.feed(frame[:6], 100) == []
    half = reader.between_frames
    assert not half
    assert reader.feed(frame[6:14], 106) == [Body(1024, 112, 2)]
    assert (reader.missing, reader.next_offset) == (3, 1026)
    assert reader.feed(frame[14:], 114) == [Body(1026, 114, 3), Heartbeat(1029)]
    assert reader.between_frames
    assert reader.frames == 2


def test_positions_are_the_callers() -> None:
    stream = encode_header(0, 3) + b"abc" + encode_header(3, 2) + b"de"
    assert TransferReader().feed(memoryview(stream), 1_000) == [Body(0, 1_012, 3), Body(3, 1_027, 2)]


def test_a_flood_of_equal_heartbeats_is_one() -> None:
    reader = TransferReader()
    flood = encode_header(9, 0) * 1_000
    assert reader.feed(flood + encode_header(10, 0) + encode_header(9, 0)) == [
        Heartbeat(9),
        Heartbeat(10),
        Heartbeat(9),
    ]
    assert reader.frames == 1_002


def test_the_largest_body_is_taken() -> None:
    reader = TransferReader()
    assert reader.feed(encode_header(0, MAX_BODY_SIZE)) == []
    assert reader.missing == MAX_BODY_SIZE


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (encode_header(0, MAX_BODY_SIZE + 1), BodyTooLarge),
        (encode_header(0, (1 << 31) - 1), BodyTooLarge),
        (encode_header(0, -1), NegativeSize),
        (encode_header(0, -(1 << 31)), NegativeSize),
        (encode_header(-1, 0), BadOffset),
        (encode_header(-(1 << 63), 3), BadOffset),
        (encode_header(MAX_OFFSET, 1), BadOffset),
    ],
)
def test_what_no_frame_can_be_is_refused(header: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        TransferReader().feed(header)


def test_a_bad_header_is_refused_before_its_body() -> None:
    reader = TransferReader()
    reader.feed(encode_header(0, -5)[:11])
    with pytest.raises(NegativeSize):
        reader.feed(encode_header(0, -5)[11:])


@given(st.lists(st.tuples(st.integers(0, 1 << 50), st.binary(max_size=40)), max_size=12), st.data())
def test_any_cut_of_frames_means_the_same(frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
    stream = b"".join(encode_header(offset, len(body)) + body for offset, body in frames)
    reader, position = TransferReader(), 0
    got: list[tuple[int, bytes]] = []
    heartbeats: list[int] = []
    for piece in cut(stream, data):
        for event in reader.feed(piece, position):
            if isinstance(event, Heartbeat):
                heartbeats.append(event.offset)
            else:
                got.append((event.offset, stream[event.position : event.position + event.size]))
        position += len(piece)
    assert reader.between_frames
    assert reader.frames == len(frames)
    assert bytes_at(got) == bytes_at([frame for frame in frames if frame[1]])
    assert without_repetitions(heartbeats) == without_repetitions([offset for offset, body in frames if not body])


@given(st.binary(max_size=200))
def test_garbage_is_taken_or_refused(data: bytes) -> None:
    reader = TransferReader()
    try:
        events = reader.feed(data)
    except (BodyTooLarge, NegativeSize, BadOffset):
        return
    assert sum(event.size for event in events if isinstance(event, Body)) <= len(data)


def test_a_header_is_twelve_bytes() -> None:
    assert len(encode_header(1, 2)) == HEADER_SIZE == struct.calcsize(">qi")


def cut(stream: bytes, data: st.DataObject) -> list[bytes]:
    ends = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    return [stream[begin:end] for begin, end in pairwise([0, *ends, len(stream)])]


def bytes_at(parts: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    return [(offset + at, byte) for offset, body in parts for at, byte in enumerate(body)]


def without_repetitions(values: list[int]) -> list[int]:
    return [value for at, value in enumerate(values) if not at or values[at - 1] != value]
