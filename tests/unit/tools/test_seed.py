"""One seed for a run: Hypothesis draws from it, and what draws is marked, so that it gets no second try."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seed import SEED


@given(st.integers())
def test_hypothesis_draws_from_the_seed_of_the_run(pytestconfig: pytest.Config, number: int) -> None:
    assert isinstance(number, int)
    assert pytestconfig.getoption("hypothesis_seed") == str(SEED)


def test_who_has_the_seed_is_marked_and_processes_inherit_it(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("seeded") is not None
    assert os.environ["TANDEM_SEED"] == str(SEED)
