"""One seed for a run: Hypothesis draws from it, and what draws is marked, so that it gets no second try."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seed import SEED, draws

MODULE = """
from tests.seed import SEED
from tests.elsewhere import kit
from tests.faults.test_pair_network import FILE_SIZE, under_load as loaded

LIVES = 500
CHANCE: object = kit.random(SEED)


@kit.fixture
def load():
    yield kit.load(SEED)


def helper():
    return [lambda: CHANCE]


class Scene:
    seed = SEED


def test_by_itself(): kit.run(seed=SEED)
def test_by_a_value(): assert CHANCE
def test_by_a_fixture(load): assert load
async def test_by_a_function(): assert helper()
@kit.parametrize("chance", [CHANCE])
def test_by_a_parameter(chance): assert chance
def test_by_a_class(): assert Scene()
class TestMany:
    def test_one(self): assert helper()

def test_by_an_import(): assert loaded()
def test_that_does_not(quick_path): assert LIVES and kit and FILE_SIZE
def test_that_says_so(): assert "SEED"
"""
DRAWING = {"itself", "a_value", "a_fixture", "a_function", "a_parameter", "a_class", "an_import"}


@given(st.integers())
def test_hypothesis_draws_from_the_seed_of_the_run(pytestconfig: pytest.Config, number: int) -> None:
    assert isinstance(number, int)
    assert pytestconfig.getoption("hypothesis_seed") == str(SEED)


def test_who_has_the_seed_is_marked_and_processes_inherit_it(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("seeded") is not None
    assert os.environ["TANDEM_SEED"] == str(SEED)


def test_of_a_module_with_the_seed_those_tests_draw_that_use_it(tmp_path: Path) -> None:
    path = tmp_path / "test_module.py"
    path.write_text(MODULE)
    assert all(draws(path, f"test_by_{what}") for what in DRAWING)
    assert draws(path, "TestMany")
    assert not draws(path, "test_that_does_not")
    assert not draws(path, "test_that_says_so")


def test_all_draw_where_the_modules_marks_do(tmp_path: Path) -> None:
    path = tmp_path / "test_module.py"
    path.write_text(MODULE + "\npytestmark = kit.parametrize('number', [CHANCE])\n")
    assert draws(path, "test_that_does_not")
