"""The order of copies, facts, images and the base: as it is nothing is lost or repeated, and each other order does it.

A model that would not notice the wrong order would show nothing. `make soak ARGS="--model"` plays millions of steps.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.seed import SEED
from tests.unit.delivery.fact_histories import KINDS, MUTATIONS, steps_until_wrong
from tests.unit.delivery.fact_world import Step, played

STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 4)), max_size=30)
MOST = 3_000_000
"""Steps in which each other order is found: the rarest takes a quarter of a million, as a rule."""


@pytest.mark.slow
@given(STEPS)
@example([("send", 0), ("give", 0), ("crash", 3), ("send", 0), ("give", 0), ("ack", 0)])  # a handle of what was lost
@example([("timer", 0), ("index", 0), ("deliver", 0), ("crash", 1), ("give", 0), ("ack", 0), ("sync", 0)])
@settings(max_examples=400, deadline=None)
def test_nothing_is_lost_and_what_was_answered_never_comes_again(steps: list[Step]) -> None:
    assert played(steps) == []


@pytest.mark.parametrize("name", MUTATIONS)
def test_another_order_of_steps_loses_or_repeats(name: str) -> None:
    mutation = MUTATIONS[name]
    assert played(mutation.steps) == []
    assert played(mutation.steps, **mutation.rules) != []


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_histories_drawn_at_random_find_each_other_order(name: str) -> None:
    _, history = steps_until_wrong(SEED, MOST, **MUTATIONS[name].rules)
    assert history
    assert played(history) == []
