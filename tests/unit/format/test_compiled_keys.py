"""The index in two steps, keys as arrays and arrays into files, against the one step that the store takes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import strategies as st

from tandemmq.store.format import java, sysflag
from tandemmq.store.format.compiled.keys import keys_of, put_entries
from tandemmq.store.format.compiled.walker import CompiledWalker
from tandemmq.store.format.index_layout import IndexHeader, file_size, put_key
from tandemmq.store.format.record import Message, encode_record
from tests.campaigns import examples
from tests.unit.format.logs import V4, damaged_logs, logs, props

WALKER = CompiledWalker()
TIMES = st.one_of(
    st.sampled_from([0, 1, 999, 1_000, -1, -(1 << 62), (1 << 62), 1 << 42]),
    st.integers(1_700_000_000_000, 1_700_000_100_000),
)
KEYS = st.lists(
    st.tuples(st.integers(0, 30) | st.sampled_from([0, 0x7FFFFFFF]), st.integers(0, 1 << 40), TIMES), max_size=40
)


@examples(12, 150, st.one_of(logs(), damaged_logs()))
def test_keys_are_those_of_the_rows(log: tuple[bytes, int]) -> None:
    """Per record UNIQ_KEY, then the pieces of KEYS, none of a rollback; hashed as Java does."""
    data, base = log
    walk = WALKER.walk(data, 0, len(data), base, check_crc=True)
    wanted = []
    for row in walk.rows():
        if sysflag.is_indexed_by_key(row.sys_flag):
            wanted += [
                (java.index_hash(java.index_key(row.topic, key)), row.position, row.store_timestamp)
                for key in [*([row.unique_key] if row.unique_key else []), *row.keys]
            ]
    hashes, physical, times = keys_of(walk)
    found = list(zip(hashes.tolist(), physical.tolist(), times.tolist(), strict=True))
    assert [one[1:] for one in found] == [one[1:] for one in wanted]
    assert all(one[0] >= 0 for one in found)
    if b"\xff" not in data and b"\xed\xa0" not in data:  # text that is no UTF-8 has no Java string to hash
        assert found == wanted


@examples(
    12, 150, st.one_of(logs(), damaged_logs()), st.sampled_from([1, 2, 5, 50]), st.sampled_from([0, 1_700_000_000_000])
)
def test_a_file_built_in_two_steps_is_the_same(log: tuple[bytes, int], slots: int, begin: int) -> None:
    """Keys of a walk put by `put_entries`, and by `index_into`; only slots and header are the caller's."""
    data, base = log
    walk = WALKER.walk(data, 0, len(data), base, check_crc=True)
    keys = keys_of(walk)
    entries = len(keys[0]) + 1
    one_step = bytearray(file_size(slots, max(entries, 2)))
    one_step[:40] = IndexHeader(begin, begin).pack()
    assert walk.index_into(one_step, slots, max(entries, 2)) == (walk.count, 0)
    two_steps = _built(keys, slots, max(entries, 2), begin, [(0, slots)])
    assert two_steps[40:] == one_step[40:]


def _built(
    keys: tuple[np.ndarray, np.ndarray, np.ndarray], slots: int, entries: int, begin: int, parts: list[tuple[int, int]]
) -> bytearray:
    """A file without a header: the first key counts from ``begin``, the others from the first."""
    built = bytearray(file_size(slots, entries))
    for low, high in parts:
        newest = np.zeros(high - low, np.int32)
        for first, stop, base in ((0, 1, begin), (1, len(keys[0]), int(keys[2][0]) if len(keys[2]) else 0)):
            piece = keys[0][first:stop], keys[1][first:stop], keys[2][first:stop]
            if len(piece[0]):
                put_entries(
                    built, slots, entries, piece,
                    first_number=first + 1, begin_timestamp=base, newest=newest, first_slot=low,
                )  # fmt: skip
        built[40 + 4 * low : 40 + 4 * high] = newest.astype(">i4").tobytes()
    return built


@examples(50, 150, KEYS, st.integers(1, 9), st.sampled_from([0, 5_000, 1_700_000_000_000]), st.data())
def test_any_keys_in_any_parts_are_as_put_one_by_one(
    keys: list[tuple[int, int, int]], slots: int, begin: int, data: st.DataObject
) -> None:
    """Times that go back, overflow or are no times; the slots shared among several callers."""
    entries = len(keys) + 2
    one_by_one = bytearray(file_size(slots, entries))
    one_by_one[:40] = IndexHeader(begin, begin).pack()
    for key in keys:
        assert put_key(one_by_one, slots, entries, *key)
    cuts = sorted({0, slots, *data.draw(st.lists(st.integers(0, slots), max_size=3))})
    arrays = (
        np.array([key[0] for key in keys], np.int32),
        np.array([key[1] for key in keys], np.int64),
        np.array([key[2] for key in keys], np.int64),
    )
    built = _built(arrays, slots, entries, begin, list(pairwise(cuts)))
    assert built[40:] == one_by_one[40:]
    used = int(np.count_nonzero(np.frombuffer(bytes(built[40 : 40 + 4 * slots]), ">i4")))
    assert IndexHeader.unpack(one_by_one).hash_slot_count == used


def test_what_does_not_fit_is_refused() -> None:
    log = encode_record(Message("T", 0, b"b", props(KEYS="a b c"), born_host=V4, store_host=V4), 0, 0, 1)
    keys = keys_of(WALKER.walk(log, 0, len(log), 0, check_crc=True))
    newest = np.zeros(5, np.int32)
    for entries, first, size in ((3, 1, file_size(5, 3)), (9, 7, file_size(5, 9)), (9, 0, 900), (9, 1, 100)):
        with pytest.raises(ValueError, match="do not fit"):
            put_entries(
                bytearray(size), 5, entries, keys, first_number=first, begin_timestamp=0, newest=newest, first_slot=0
            )


def test_many_keys_in_one_record_and_none() -> None:
    """The room for keys is guessed from the length of KEYS: single characters are the most there can be."""
    many = " ".join("abcdefghij" * 300)
    log = b""
    for number, keys in enumerate([many, "", " ", many + " ", "  a  "]):
        message = Message("T", 0, b"", props(KEYS=keys, UNIQ_KEY="u"), born_host=V4, store_host=V4)
        log += encode_record(message, number, len(log), 1)
    assert len(keys_of(WALKER.walk(log, 0, len(log), 0, check_crc=True))[0]) == 3_000 + 3_000 + 5 + 1
    empty = keys_of(WALKER.walk(b"", 0, 0, 0, check_crc=True))
    assert [len(part) for part in empty] == [0, 0, 0]
