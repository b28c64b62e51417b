"""kill -9 of a store that takes over rebuilt queues and index under load, at any moment and at each of its steps.

    python -m tests.faults.adoption_kills --seed 7 --lives 200

Rounds of a few lives, each with a store of its own. The judge is that of all kills (checker.py). Beside it: a start
after a kill has nothing to restore, whatever mixture of old and rebuilt files the kill has left. That does not hold in
the rounds in which files of the log expire: a queue that has lost some since the last checkpoint is looked at anew.
"""

import argparse
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.lives import Lives
from tests.faults.worker import Adopting

FEWEST_KILLS = 5
"""And an adoption that came to its end, and one that died in one of its steps: less shows nothing, on any machine."""

LIVES_PER_ROUND = 15
ACKS_PER_LIFE = 100
STEPS, STEPS_OF_SWAP = 110, 16
"""An adoption takes so many operations of the disk, give or take; and so many to put the files in place."""


class AdoptionKills(Lives):
    """Lives that end by SIGKILL, from outside or by the disk's own hand."""

    audit_every = 5

    def __init__(self, root: Path, seed: int, scratch: Path, *, expiring: bool) -> None:
        super().__init__(root, seed, scratch)
        self._expiring = expiring
        self.hour = 4.0 if expiring else 3600.0
        self.told: Counter[str] = Counter()
        self.refusals: list[str] = []

    def take(self, line: list[Any]) -> str:
        kind = super().take(line)
        self.told[kind] += 1
        if kind == "rebuilding" and not self._expiring:
            self.tally.broken.append(f"life {self._number}: a start had to restore something")
        if kind == "refused":
            self.refusals.append(line[1])
        if kind == "died":
            self.told[f"died at {line[1]}"] += 1
        if kind == "adopted":
            self.told["tail messages"] += line[2]
        return kind

    def one_life(self) -> None:
        draw = self.random.random
        from_swap = draw() < 0.6
        kill_at = self.random.randrange(1, STEPS_OF_SWAP if from_swap else STEPS) if draw() < 0.7 else 0
        adopting = Adopting(kill_at, behind=draw() < 0.5, can_exchange=draw() < 0.6, from_swap=from_swap)
        close_after = 0.1 + draw() * 0.2 if draw() < 0.05 else None
        after = 10.0 if kill_at else (0.05 + draw() * 1.0) * self.longer(ACKS_PER_LIFE)
        self.killed(self.next_life(sync=draw() < 0.5, close_after=close_after, adopting=adopting), after)

    def sabotage(self) -> None:
        """None here: nothing but kills."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--lives", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1e9, help="no round begins later, once something was shown")
    parser.add_argument("--keep", type=Path, help="leave the stores here")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    chance, deadline = random.Random(arguments.seed), time.monotonic() + arguments.minutes * 60
    total: Counter[str] = Counter()
    told: Counter[str] = Counter()
    report: dict[str, Any] = {"seed": arguments.seed, "problems": [], "broken": [], "refusals": []}
    with tempfile.TemporaryDirectory(prefix="tandem-adoptions-") as scratch:
        for number in range(-(-arguments.lives // LIVES_PER_ROUND)):
            died = any(kind.startswith("died at") for kind in told)
            shown = died and told["adopted"] and total["kills"] >= FEWEST_KILLS
            if report["problems"] or report["broken"] or (shown and time.monotonic() > deadline):
                break
            root = (arguments.keep or Path(scratch)) / f"store-{number}"
            root.mkdir(parents=True)
            kills = AdoptionKills(root, chance.randrange(1 << 32), Path(scratch), expiring=number % 2 == 1)
            found = kills.run(LIVES_PER_ROUND, kills.one_life)
            told.update(kills.told)
            for name in ("problems", "broken"):
                report[name] += [f"round {number}: {what}" for what in found.pop(name)]
            total.update(found)
            report["refusals"] += kills.refusals
    json.dump(report | {**total, "told": told}, sys.stdout, indent=1)
    return 1 if report["problems"] or report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
