"""kill -9 while rebuilt queues and index are taken over under load: nothing missing, nothing doubled, nothing restored.

A run is one process that forks a store process per life (adoption_kills.py). ``TANDEM_SEED=<n>`` replays its choices,
``TANDEM_TEST_ADOPTION_MINUTES=<x>`` makes it longer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.harness import SEED

REPOSITORY = Path(__file__).resolve().parents[2]
MINUTES = os.environ.get("TANDEM_TEST_ADOPTION_MINUTES", "0.4")


@pytest.mark.slow
@pytest.mark.timeout(1000)
def test_a_kill_in_the_middle_of_an_adoption_leaves_a_store_that_is_right(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.adoption_kills", "--seed", str(SEED), "--lives", "150"]
    command += ["--minutes", MINUTES, "--keep", str(tmp_path)]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=960, check=False)
    assert outcome.stdout, outcome.stderr[-4000:]
    report = json.loads(outcome.stdout)
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n{outcome.stderr[-4000:]}")
    assert not report["problems"]
    assert not report["broken"]
    assert report["kills"] >= 5
    assert report["told"].get("adopted"), "no adoption came to its end"
    assert any(kind.startswith("died at") for kind in report["told"]), "no step was hit"
