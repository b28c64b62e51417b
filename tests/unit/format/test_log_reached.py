"""``tandem.end``, byte by byte."""

from zlib import crc32

import pytest

from tandemmq.store.format.log_reached import PLACES, SIZE, ReachedEnd, ReachWords, UnreadableReach, decode_reached

BOOT = bytes(range(16))
HEADER = b"TMEN" + (1).to_bytes(4, "big") + BOOT


def place(end: int) -> bytes:
    number = end.to_bytes(8, "big")
    return number + crc32(HEADER + number).to_bytes(4, "big") + bytes(4)


def test_the_bytes() -> None:
    words = ReachWords(BOOT)
    assert words.whole(4711) == HEADER + place(4711) * 2
    assert len(words.whole(0)) == SIZE
    assert decode_reached(HEADER + place(4711) + place(17)) == ReachedEnd(BOOT, 4711)
    assert decode_reached(HEADER + place(17) + place(4711)) == ReachedEnd(BOOT, 4711)


@pytest.mark.parametrize("torn", range(17))
def test_half_a_store_leaves_what_was_said_before(torn: int) -> None:
    data = bytearray(ReachWords(BOOT).whole(100))
    data[PLACES[1]] = place(200)[:torn] + place(100)[torn:]
    assert decode_reached(bytes(data)).end == (100 if place(200)[:torn] + place(100)[torn:] != place(200) else 200)


def test_one_flipped_bit_never_says_another_end() -> None:
    whole = HEADER + place(1_000) + place(2_000)
    for bit in range(SIZE * 8):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        try:
            assert decode_reached(bytes(data)).end in (1_000, 2_000)
        except UnreadableReach:
            assert bit // 8 < PLACES[0].start, "the other place is whole"


@pytest.mark.parametrize(
    "data", [b"", bytes(SIZE), ReachWords(BOOT).whole(1)[:-1], b"X" + ReachWords(BOOT).whole(1)[1:]]
)
def test_what_is_no_such_file(data: bytes) -> None:
    with pytest.raises(UnreadableReach):
        decode_reached(data)
