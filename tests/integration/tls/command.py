"""The `tandem` command in a process of its own, with an environment that says only what a test says."""

import os
import subprocess
import sys
from typing import NamedTuple


class Outcome(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


def tandem(*arguments: object, environment: dict[str, object] | None = None) -> Outcome:
    """Runs it; root options come first."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
    own |= {name: str(value) for name, value in (environment or {}).items()}
    command = [sys.executable, "-m", "tandemmq.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=own, check=False, timeout=100)
    assert "Traceback" not in done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)
