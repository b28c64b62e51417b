"""`make demo` installs what a broker needs; `make venv` goes on to everything. Nothing is installed here: `make -n`."""

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


def told(goal: str) -> list[str]:
    """What is made, in order; parts of lint look for the same once more, beside each other."""
    done = subprocess.run(["make", "-nB", goal], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return list(dict.fromkeys(line for line in done.stdout.splitlines() if "make_venv" in line))


@pytest.mark.parametrize("goal", ["demo", "product"])
def test_a_demo_needs_the_product_only(goal: str) -> None:
    (line,) = told(goal)
    assert line.endswith("tools/make_venv")


@pytest.mark.parametrize("goal", ["venv", "lint", "bench"])
def test_a_developer_gets_the_product_and_then_everything(goal: str) -> None:
    product, rest = told(goal)
    assert product.endswith("tools/make_venv")
    assert rest == "tools/make_venv everything"
