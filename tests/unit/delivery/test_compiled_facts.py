"""Facts of the journal as bytes: the compiled core against its Python twin."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, GivenAgain, Place
from tandemmq.store.delivery.journal.journal_format import MOST_BYTES, FactCore, Position, encode_records
from tests.unit.delivery.fact_strategies import COPIES, DUES, FACTS, NUMBERS

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

ONE, OTHER = Place("workers", "orders", 3), Place("workers", "größe", 200)
PLACES = st.sampled_from((ONE, OTHER))
PROGRESS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Given, PLACES, NUMBERS, st.integers(1, 1 << 20), DUES),
    st.builds(Dealt, PLACES, NUMBERS, NUMBERS, COPIES),
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
