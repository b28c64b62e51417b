"""Single fields of records, read where they lie, against what decoding the whole record says."""

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format.batch import BatchGlance, encode_client_batch, glance_at_batch
from tandemmq.store.format.index_layout import ENTRY_FIELDS, ENTRY_SIZE, put_key, read_entry, read_slot
from tandemmq.store.format.index_layout import file_size as index_file_size
from tandemmq.store.format.record import BLANK_SIZE, Message, decode_record, encode_blank, encode_record
from tandemmq.store.format.record_fields import (
    PREFIX_SIZE,
    has_blank_magic,
    has_record_magic,
    is_half,
    physical_offset_at,
    size_at,
)
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE, bytes_of_records, pack_unit, place_of, unpack_units
from tandemmq.store.format.walker import UnitRun
from tests.unit.format.logs import messages


@given(messages(), st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.integers(0, 40))
def test_they_are_those_of_the_decoded_record(message: Message, number: int, place: int, at: int) -> None:
    record = encode_record(message, number, place, 5)
    data = bytes(at) + record
    decoded = decode_record(data, at)
    assert size_at(data, at) == decoded.size == len(record)
    assert physical_offset_at(memoryview(data), at) == decoded.physical_offset
    assert has_record_magic(data, at)
    assert not has_blank_magic(data, at)


def test_a_blank_has_a_size_and_another_magic() -> None:
    blank = encode_blank(4_711)
    assert size_at(blank) == 4_711
    assert has_blank_magic(blank)
    assert not has_record_magic(blank)
    assert len(blank) == PREFIX_SIZE == BLANK_SIZE


def test_where_the_bytes_end_there_is_no_error() -> None:
    assert size_at(b"\0\0") == 0
    assert physical_offset_at(b"", 5) == 0
    assert not has_blank_magic(encode_blank(8)[:7])


def test_which_bytes_may_become_a_record() -> None:
    record = encode_record(Message("T", 0, b"body"), 3, 0, 5)
    assert all(is_half(record[:size]) for size in range(len(record)))
    assert not is_half(record)
    assert is_half(encode_blank(100))
    assert not is_half(encode_blank(BLANK_SIZE))
    assert not is_half(b"something else")


def _run(*places: int) -> UnitRun:
    units = b"".join(pack_unit(place, 100, 7) for place in places)
    return UnitRun("T", 1, 10, len(places), units, places[0], places[-1] + 100, 5)


def test_a_run_without_its_first_units() -> None:
    run = _run(5_000, 5_200, 5_900)
    rest = run.without(2)
    assert rest == UnitRun("T", 1, 12, 1, run.units[2 * UNIT_SIZE :], 5_900, 6_000, 5)
    assert run.without(0) is run
    assert run.without(-3) is run
    assert run.without(3) is None


def test_a_run_without_what_cannot_be() -> None:
    assert _run(5_000).possible() == _run(5_000)
    assert _run(300, 5_000).possible() == _run(300, 5_000).without(1)  # the log has no room for ten records before 300
    assert _run(300, 400).possible() is None


def test_the_units_of_a_run_one_by_one() -> None:
    run = _run(5_000, 5_200, 5_900)
    ones = list(run.one_by_one())
    assert [one.first_queue_offset for one in ones] == [10, 11, 12]
    assert [(one.first_physical, one.last_end_physical) for one in ones] == [
        (5_000, 5_100), (5_200, 5_300), (5_900, 6_000),
    ]  # fmt: skip
    assert b"".join(one.units for one in ones) == run.units
    assert {one.count for one in ones} == {1}


def test_places_and_sizes_of_units() -> None:
    units = pack_unit(5_000, 100, -1) + pack_unit(-1, 7, 3) + BLANK_UNIT
    assert [place_of(units, number) for number in range(3)] == [5_000, -1, 0]
    assert bytes_of_records(units) == sum(unit.size for unit in unpack_units(units))


def test_slots_and_entries_of_an_index() -> None:
    buffer = bytearray(index_file_size(10, 5))
    put_key(buffer, 10, 5, 23, 4_000, 1_000)
    put_key(buffer, 10, 5, 33, 5_000, 2_000)
    assert [read_slot(buffer, slot) for slot in range(10)] == [0, 0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert read_entry(buffer, 10, 2) == (33, 5_000, 1, 1)
    assert sum(int(kind[-1]) for _, kind in ENTRY_FIELDS) == ENTRY_SIZE


def test_a_glance_at_a_batch() -> None:
    whole = encode_client_batch([(0, b"abc", b"a\x01b"), (1, b"", b"")])
    assert glance_at_batch(whole, 3) == BatchGlance([b"a\x01b", b""])
    assert glance_at_batch(whole, 2) == BatchGlance([], too_long=3)
    assert glance_at_batch(whole + b"rest", 3) == BatchGlance([b"a\x01b", b""], whole=False)
    assert glance_at_batch(whole[:-1], 3).whole is False
