"""Facts of the journal as bytes: the compiled core against its Python twin."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.errors import UnreadableJournal
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, GivenAgain, Moved, Place
from tandemmq.store.delivery.journal.journal_format import (
    MOST_BYTES,
    FactCore,
    FactReader,
    Position,
    decode_in_steps,
    encode_records,
)
from tests.unit.delivery.fact_strategies import COPIES, DUES, FACTS, NUMBERS

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

ONE, OTHER = Place("workers", "orders", 3), Place("workers", "größe", 200)
PLACES = st.sampled_from((ONE, OTHER))
PROGRESS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Given, PLACES, NUMBERS, st.integers(1, 1 << 20), DUES),
    st.builds(Dealt, PLACES, NUMBERS, NUMBERS, COPIES),
    st.builds(Moved, PLACES, NUMBERS, st.integers(0, 9)),
    st.builds(GivenAgain, PLACES, NUMBERS, st.integers(0, 65_535), DUES),
)


@pytest.fixture(scope="module")
def core() -> FactCore:
    from tandemmq.store.delivery.compiled import fact_codec

    return fact_codec.encode_run


@pytest.mark.slow
@given(
    st.lists(PROGRESS | FACTS, min_size=1, max_size=60),
    st.integers(1, 3),
    st.sampled_from((100, 200, 2_000, MOST_BYTES)),
)
@example([Dealt(ONE, 0), Dealt(ONE, 1), Given(ONE, 127, 128, 16_383)], 1, MOST_BYTES)
def test_both_write_the_same_records(core: FactCore, facts: list[Fact], times: int, most: int) -> None:
    expected = encode_records(Position(5, 300), 9, facts * times, most)
    found = encode_records(Position(5, 300), 9, facts * times, most, core)
    assert [(body, list(written)) for body, written in found] == [(body, list(written)) for body, written in expected]


def test_thousands_are_written_alike(core: FactCore) -> None:
    facts: list[Fact] = [Dealt(ONE if at % 3 else OTHER, at << 30, 1, at - 1) for at in range(5_000)]
    assert encode_records(Position(0, 0), 1, facts, 9_000, core) == encode_records(Position(0, 0), 1, facts, 9_000)


@pytest.mark.parametrize(
    "fact", [Given(ONE, 0, 1, 1 << 63), Given(ONE, 1 << 64, 1, 0), Dealt(ONE, 0, 1, (1 << 63) - 1)]
)
def test_what_has_no_room_in_a_number_is_left_to_python(core: FactCore, fact: Fact) -> None:
    places = {ONE: 0}
    assert core([fact], 0, Given, Dealt, places, MOST_BYTES) == (0, b"")
    assert encode_records(Position(0, 0), 1, [fact] * 2, core=core) == encode_records(Position(0, 0), 1, [fact] * 2)


@pytest.fixture(scope="module")
def reader() -> FactReader:
    from tandemmq.store.delivery.compiled import fact_codec

    return fact_codec


def read(body: bytes, core: FactReader | None = None) -> object:
    """What a record says, with the types of what it says; or why it is unreadable."""
    steps = decode_in_steps(body, core)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value, [(type(fact), *map(type, fact)) for fact in end.value.facts]
    except UnreadableJournal as error:
        return error.message


@pytest.mark.slow
@given(st.lists(PROGRESS | FACTS, min_size=1, max_size=60), st.integers(1, 4), st.data())
def test_both_read_the_same(reader: FactReader, facts: list[Fact], times: int, data: st.DataObject) -> None:
    [(body, _)] = encode_records(Position(5, 300), 9, facts * times)
    expected = read(body)
    assert not isinstance(expected, str)
    assert read(body, reader) == expected
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(1, len(body)))])
    assert read(bytes(damaged), reader) == read(bytes(damaged))
    assert read(cut, reader) == read(cut)


def test_thousands_are_read_alike(reader: FactReader) -> None:
    places = [Place(f"group-{at}", "orders", at % 4) for at in range(1_000)]
    facts: list[Fact] = []
    for at, place in enumerate(places):
        facts += [Moved(place, 0, 0), Given(place, at, 1 << 20, 1 << 62), Dealt(place, at, 3, (1 << 62) - 1)]
        facts += [GivenAgain(place, at, 2, 5)] if not at % 7 else []
    [(body, _)] = encode_records(Position(0, 0), 1, facts, 1 << 30)
    expected = read(body)
    assert not isinstance(expected, str)
    assert read(body, reader) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"\x01\0\0\0\x01\x01g\x01\0\0\0\x01\x01\0\0\x81\x80\x40\0",
        b"\x01\0\0\0\x01\x01g\x01\0\0\0\x01\x03\0" + b"\xff" * 9 + b"\0\0\0",
        b"\x01\0\0\0\x01\x01g\x01\0\0\0\x01\x03\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\0\0\0",
        b"\x01\0\0\0\x01\x01g\x01\0\0\0\x01\x04\x01\0\0",
        b"\x01\0\0\0\x01\x01g\x01\0\x01\0\0",
        b"\x01\0\0\0\x01\x01g\x01\0\0\0\x01\x04\0\0",
    ],
    ids=["too many", "too large", "long", "no such place", "no such name", "cut off"],
)
def test_what_is_odd_is_left_to_python(reader: FactReader, body: bytes) -> None:
    assert read(body, reader) == read(body)
