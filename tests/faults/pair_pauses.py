"""SIGSTOP of the six processes of a pair in turn, for 0.1 s up to a minute, under SYNC_MASTER load; then they go on.

    python -m tests.faults.pair_pauses --seed 7 --pauses 60 --longest 60 [--keep directory]

A process that stands still is not dead: its sockets are open, its peers wait or give up, and it goes on with what it
knew. What a producer was told PUT_OK is looked for on both nodes while it stands; in the end everything is compared,
and no store time may have gone back. Prints a report as JSON.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults.harness import records_on_disk
from tests.faults.pair_kills import HEAL_SECONDS, PairKills
from tests.faults.pair_load import Ledger

SHORTEST = 0.1


class PairPauses(PairKills):
    """A pair whose processes stand still instead of dying."""

    def __init__(self, directory: Path, seed: int, longest: float) -> None:
        """No pause is longer than so many seconds; short ones are as frequent as long ones."""
        super().__init__(directory, seed)
        self.longest = longest
        self.pauses: list[float] = []

    def one_kill(self, ledger: Ledger) -> None:
        """Stop one or two, look at the files, let them go on, wait until messages reach both again."""
        processes = dict(self.pair.processes())
        victims = self.victims()
        seconds = SHORTEST * (self.longest / SHORTEST) ** self.random.random()
        for name in victims:
            os.kill(processes[name].pid, signal.SIGSTOP)
            self.killed[name] += 1
        time.sleep(seconds)
        self.pauses.append(round(seconds, 2))
        self.look(ledger)
        for name in self.random.sample(victims, len(victims)):
            os.kill(processes[name].pid, signal.SIGCONT)
        if self.random.random() < 0.25:
            return  # the next one stops before this one is back
        begun, acknowledged = time.monotonic(), len(ledger.of())
        while len(ledger.of()) == acknowledged and not ledger.broken:
            dead = [name for name, process in processes.items() if not process.running]
            if dead or time.monotonic() - begun > HEAL_SECONDS:
                self.problems.append(f"no PUT_OK after {victims} stood still, dead {dead}: {self.pair.describe()}")
                return
            time.sleep(0.01)
        self.heal_seconds.append((time.monotonic() - begun, " and ".join(victims)))

    def at_rest(self, ledger: Ledger, report: dict[str, Any]) -> None:
        """As after kills; and store times only grow."""
        report["pauses_s"] = self.pauses
        super().at_rest(ledger, report)
        times = [record.store_timestamp for _, _, record in records_on_disk(self.pair.master.root)]
        if times != sorted(times):
            self.problems.append("a store time went back")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--pauses", type=int, default=60)
    parser.add_argument("--longest", type=float, default=60.0, help="seconds")
    parser.add_argument("--keep", type=Path, help="leave the nodes here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tandem-pair-") as scratch:
        pauses = PairPauses(arguments.keep or Path(scratch), arguments.seed, arguments.longest)
        report = pauses.run(arguments.pauses)
    json.dump(report, sys.stdout, indent=1)
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
