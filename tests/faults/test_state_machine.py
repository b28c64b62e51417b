"""A store against its model; the large version is ``make soak ARGS="--machine"``."""

import pytest

from tests.campaigns import in_campaigns
from tests.faults.machine import run_examples
from tests.seed import SEED

FEW, MANY = 10, 120


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("examples", [FEW, *in_campaigns(MANY)])
def test_a_store_keeps_its_word(examples: int) -> None:
    run_examples(examples, SEED)
