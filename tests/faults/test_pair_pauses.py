"""Each of a pair's six processes stands still for a while under load: nothing acknowledged is missing, nothing twice.

`TANDEM_SEED=<n>` replays the choices; pauses of up to a minute: `make soak ARGS="--pauses"`.
"""

from pathlib import Path

import pytest

from tests.faults.campaign import run_campaign
from tests.seed import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAUSES = 8


def test_each_of_six_processes_stands_still(tmp_path: Path) -> None:
    options = ["--seed", SEED, "--pauses", PAUSES, "--longest", 2, "--keep", tmp_path]
    report = run_campaign("pair_pauses", *options, timeout=860)
    assert not report["problems"]
    assert len(report["kills"]) == 6
    assert len(report["pauses_s"]) >= 6
