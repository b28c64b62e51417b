"""kill -9 of the six processes of a pair in turn, under SYNC_MASTER load; now and then one is stopped, or frozen.

    python -m tests.faults.pair_kills --seed 7 --kills 300 [--keep directory]

What a producer was told PUT_OK is looked for in the slave's files at once; after each kill the files are compared and
everything acknowledged so far is looked for again, before anything is started. Prints a report as JSON.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.pair import Pair
from tests.faults.pair_checks import (
    assert_index_equal,
    assert_logs_equal,
    assert_queues_equal,
    first_difference,
    leftovers,
    log_files,
    missing_on,
    same_topics,
    topics_of,
)
from tests.faults.pair_load import PUT_OK, Ledger, load
from tests.faults.pair_process import ServiceProcess, until

FILE_SIZE = 128 * 1024
LOAD_PER_KILL = 20
"""Fewer messages than that for each kill mean nothing."""
HEAL_SECONDS = 120.0


class PairKills:
    """A pair under load, and what is done to it. Everything random comes from one seed."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(f"pair {seed}")
        self.seed = seed
        flush = self.random.choice(["ASYNC_FLUSH", "SYNC_FLUSH"])
        ack = self.random.choice(["PAGE_CACHE", "FLUSHED"])
        settings = {"slaveTimeout": 1_500, "flushDiskType": flush, "mappedFileSizeCommitLog": FILE_SIZE}
        settings |= {"checkpointLogBytes": 256 * 1024}
        self.pair = Pair(directory, store=settings, slave_replicator={"haSlaveAck": ack})
        self.killed: Counter[str] = Counter()
        self.stopped = self.frozen = 0
        self.problems: list[str] = []
        self.heal_seconds: list[tuple[float, str]] = []
        self.kind = f"{flush}, {ack}"
        self._looked_at = 0
        self._victims: list[str] = []

    def run(self, kills: int) -> dict[str, Any]:
        """So many kills; stops at the first problem."""
        report: dict[str, Any] = {"seed": self.seed, "kind": self.kind}
        try:
            with self.pair:
                with load(
                    self.pair.master.address("store"), self.pair.slave.root, FILE_SIZE, self.seed, check=False
                ) as ledger:
                    while sum(self.killed.values()) - self.stopped < kills and not self.problems and not ledger.broken:
                        self.one_kill(ledger)
                    self.enough(ledger, LOAD_PER_KILL * kills)
                report |= {"told": dict(ledger.count()), "refused": dict(ledger.refused)}
                self.problems += ledger.broken
                if not self.problems:
                    self.heal_seconds.append((self.pair.heal(HEAL_SECONDS), "the end"))
                    self.at_rest(ledger, report)
        except Exception:  # noqa: BLE001 - it is the report
            self.problems.append(traceback.format_exc()[-6_000:])
        heals = sorted(self.heal_seconds)
        return report | {
            "kills": dict(self.killed),
            "killed": sum(self.killed.values()) - self.stopped,
            "stopped": self.stopped,
            "frozen_before": self.frozen,
            "heal_median_s": round(heals[len(heals) // 2][0], 2) if heals else None,
            "heal_worst_s": [(round(seconds, 2), after) for seconds, after in heals[-3:]],
            "problems": self.problems,
        }

    def victims(self) -> list[str]:
        """The next to die: each of the six once, then again in another order; sometimes two at a time."""
        if len(self._victims) < 2:
            names = [name for name, _ in self.pair.processes()]
            self._victims += self.random.sample(names, len(names))
        chosen = [self._victims.pop(0) for _ in range(2 if self.random.random() < 0.15 else 1)]
        return list(dict.fromkeys(chosen))

    def one_kill(self, ledger: Ledger) -> None:
        """Kill, look at the files, start again, wait until messages reach both again (mostly)."""
        time.sleep(self.random.random() * 0.3)
        processes = dict(self.pair.processes())
        victims = self.victims()
        for name in victims:
            self.end(processes[name])
            self.killed[name] += 1
        self.look(ledger)
        time.sleep(self.random.choice([0, 0, 0.05, 0.4]))
        for name in victims:
            processes[name].launch()
        if self.random.random() < 0.25:
            return  # the next one dies before this one is back
        begun, acknowledged = time.monotonic(), len(ledger.of())
        while len(ledger.of()) == acknowledged or not all(process.running for process in processes.values()):
            dead = [name for name, process in processes.items() if not process.running]
            if dead or time.monotonic() - begun > HEAL_SECONDS:
                self.problems.append(f"it does not heal after {victims}, dead {dead}: {self.pair.describe()}")
                return
            time.sleep(0.01)
        self.heal_seconds.append((time.monotonic() - begun, " and ".join(victims)))

    def enough(self, ledger: Ledger, number: int) -> None:
        """The load goes on until it was enough to mean something, on a slow machine as well."""
        deadline = time.monotonic() + HEAL_SECONDS
        while len(ledger.of()) <= number and not self.problems and not ledger.broken and time.monotonic() < deadline:
            time.sleep(0.05)

    def end(self, process: ServiceProcess) -> None:
        """Mostly by SIGKILL at once; some are asked to stop, some hang for a while before they are killed."""
        way = self.random.random()
        if way < 0.12:
            self.stopped += 1
            exit_code = process.stop()
            if exit_code not in (0, -signal.SIGTERM):  # asked before it could listen to signals
                self.problems.append(f"{process.service} ended with {exit_code}: {process.log.read_text()[-3_000:]}")
            return
        if way < 0.24:
            self.frozen += 1
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self.random.choice([0.1, 0.7, 2.5]))
            if self.random.random() < 0.5:
                os.kill(process.pid, signal.SIGCONT)
                time.sleep(self.random.random() * 0.2)
        process.kill()

    def look(self, ledger: Ledger) -> None:
        """What was acknowledged since the last look is on both; what both have is the same."""
        told = ledger.of()
        fresh, self._looked_at = told[self._looked_at :], len(told)
        for node in self.pair.nodes:
            self.problems += [f"{node.directory.name}: {what}" for what in missing_on(node.root, FILE_SIZE, fresh)[:3]]
        end = max((one.physical_offset for one in told), default=0)
        start = max(end - 4 * FILE_SIZE, 0) // FILE_SIZE * FILE_SIZE
        difference = first_difference(self.pair.master.root, self.pair.slave.root, end, begin=start)
        if difference is not None:
            self.problems.append(f"the logs differ at {difference}, below {end}")

    def at_rest(self, ledger: Ledger, report: dict[str, Any]) -> None:
        """Nobody sends, all six run: everything is compared with everything."""
        end = self.pair.master.role().max_offset
        master, slave = self.pair.master.root, self.pair.slave.root
        until(lambda: same_topics(master, slave), HEAL_SECONDS, "the topics are the same")
        report["topics"] = len(topics_of(slave))
        for node in self.pair.nodes:
            node.stop()
            self.problems += [f"{node.directory.name}: {name} is left behind" for name in leftovers(node.root)]
        report["log_bytes"] = assert_logs_equal(master, slave, end, begin=0)
        report["files"] = len(log_files(slave))
        report["queue_files"] = assert_queues_equal(master, slave)
        report["index_files"] = assert_index_equal(master, slave)
        told = ledger.told
        for root in (master, slave):
            acknowledged = told if root == master else [one for one in told if one.status == PUT_OK]
            self.problems += missing_on(root, FILE_SIZE, acknowledged)[:3]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="leave the nodes here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tandem-pair-") as scratch:
        report = PairKills(arguments.keep or Path(scratch), arguments.seed).run(arguments.kills)
    json.dump(report, sys.stdout, indent=1)
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
