"""Three nodes are cut, paused and killed, and promoted meanwhile: nothing acknowledged is missing, nothing twice.

`TANDEM_SEED=<n>` replays the choices; as long as you like: `make soak ARGS="--three"`.
"""

from pathlib import Path

import pytest

from tests.faults.campaign import run_campaign
from tests.faults.pair_namespaces import need_namespaces
from tests.faults.three_nodes import STEPS
from tests.seed import SEED

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(600)]

ROUNDS = 2


def test_promotions_in_the_midst_of_trouble(tmp_path: Path) -> None:
    need_namespaces()
    report = run_campaign("three_nodes", "--seed", SEED, "--rounds", ROUNDS, "--keep", tmp_path, timeout=560)
    assert not report["problems"]
    assert report["told"]["PUT_OK"] > 0


def test_a_promotion_at_every_step(tmp_path: Path) -> None:
    """A slave is cut off, the other fails, the master dies, all come back: whenever one of them is promoted."""
    need_namespaces()
    report = run_campaign("three_nodes", "--seed", SEED, "--every-step", "--keep", tmp_path, timeout=560)
    assert not report["problems"]
    assert report["done"]["promoted"] > 2
    assert report["done"]["over"] == len(STEPS) + 1
