"""How tests are shared out among pytest's workers."""

import pytest

from tests.scheduling import FileScheduling


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/a/test_b.py::test_c", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_c[d@e::f]", "tests/a/test_b.py"),
        ("tests/a/test_b.py::test_c[d@e]@calm admin", "calm admin"),
    ],
)
def test_a_group_stays_together_and_else_a_file(test: str, unit: str) -> None:
    scheduling = FileScheduling.__new__(FileScheduling)  # a whole one wants workers
    assert scheduling._split_scope(test) == unit
