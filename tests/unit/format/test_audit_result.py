"""The file ``tandem.audit``: its bytes, and that nothing else is taken for it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.documents.sealed import seal
from tandemmq.store.format.audit_result import AuditResult

KNOWN = AuditResult(1_764_000_000_000, 0, 3_646_758, {"rot": 2, "unit-wrong": 1}, {"time-back": 7})
DOCUMENT = {
    "version": 1, "made": 1_764_000_000_000, "begin": 0, "end": 3_646_758, "faults": {"rot": 2, "unit-wrong": 1},
    "notes": {"time-back": 7},
}  # fmt: skip
numbers = st.dictionaries(st.text("abcdefghij-", min_size=1, max_size=50), st.integers(0, (1 << 63) - 1), max_size=10)


def test_the_bytes_as_they_are_documented() -> None:
    assert KNOWN.encode() == (
        b'{"version":1,"made":1764000000000,"begin":0,"end":3646758,"faults":{"rot":2,"unit-wrong":1},'
        b'"notes":{"time-back":7},"crc32":%d}' % json.loads(KNOWN.encode())["crc32"]
    )
    assert seal(DOCUMENT) == KNOWN.encode()


@given(st.integers(0, 1 << 62), st.integers(0, 1 << 62), st.integers(0, 1 << 61), numbers, numbers)
def test_what_is_written_is_read(
    made: int, begin: int, size: int, faults: dict[str, int], notes: dict[str, int]
) -> None:
    result = AuditResult(made, begin, begin + size, faults, notes)
    assert AuditResult.decode(result.encode()) == result


@given(st.integers(0, len(KNOWN.encode()) * 8 - 1))
def test_a_flipped_bit_is_seen(bit: int) -> None:
    data = bytearray(KNOWN.encode())
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match=r"."):
        AuditResult.decode(bytes(data))


@given(st.binary(max_size=100))
def test_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        AuditResult.decode(data)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2}, {"made": -1}, {"end": 1 << 63}, {"begin": 4_000_000}, {"faults": []}, {"faults": {"rot": -2}},
        {"faults": {"rot": "2"}}, {"faults": {"rot": True}}, {"notes": None}, {"notes": {"": 1}},
        {"notes": {"x" * 51: 1}}, {"notes": {f"kind-{number}": 1 for number in range(101)}},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_even_with_its_checksum(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        AuditResult.decode(seal(DOCUMENT | wrong))


def test_without_a_field_it_is_none() -> None:
    for name in DOCUMENT:
        with pytest.raises(ValueError, match=name):
            AuditResult.decode(seal({key: value for key, value in DOCUMENT.items() if key != name}))
