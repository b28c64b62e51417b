"""Facts, as Hypothesis makes them."""

from hypothesis import strategies as st

from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Forgotten,
    Given,
    GivenAgain,
    HeldBy,
    HeldRun,
    LevelDone,
    Moved,
    Place,
    Snapshot,
    TimersDone,
)

NUMBERS = st.integers(0, (1 << 62) - 1)
DUES = st.integers(0, (1 << 44) - 1)
COPIES = st.integers(-1, (1 << 62) - 1)
NAMES = st.sampled_from(("workers", "orders", "größe", "%RETRY%workers", "x" * 255))
PLACES = st.builds(Place, NAMES, NAMES, st.integers(0, (1 << 31) - 1))
ENTRIES = st.lists(
    st.tuples(st.integers(0, 1 << 40), st.integers(0, 65_535), DUES, st.sampled_from((0, 1, 2, 1_760_000_000_000))),
    max_size=20, unique_by=lambda entry: entry[0],
).map(lambda entries: tuple(sorted(entries)))  # fmt: skip
HELD = st.lists(
    st.builds(HeldRun, NUMBERS, st.integers(1, 1 << 20), NAMES, DUES), max_size=5, unique_by=lambda run: run.first
).map(lambda some: tuple(sorted(some)))
FACTS: st.SearchStrategy[Fact] = st.one_of(
    st.builds(Given, PLACES, NUMBERS, st.integers(1, 1 << 20), DUES),
    st.builds(GivenAgain, PLACES, NUMBERS, st.integers(0, 65_535), DUES),
    st.builds(HeldBy, PLACES, NUMBERS, st.integers(1, 1 << 20), DUES, NAMES, DUES),
    st.builds(Dealt, PLACES, NUMBERS, NUMBERS, COPIES),
    st.builds(Moved, PLACES, NUMBERS, st.integers(0, 1 << 40)),
    st.builds(Forgotten, PLACES),
    st.builds(LevelDone, st.integers(1, 1 << 31), NUMBERS, COPIES),
    st.builds(TimersDone, NUMBERS, DUES, NUMBERS, COPIES),
    st.builds(Snapshot, PLACES, NUMBERS, NUMBERS, st.integers(0, 1 << 40), ENTRIES, st.booleans(), HELD),
)
