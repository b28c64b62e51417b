"""Three nodes are cut, paused and killed, and promoted meanwhile: nothing acknowledged is missing, nothing twice.

`TANDEM_SEED=<n>` replays the choices; as long as you like: `make soak ARGS="--three"`.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.pair_namespaces import need_namespaces
from tests.seed import SEED

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).resolve().parents[2]
ROUNDS = 2


def test_promotions_in_the_midst_of_trouble(tmp_path: Path) -> None:
    need_namespaces()
    command = [sys.executable, "-m", "tests.faults.three_nodes", "--seed", str(SEED), "--rounds", str(ROUNDS)]
    command += ["--keep", str(tmp_path)]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=560, check=False)
    assert outcome.stdout, outcome.stderr[-4000:]
    report: dict[str, Any] = json.loads(outcome.stdout)
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n{outcome.stderr[-4000:]}")
    assert not report["problems"]
    assert report["told"]["PUT_OK"] > 0
