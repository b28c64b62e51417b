"""The bytes of ``tandem.replica``: each store leaves a whole statement, each flipped bit is seen."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format.replica_stretch import BEGIN_AT, SIZE, STATE_AT, MarkWords, UnreadableMark, decode_mark

BOOT = bytes(range(16))
begins, lengths = st.integers(0, (1 << 62) - 1), st.integers(1, (1 << 31) - 1)


def written(begin: int, length: int) -> bytearray:
    data = bytearray(MarkWords(BOOT).fresh)
    data[BEGIN_AT:STATE_AT], data[STATE_AT:SIZE] = MarkWords(BOOT).writing(begin, length)
    return data


def test_the_bytes_as_they_are_documented() -> None:
    data = bytes(written(0x1122, 0x55))
    head = b"TMRP\0\0\0\2" + BOOT + (0x1122).to_bytes(8, "big") + (0x55).to_bytes(4, "big")
    assert data == head + zlib.crc32(head).to_bytes(4, "big")
    header = b"TMRP\0\0\0\2" + BOOT
    assert MarkWords(BOOT).fresh == header + bytes(12) + zlib.crc32(header).to_bytes(4, "big")


@given(begins, lengths, begins, lengths)
def test_after_every_single_store_the_file_says_one_thing(begin: int, length: int, later: int, long: int) -> None:
    words, data = MarkWords(BOOT), bytearray(MarkWords(BOOT).fresh)
    for at, size in ((begin, length), (later, long)):
        first, second = words.writing(at, size)
        assert decode_mark(bytes(data)) == (BOOT, 0, 0)
        data[BEGIN_AT:STATE_AT] = first
        assert decode_mark(bytes(data)) == (BOOT, 0, 0), "the place alone says nothing yet"
        data[STATE_AT:SIZE] = second
        assert decode_mark(bytes(data)) == (BOOT, at, at + size)
        data[STATE_AT:SIZE] = words.idle
    assert decode_mark(bytes(data)) == (BOOT, 0, 0)


@given(begins, lengths)
def test_every_flipped_bit_of_a_stretch_is_seen(begin: int, length: int) -> None:
    data = written(begin, length)
    for bit in range(8 * SIZE):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(UnreadableMark):
            decode_mark(bytes(data))
        data[bit // 8] ^= 1 << bit % 8


def test_no_flipped_bit_makes_a_stretch_of_none() -> None:
    data = bytearray(MarkWords(BOOT).fresh)
    for bit in range(8 * SIZE):
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert decode_mark(bytes(data)) == (BOOT, 0, 0)
            assert BEGIN_AT <= bit // 8 < STATE_AT, "which says nothing now"
        except UnreadableMark:
            pass
        data[bit // 8] ^= 1 << bit % 8


@given(st.binary(max_size=80))
def test_other_bytes_are_no_mark(data: bytes) -> None:
    with pytest.raises(UnreadableMark):
        decode_mark(data)


def test_the_first_version_and_a_page_of_zeros_are_no_marks() -> None:
    for data in (BOOT + (4_096).to_bytes(8, "big") + (50).to_bytes(8, "big") + bytes(8), bytes(SIZE), bytes(4_096)):
        with pytest.raises(UnreadableMark):
            decode_mark(data)
