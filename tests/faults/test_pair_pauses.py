"""Each of a pair's six processes stands still for a while under load: nothing acknowledged is missing, nothing twice.

`TANDEM_SEED=<n>` replays the choices; pauses of up to a minute: `make soak ARGS="--pauses"`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.seed import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).resolve().parents[2]
PAUSES = 8


def test_each_of_six_processes_stands_still(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.pair_pauses", "--seed", str(SEED), "--pauses", str(PAUSES)]
    command += ["--longest", "2", "--keep", str(tmp_path)]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=860, check=False)
    assert outcome.stdout, outcome.stderr[-4000:]
    report: dict[str, Any] = json.loads(outcome.stdout)
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n{outcome.stderr[-4000:]}")
    assert not report["problems"]
    assert len(report["kills"]) == 6
    assert len(report["pauses_s"]) >= 6
