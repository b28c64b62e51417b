"""What has arrived of a log, cut anywhere: the same as the walker finds in the whole; what cannot become a record."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from tandemmq.store.format.arrival import Arrived, check_arrived
from tandemmq.store.format.record import BLANK_SIZE, Message, encode_blank, encode_record
from tandemmq.store.format.walker import CrcProperty, Stop, Walker, compiled_walker, python_walker
from tests.campaigns import examples
from tests.unit.format.logs import V4, V6, damaged_logs, logs

walkers = pytest.mark.parametrize("make", [python_walker, compiled_walker])
PYTHON, COMPILED = python_walker(), compiled_walker()
LARGEST = 1 << 20
IGNORED, FITS = CrcProperty.IGNORED, CrcProperty.FITS_IF_THERE


def record(at: int, body: bytes = b"body", append_crc: bool = False) -> bytes:
    message = Message("topic", 1, body, b"KEYS\x01key\x02", born_host=V4, store_host=V6)
    return encode_record(message, 7, at, 1_700_000_000_000, append_crc)


def arrived(log: bytes, end: int | None = None, *, walker: Walker = PYTHON, room: int = 1 << 20, base: int = 0,
            crc_property: CrcProperty = IGNORED) -> Arrived:  # fmt: skip
    return check_arrived(
        walker, log, 0, len(log) if end is None else end,
        base=base, file_size=room, largest=LARGEST, crc_property=crc_property,
    )  # fmt: skip


@examples(40, 300, damaged_logs(), st.sampled_from(CrcProperty))
def test_both_walkers_verify_as_they_walk(log: tuple[bytes, int], crc_property: CrcProperty) -> None:
    data, base = log
    found = [walker.verify(data, 0, len(data), base, crc_property=crc_property) for walker in (PYTHON, COMPILED)]
    assert found[0] == found[1]
    if crc_property is IGNORED:
        walk = PYTHON.walk(data, 0, len(data), base, check_crc=True)
        assert found[0] == (walk.position, walk.stop)


@examples(40, 400, logs() | damaged_logs(), st.lists(st.integers(1, 300), max_size=40), st.booleans())
def test_stretches_cut_anywhere_give_what_the_walker_finds_in_the_whole(
    log: tuple[bytes, int], cuts: list[int], compiled: bool
) -> None:
    """Never more than the walker accepts; and all of it, unless a part of what comes next is refused sooner."""
    data, base = log
    walker = COMPILED if compiled else PYTHON
    walk = PYTHON.walk(data, 0, len(data), base, check_crc=True)
    room = len(data) + 10_000
    whole = end = 0
    problem = ""
    for size in [*cuts, len(data)]:
        end = min(end + size, len(data))
        found = check_arrived(walker, data, whole, end, base=base, file_size=room, largest=LARGEST)
        assert whole <= found.whole <= min(walk.position, end)
        whole, problem = found.whole, found.problem
        if problem:
            break
    if problem:
        assert walk.stop != Stop.END or walk.position < len(data)
    else:
        assert end == len(data)
    assert whole == walk.position
    if walk.stop in (Stop.ZERO, Stop.BAD_MAGIC, Stop.BAD_CRC, Stop.BAD_POSITION):
        assert problem


@walkers
def test_a_record_that_comes_byte_by_byte_is_waited_for_and_then_taken(make: Callable[[], Walker]) -> None:
    walker = make()
    for body in (b"", b"b" * 40, b"b" * 5_000):
        log = record(0) + record(len(record(0)), body)
        first = len(record(0))
        for end in range(len(log) + 1):
            whole = 0 if end < first else first if end < len(log) else len(log)
            assert arrived(log, end, walker=walker) == Arrived(whole, "", arrived(log, end, walker=walker).stop), end


@walkers
def test_the_blank_that_ends_a_file_is_whole_when_all_of_it_is_there(make: Callable[[], Walker]) -> None:
    begin = record(0)
    for free in (BLANK_SIZE, 50, 200):
        log = begin + encode_blank(free) + bytes(free - BLANK_SIZE)
        for end in range(len(begin), len(log)):
            assert arrived(log, end, walker=make(), room=len(log))[:2] == (len(begin), ""), (free, end)
        assert arrived(log, walker=make(), room=len(log))[:2] == (len(log), "")
        assert "end of" in arrived(log, walker=make(), room=len(log) + 1).problem
        if free > BLANK_SIZE:
            found = arrived(log[:-1] + b"x", walker=make(), room=len(log))
            assert (found.whole, found.filler) == (len(begin), True)
            assert "not zeros" in found.problem


@walkers
def test_one_flipped_bit_anywhere_is_refused_or_outside_of_what_is_checked(make: Callable[[], Walker]) -> None:
    """With the whole-record checksum every bit counts."""
    for asked in CrcProperty:
        good = record(0, append_crc=asked is not IGNORED)
        for bit in range(len(good) * 8):
            log = bytearray(good + record(len(good)))
            log[bit // 8] ^= 1 << bit % 8
            found = arrived(bytes(log), walker=make(), crc_property=asked)
            if found.whole:
                assert asked is IGNORED
                body_at = good.index(b"body")
                covered = {*range(12), *range(28, 36), *range(body_at - 4, body_at + 4)}
                assert bit // 8 not in covered, bit


@walkers
def test_other_bytes_within_the_name_of_the_record_s_checksum_are_refused(make: Callable[[], Walker]) -> None:
    """Then it has no such property any more, but its digits fit; without the option such a record may be."""
    good, name = record(0, append_crc=True), b"__CRC32#\x01"
    begin = good.index(name)
    for first in range(len(name)):
        for stop in range(first + 1, len(name) + 1):
            for byte in (1, 2, 0x41, 0xFF):
                log = bytearray(good)
                log[begin + first : begin + stop] = bytes([byte]) * (stop - first)
                whole = len(good) if bytes(log) == good else 0
                assert arrived(bytes(log), walker=make(), crc_property=FITS).whole == whole, (
                    first,
                    stop,
                    byte,
                )
    for place in range(len(name)):  # and with digits that fail as well, where one byte of the name has changed
        log = bytearray(good)
        log[begin + place] ^= 0x22
        log[-3] ^= 1
        assert arrived(bytes(log), walker=make(), crc_property=FITS).whole == 0
    assert arrived(record(0), walker=make(), crc_property=FITS).whole == len(record(0))


def test_a_changed_length_does_not_make_us_wait() -> None:
    """All of the record is there, and no more will come: a wait would never end."""
    good = record(0)
    for bit in range(32):
        for at in (0, good.index(b"body") - 4):
            log = bytearray(good)
            log[at + bit // 8] ^= 0x80 >> bit % 8
            found = arrived(bytes(log), room=1 << 30)
            assert found.whole == 0
            assert found.problem, (at, bit)


def test_what_cannot_be_is_said_as_soon_as_it_is_seen() -> None:
    good = record(0, b"x" * 500)
    assert "cannot have" in arrived((LARGEST + 1).to_bytes(4, "big"), room=1 << 30).problem
    assert "cannot have" in arrived((90).to_bytes(4, "big")).problem
    assert "cannot have" in arrived(good[:4], room=len(good) + 7).problem
    assert "no record" in arrived(good[:4] + b"\xda\xa3\x20\xa8").problem
    assert "another offset" in arrived(good[:36], base=8).problem
    assert "zeros" in arrived(bytes(8)).problem
    assert "beyond the end" in arrived(good[:300], room=300).problem or arrived(good[:300], room=300).problem
    assert arrived(good + b"abc", room=len(good) + 3).problem == "a record runs beyond the end of its file"


@walkers
def test_bytes_lost_or_doubled_within_properties_are_seen_where_the_whole_record_has_a_checksum(
    make: Callable[[], Walker],
) -> None:
    """What follows fills the record up: a frame's header or the next record. Both begin with a zero."""
    first = record(0, b"x" * 50, append_crc=True)
    following = record(len(first), append_crc=True)
    header = (len(first)).to_bytes(8, "big") + len(following).to_bytes(4, "big")
    begin = first.index(b"topic") + len(b"topic") + 2
    for behind in (following, header + following):
        for at in range(begin, len(first)):
            for lost in range(1, len(first) - at + 1):
                found = arrived(
                    first[:at] + first[at + lost :] + behind, walker=make(), crc_property=CrcProperty.FITS_IF_THERE
                )
                assert found.whole == 0, (at, lost)
            found = arrived(
                first[:at] + header + first[at:] + behind, walker=make(), crc_property=CrcProperty.FITS_IF_THERE
            )
            assert found.whole == 0, at
