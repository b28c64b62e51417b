"""Running a campaign (a module of this package) as a process, and reading what it reports."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def run_campaign(module: str, *options: object, timeout: float) -> dict[str, Any]:
    """The report of `tests.faults.<module>`, which goes to the test's output too, with the end of its log."""
    command = [sys.executable, "-m", f"tests.faults.{module}", *map(str, options)]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=False)
    assert outcome.stdout, outcome.stderr[-4000:]
    report: dict[str, Any] = json.loads(outcome.stdout)
    sys.stdout.write(f"{json.dumps(report, indent=1)}\n{outcome.stderr[-4000:]}")
    return report
