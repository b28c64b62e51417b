"""Kill and power-cut stores for as long as you like, each round with a new seed.

    python -m tests.faults.soak --minutes 60 [--seed 7] [--only kills|powercuts]

Stops at the first broken promise, names the seed, and leaves the store where it says.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUND_LIVES = 300
KINDS = ("kills", "powercuts")


def one_round(kind: str, seed: int, lives: int) -> dict[str, Any]:
    """One round in a process of its own; its report."""
    keep = Path(tempfile.gettempdir()) / f"tandem-{kind}-{seed}"
    command = [sys.executable, "-m", f"tests.faults.{kind}", "--seed", str(seed), "--lives", str(lives)]
    if kind == "powercuts":
        command += ["--keep", str(keep)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if not outcome.stdout:
        return {"problems": [], "broken": [outcome.stderr]}
    report: dict[str, Any] = json.loads(outcome.stdout)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--lives", type=int, default=ROUND_LIVES, help="lives in a round")
    arguments = parser.parse_args()
    kinds = [arguments.only] if arguments.only else list(KINDS)
    deadline, seed = time.monotonic() + arguments.minutes * 60, arguments.seed
    totals = {"rounds": 0, "kills": 0, "cuts": 0, "acked": 0, "audits": 0}
    while time.monotonic() < deadline:
        for kind in list(kinds):
            report = one_round(kind, seed, arguments.lives)
            if "skipped" in report:
                sys.stdout.write(f"{kind}: {report['skipped']}\n")
                kinds.remove(kind)
                continue
            if report["problems"] or report["broken"]:
                sys.stdout.write(f"{kind} with seed {seed}:\n{json.dumps(report, indent=1)}\n")
                return 1
            totals["rounds"] += 1
            for name in ("kills", "cuts", "acked", "audits"):
                totals[name] += report[name]
            sys.stdout.write(f"{kind} seed {seed}: nothing lost; so far {totals}\n")
            sys.stdout.flush()
        if not kinds:
            return 0
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
