"""A store against its model; the large version is ``make soak ARGS="--machine"``."""

import pytest

from tests.faults.machine import run_examples
from tests.seed import SEED

EXAMPLES = 120


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_store_keeps_its_word() -> None:
    run_examples(EXAMPLES, SEED)
