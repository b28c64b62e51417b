"""kill -9 while rebuilt queues and index are taken over under load: nothing missing, nothing doubled, nothing restored.

A run is one process that forks a store process per life (adoption_kills.py). ``TANDEM_SEED=<n>`` replays its choices,
``TANDEM_TEST_ADOPTION_MINUTES=<x>`` makes it longer.
"""

import os
from pathlib import Path

import pytest

from tests.faults.campaign import run_campaign
from tests.faults.harness import SEED

MINUTES = os.environ.get("TANDEM_TEST_ADOPTION_MINUTES", "0.4")


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_a_kill_in_the_middle_of_an_adoption_leaves_a_store_that_is_right(tmp_path: Path) -> None:
    options = ["--seed", SEED, "--lives", 150, "--minutes", MINUTES, "--keep", tmp_path]
    report = run_campaign("adoption_kills", *options, timeout=960)
    assert not report["problems"]
    assert not report["broken"]
    assert report["kills"] >= 5
    assert report["told"].get("adopted"), "no adoption came to its end"
    assert any(kind.startswith("died at") for kind in report["told"]), "no step was hit"
