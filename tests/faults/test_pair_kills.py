"""kill -9 of each of the six processes of a pair in turn, under load: the pair heals, nothing acknowledged is missing.

`TANDEM_SEED=<n>` replays the choices, `TANDEM_TEST_PAIR_KILLS=<n>` makes it longer, and `make soak ARGS="--pair"`
goes on for as long as you like.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("TANDEM_TEST_PAIR_KILLS", "16"))


def test_each_of_six_processes_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.pair_kills", "--seed", str(SEED), "--kills", str(KILLS)]
    command += ["--keep", str(tmp_path)]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=860, check=False)
    assert outcome.stdout, outcome.stderr[-4000:]
    report: dict[str, Any] = json.loads(outcome.stdout)
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n{outcome.stderr[-4000:]}")
    assert not report["problems"]
    assert report["killed"] >= KILLS
    assert len(report["kills"]) == 6
    assert report["told"]["PUT_OK"] > 20 * KILLS, "too little load to mean anything"
