"""The index file: vector F, queries, and the repair functions in both versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format import index_layout as layout
from tandemmq.store.format.compiled import index as compiled
from tandemmq.store.format.index_layout import IndexHeader
from tandemmq.store.format.java import index_hash, index_key

T = 1_700_000_000_123
SLOTS, ENTRIES = 7, 20

entries = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(-2000, 90_000)), max_size=25)


def build(items: list[tuple[int, int, int]]) -> bytearray:
    """A file with (hash, step of the offset, time after T) for each entry."""
    buffer = bytearray(layout.file_size(SLOTS, ENTRIES))
    offset = 0
    for key_hash, step, after in items:
        offset += step
        layout.put_key(buffer, SLOTS, ENTRIES, key_hash, offset, T + after)
    return buffer


def test_vector_f() -> None:
    """Only the pages that matter are there: the real file of 420,000,040 bytes is mostly empty."""
    slots, count = 5_000_000, 20_000_000
    assert layout.file_size(slots, count) == 420_000_040
    buffer = bytearray(layout.file_size(slots, 3))
    for key, expected in (("C0A8001430391B2C3D4E47B760000007", 53836919), ("Key1", 1656937772)):
        key_hash = index_hash(index_key("TopicTest", key))
        assert key_hash == expected
        assert layout.put_key(buffer, slots, 3, key_hash, 0, T)
    assert buffer[15347716:15347720].hex() == "00000001"
    assert buffer[7751128:7751132].hex() == "00000002"
    assert layout.entry_position(slots, 1) == 20_000_060
    assert buffer[20_000_060:20_000_080].hex() == "03357c7700000000000000000000000000000000"
    assert buffer[20_000_080:20_000_100].hex() == "62c2dd2c00000000000000000000000000000000"
    header = "0000018bcfe5687b0000018bcfe5687b000000000000000000000000000000000000000200000003"
    assert buffer[:40].hex() == header
    assert not layout.put_key(buffer, slots, 3, 1, 0, T)


def test_header() -> None:
    header = IndexHeader(1, 2, 3, 4, 5, 6)
    assert IndexHeader.unpack(header.pack()) == header
    assert IndexHeader.unpack(bytes(40)).index_count == 1
    with pytest.raises(layout.CorruptIndexHeader):
        IndexHeader.unpack(bytes(39))


def test_first_entry_of_a_rolled_file_is_late_as_in_java() -> None:
    """The header of a rolled file carries the end of the file before; the first difference is taken from that."""
    buffer = bytearray(layout.file_size(SLOTS, ENTRIES))
    buffer[:40] = IndexHeader(T - 5000, T - 5000, 90, 90).pack()
    layout.put_key(buffer, SLOTS, ENTRIES, 3, 100, T)
    assert layout.read_entry(buffer, SLOTS, 1).seconds == 5
    assert IndexHeader.unpack(buffer).begin_timestamp == T
    assert list(layout.find(buffer, SLOTS, ENTRIES, 3, T, T)) == [100]


def test_t8_times_are_widened_and_a_walk_does_not_end_early() -> None:
    """Whole seconds only, and the clock may have gone back between entries."""
    buffer = build([(9, 1, 0), (3, 1, 900), (3, 1, 60_000), (3, 1, 5_000), (3, 1, 70_000)])

    def found(begin: int, end: int) -> list[int]:
        return list(layout.find(buffer, SLOTS, ENTRIES, 3, T + begin, T + end))

    assert 2 in found(900, 900)
    assert 3 in found(59_000, 61_000)
    assert found(4_500, 5_500) == [4]
    assert found(-9_000, -8_000) == [2]  # an entry in second 0 may be from any earlier time
    assert found(0, 80_000) == [5, 4, 3, 2]


def test_t9_other_keys_with_the_same_hash_are_found_too() -> None:
    """The caller compares topic and key, and drops repeated offsets."""
    assert index_hash("T#Aa") == index_hash("T#BB")
    buffer = build([(3, 1, 0), (3, 0, 0), (10, 1, 0)])
    assert list(layout.find(buffer, SLOTS, ENTRIES, 3, 0, T * 2)) == [1, 1]
    assert list(layout.find(buffer, SLOTS, ENTRIES, 3, 0, T * 2, limit=1)) == [1]
    assert list(layout.find(buffer, SLOTS, ENTRIES, 17, 0, T * 2)) == []


def test_damaged_chains_do_not_turn_in_circles() -> None:
    buffer = build([(3, 1, 0), (3, 1, 0), (3, 1, 0)])
    at = layout.entry_position(SLOTS, 2) + 16
    buffer[at : at + 4] = (3).to_bytes(4, "big")
    assert list(layout.find(buffer, SLOTS, ENTRIES, 3, 0, T * 2)) == [3, 2]


@given(entries, st.integers(0, 60))
def test_cut_and_rebuilt_is_as_if_never_more_had_been_added(items: list[tuple[int, int, int]], bound: int) -> None:
    """Both versions agree. T7: an index need not be thrown away after a crash."""
    offset, kept = 0, []
    for item in items[: ENTRIES - 1]:
        offset += item[1]
        if offset >= bound:
            break
        kept.append(item)
    buffer = build(items)
    wanted = build(kept)
    header = IndexHeader.unpack(wanted)
    for functions in (layout, compiled):
        copy = bytearray(buffer)
        count = functions.entries_before(copy, SLOTS, ENTRIES, bound)
        assert count <= header.index_count
        if count < header.index_count:  # an all-zero entry: taken for one never written
            assert not any(copy[layout.entry_position(SLOTS, count) :][:20])
            continue
        end = layout.entry_position(SLOTS, count)
        copy[end:] = bytes(len(copy) - end)
        copy[40 : layout.entry_position(SLOTS, 0)] = b"\x55" * (4 * SLOTS)
        assert functions.rebuild_chains(copy, SLOTS, ENTRIES, count) == header.hash_slot_count
        assert copy[40:] == wanted[40:]


@given(entries, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8), st.integers(0, 60))
def test_both_versions_agree_on_damage(
    items: list[tuple[int, int, int]], damage: list[tuple[int, int]], bound: int
) -> None:
    buffer = build(items)
    for at, value in damage:
        buffer[at] = value
    count = layout.entries_before(buffer, SLOTS, ENTRIES, bound)
    assert compiled.entries_before(buffer, SLOTS, ENTRIES, bound) == count
    one, other = bytearray(buffer), bytearray(buffer)
    assert layout.rebuild_chains(one, SLOTS, ENTRIES, count) == compiled.rebuild_chains(other, SLOTS, ENTRIES, count)
    assert one == other


def test_compiled_functions_check_the_size() -> None:
    with pytest.raises(ValueError, match="an index file of"):
        compiled.entries_before(bytearray(100), SLOTS, ENTRIES, 0)
