"""kill -9, hundreds of times: a store under load is killed at any moment and started again on the same directory.

    python -m tests.faults.kills --seed 7 --lives 500

Kills hit recovery, rebuilds, rolls, checkpoints, retention and clean shutdown. The page cache survives a kill, so every
acknowledgement that was given counts, with SYNC_FLUSH and ASYNC_FLUSH alike. Prints a report as JSON.
"""

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path

from tests.faults.lives import Lives

ACKS_PER_LIFE = 80
"""Messages that are to be acknowledged in a life, one with another."""


class Kills(Lives):
    """Lives that end by SIGKILL."""

    def one_life(self) -> None:
        draw = self.random.random
        longer = self.longer(ACKS_PER_LIFE)
        after = draw() * 0.02 if draw() < 0.2 else (0.02 + draw() * 0.16) * longer
        close_after = draw() * 0.08 * longer if draw() < 0.15 else None
        if close_after is not None and draw() < 0.5:
            after = 0.015 * longer + close_after + draw() * 0.02 * longer
        self.killed(self.next_life(sync=draw() < 0.5, close_after=close_after), after)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--lives", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--keep", type=Path, help="leave the store here")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="tandem-kills-") as scratch:
        root = arguments.keep or Path(scratch) / "store"
        root.mkdir(parents=True, exist_ok=True)
        kills = Kills(root, arguments.seed, Path(scratch))
        report = kills.run(arguments.lives, kills.one_life, arguments.minutes)
    json.dump(report | {"seed": arguments.seed}, sys.stdout, indent=1)
    return 1 if report["problems"] or report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
