"""kill -9 of each of the six processes of a pair in turn, under load: the pair heals, nothing acknowledged is missing.

`TANDEM_SEED=<n>` replays the choices, `TANDEM_TEST_PAIR_KILLS=<n>` makes it longer, and `make soak ARGS="--pair"`
goes on for as long as you like.
"""

import os
from pathlib import Path

import pytest

from tests.faults.campaign import run_campaign
from tests.faults.harness import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("TANDEM_TEST_PAIR_KILLS", "16"))


def test_each_of_six_processes_is_killed(tmp_path: Path) -> None:
    report = run_campaign("pair_kills", "--seed", SEED, "--kills", KILLS, "--keep", tmp_path, timeout=860)
    assert not report["problems"]
    assert report["killed"] >= KILLS
    assert len(report["kills"]) == 6
    assert report["told"]["PUT_OK"] > 20 * KILLS, "too little load to mean anything"
