"""Three nodes in networks of their own, under load: cuts, pauses and kills, and promotions in the midst of them.

    python -m tests.faults.three_nodes --seed 7 --rounds 20 [--keep directory]      needs root
    python -m tests.faults.three_nodes --seed 7 --every-step [--both]               no chance: one trouble, step by step

Producers are at all three nodes all the time: whoever takes messages is found out. Each round does something to the
nodes, promotes a slave or both of them (never with accept-loss), and does something more while that is under way. Then
everything is let go on, promotions that came to nothing are asked for again, and the others follow. Only a slave whose
log is refused as a fork, or as ahead, is seeded anew. With `--every-step` the trouble is always the same (see `STEPS`),
and one of the slaves in turn, with `--both` each of them, is asked to take over before each of its steps, and after the
last. In the end each message told PUT_OK is on every node, once, with its number; the logs are the same, and their
audit finds nothing.
Prints a report as JSON.
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
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, RoleState
from tests.faults.harness import records_on_disk, value_of
from tests.faults.pair import FOLLOWING, GIVES_UP_SOON, REFUSED, SERVICES, Node, slave_of
from tests.faults.pair_checks import assert_logs_equal, assert_queues_equal, missing_on
from tests.faults.pair_load import Ledger, load
from tests.faults.pair_namespaces import Network, Side, network
from tests.faults.pair_process import until

SIDES: tuple[Side, ...] = ("a", "b", "c")
HEAL_SECONDS = 120.0
FILE_SIZES = (96 * 1024, 192 * 1024, 1 << 20)
REPLICATOR = {**GIVES_UP_SOON, "haHousekeepingInterval": 1_500}
STEPS = ("cut", "acknowledge", "lose other", "lose master", "other back", "mend", "master back")
"""A slave is cut off from its master; messages are acknowledged without it; the replicator of the other slave is
killed; the master is killed; the replicator is back; all reach one another; the master is back."""
_PROMOTE_SECONDS = 20.0
_ACKNOWLEDGED_SECONDS = 3.0
_LOOKS_BEFORE_SEEDING = 20
"""A slave that is refused may have asked before its master was told of something."""


class ThreeNodes:
    """The nodes, and what is done to them. Everything random comes from one seed."""

    def __init__(self, directory: Path, net: Network, seed: int) -> None:
        self.random = random.Random(f"three {seed}")
        self.seed = seed
        self.file_size = self.random.choice(FILE_SIZES)
        flush = self.random.choice(["ASYNC_FLUSH", "SYNC_FLUSH"])
        self.kind = f"{flush}, files of {self.file_size >> 10} KiB"
        store = {"slaveTimeout": 1_200, "flushDiskType": flush, "mappedFileSizeCommitLog": self.file_size}
        self.net = net
        self.nodes: dict[Side, Node] = {}
        for number, side in enumerate(SIDES):
            more: dict[str, Any] = {"store": store, "replicator": REPLICATOR}
            more |= {"host": net.addresses[side], "prefix": net.prefix(side)}
            if number:
                self.nodes[side] = slave_of(self.nodes["a"], directory / side, number, **more)
            else:
                self.nodes[side] = Node(directory / side, 0, "SYNC_MASTER", **more)
        self.master: Side = "a"
        self.done: Counter[str] = Counter()
        self.history: list[str] = []
        self.problems: list[str] = []
        self.heal_seconds: list[float] = []

    def run(self, rounds: int | None, *, both: bool = False) -> dict[str, Any]:
        """So many rounds, or a promotion at every step, of `both` slaves if asked; the report."""
        ledgers: list[Ledger] = []
        try:
            with ExitStack() as stack:
                for node in self.nodes.values():
                    stack.callback(node.close)
                self.heal()
                with ExitStack() as loads:
                    for side, node in self.nodes.items():
                        one = load(node.address("store"), None, self.file_size, self.seed, name=side, check=False)
                        ledgers.append(loads.enter_context(one))
                    if rounds is None:
                        self.every_step(ledgers, both=both)
                    for _ in range(rounds or 0):
                        self.one_round(ledgers)
                self.heal()
                self.at_rest(ledgers)
        except Exception:  # noqa: BLE001 - it is the report
            self.problems.append(traceback.format_exc()[-6_000:])
        told = sum((Counter(one.count()) for one in ledgers), Counter[str]())
        heals = sorted(self.heal_seconds)
        return {
            "seed": self.seed,
            "kind": self.kind,
            "done": dict(self.done),
            "killed": self.done["kill"] + self.done["pause"] + self.done["cut"],
            "told": dict(told),
            "heal_median_s": round(heals[len(heals) // 2], 2) if heals else None,
            "heal_worst_s": [round(one, 2) for one in heals[-3:]],
            "problems": self.problems,
            "history": self.history if self.problems else [],
        }

    # -- a round ------------------------------------------------------------------------------------------------------

    def one_round(self, ledgers: Sequence[Ledger]) -> None:
        """Trouble, a promotion or two, trouble meanwhile; then all is well again, and messages are acknowledged."""
        chance, slaves = self.random, [side for side in SIDES if side != self.master]
        time.sleep(chance.uniform(0.1, 0.8))
        for _ in range(chance.choice([0, 1, 1, 2])):
            self.trouble()
            time.sleep(chance.choice([0, chance.uniform(0, 0.4), chance.uniform(0.4, 2)]))
        candidates = chance.sample(slaves, chance.choice([1, 1, 2]))
        gone = chance.random() < 0.7
        with ThreadPoolExecutor(2) as pool:
            asked: list[Future[bool]] = []
            for side in candidates:
                asked.append(pool.submit(self.promote, side, old_master_is_gone=gone))
                time.sleep(chance.choice([0, 0.02, 0.1]))
            for _ in range(chance.choice([0, 1, 1, 2, 3])):
                time.sleep(chance.choice([chance.uniform(0, 0.03), chance.uniform(0, 0.15), chance.uniform(0, 1)]))
                self.trouble()
            for one in asked:
                one.result(_PROMOTE_SECONDS + 10)
        self.heal()
        self.goes_on(ledgers)

    def goes_on(self, ledgers: Sequence[Ledger]) -> None:
        """Wait until more is acknowledged than was."""
        before = _acknowledged(ledgers)
        until(
            lambda: _acknowledged(ledgers) > before,
            HEAL_SECONDS,
            lambda: f"nothing is acknowledged: {self.describe()}",
        )

    def every_step(self, ledgers: Sequence[Ledger], *, both: bool) -> None:
        """A slave is promoted before each step of the trouble, and after all.

        It is the one that is cut off or the other in turn, the first by the seed; or each of them, one after the other.
        """
        for place in range(len(STEPS) + 1):
            for asks_the_other in (False, True) if both else (bool((place + self.seed) % 2),):
                master, slaves = self.master, [side for side in SIDES if side != self.master]
                lagging, other = slaves[place % 2], slaves[1 - place % 2]
                asked = other if asks_the_other else lagging
                self.history.append(
                    f"-- {asked} is asked before step {place}; {master} leads, {lagging} will be cut off"
                )
                for number, step in enumerate((*STEPS, "over")):
                    if number == place:
                        self.promote(asked, old_master_is_gone=True)
                    self.take(step, master, lagging, other, ledgers)
                self.heal()
                self.goes_on(ledgers)

    def take(self, step: str, master: Side, lagging: Side, other: Side, ledgers: Sequence[Ledger]) -> None:
        """One step of the trouble."""
        self.done[step] += 1
        self.history.append(step)
        if step == "cut":
            self.net.cut(master, lagging)
            self.net.cut(lagging, master)
        elif step == "acknowledge":
            self.acknowledge(ledgers)
        elif step == "lose other":
            self.nodes[other].replicator.kill()
        elif step == "lose master":
            self.nodes[master].kill()
        elif step == "other back":
            self.nodes[other].replicator.start()
        elif step == "mend":
            self.net.mend()
        elif step == "master back":
            self.nodes[master].start()

    def acknowledge(self, ledgers: Sequence[Ledger]) -> None:
        """Wait for a few messages: none come where a promotion has been promised to somebody."""
        before, deadline = _acknowledged(ledgers), time.monotonic() + _ACKNOWLEDGED_SECONDS
        while _acknowledged(ledgers) < before + 5 and time.monotonic() < deadline:
            time.sleep(0.01)

    def trouble(self) -> None:
        """Cut, pause or kill something; mostly it hits the master."""
        chance = self.random
        what = chance.choice(["cut", "cut", "pause", "kill"])
        side = chance.choice([self.master, self.master, *SIDES])
        others = [one for one in SIDES if one != side]
        services = chance.choice([["store"], ["replicator"], list(SERVICES)])
        self.done[what] += 1
        if what == "cut":
            both, others = chance.random() < 0.7, chance.choice([others, others[:1], others[1:]])
            self.history.append(f"{side} and {others} are cut, both ways: {both}")
            for other in others:
                self.net.cut(side, other)
                if both:
                    self.net.cut(other, side)
            return
        self.history.append(f"{what} {services} of {side}")
        for name in services:
            process = self.nodes[side].processes[name]
            if what == "kill":
                process.kill()
            elif process.running:
                os.kill(process.pid, signal.SIGSTOP)

    def promote(self, side: Side, **more: Any) -> bool:
        """Ask for it; whether it was done."""
        request = replication_pb2.PromoteRequest(role=BrokerRole.SYNC_MASTER, **more)
        try:
            done = self.nodes[side].replication().Promote(request, timeout=_PROMOTE_SECONDS)
        except grpc.RpcError as error:
            self.done["refused"] += 1
            self.history.append(f"{side} is not promoted: {error}")
            return False
        self.done["promoted"] += 1
        self.history.append(f"{side} is master of epoch {done.state.identity.epoch}")
        return True

    # -- and all is well again ----------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Let everything go on, have one master, and both others follow it and count."""
        begun = time.monotonic()
        self.net.mend()
        for node in self.nodes.values():
            for process in node.processes.values():
                if process.running:
                    os.kill(process.pid, signal.SIGCONT)
                else:
                    process.launch()
        for node in self.nodes.values():
            for process in node.processes.values():
                process.wait_answering()
        refused: Counter[Side] = Counter()
        until(lambda: self.in_step(refused), HEAL_SECONDS, lambda: f"it does not heal: {self.describe()}")
        self.heal_seconds.append(time.monotonic() - begun)

    def in_step(self, refused: Counter[Side]) -> bool:
        """Whether it is so; does the next thing for it if not."""
        roles = {side: node.role() for side, node in self.nodes.items()}
        masters = [side for side in SIDES if _is_master(roles[side])]
        if not masters:
            for side in sorted(SIDES, key=lambda one: (-roles[one].identity.epoch, -roles[one].max_offset)):
                if self.promote(side, old_master_is_gone=True) or self.promote(side):
                    break
            return False
        self.master = max(masters, key=lambda side: roles[side].identity.epoch)
        epoch = roles[self.master].identity.epoch
        slaves = [side for side in SIDES if side != self.master]
        follow = [self.follows(side, roles[side], refused) for side in slaves]
        if not all(follow):
            time.sleep(0.1)
            return False
        groups = [roles[side].group for side in slaves]  # a slave that takes over must know of the other
        return all(one.epoch == epoch and sum(not who.joining for who in one.members) == 2 for one in groups)

    def follows(self, side: Side, role: RoleState, refused: Counter[Side]) -> bool:
        """Whether a node follows the master; has it do so, or seeds it anew, if not."""
        node, master = self.nodes[side], self.nodes[self.master]
        status = node.status()
        if status is None:
            return False
        if role.identity.role != BrokerRole.SLAVE or status.follower.master_address != master.ha_address:
            request = replication_pb2.FollowRequest(
                ha_master_address=master.ha_address, replicator_address=master.address("replicator")
            )
            try:
                node.replication().Follow(request, timeout=10)
            except grpc.RpcError as error:
                self.history.append(f"{side} does not follow {self.master}: {error}")
            return False
        if status.follower.state == REFUSED:
            refused[side] += 1
            if refused[side] >= _LOOKS_BEFORE_SEEDING and "our log ends" in status.follower.problem:
                self.seed_anew(side, status.follower.problem)
                refused[side] = 0
        return status.follower.state == FOLLOWING

    def seed_anew(self, side: Side, why: str) -> None:
        """What this node alone has was never acknowledged."""
        self.done["seeded"] += 1
        self.history.append(f"{side} is seeded anew: {why}")
        self.nodes[side].stop()
        command = ["reseed", "--data", str(self.nodes[side].root), "--yes-it-was-a-master"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        self.nodes[side].start()

    def describe(self) -> str:
        """What all of them say, for a failure."""
        return "\n".join(f"-- {side}: {node.role()} {node.status()}" for side, node in self.nodes.items())

    # -- the verdict --------------------------------------------------------------------------------------------------

    def at_rest(self, ledgers: Sequence[Ledger]) -> None:
        """Nobody sends, all nine run: level, stopped, and compared with everything."""
        until(lambda: len({one.role().max_offset for one in self.nodes.values()}) == 1, HEAL_SECONDS, self.describe)
        end = self.nodes["a"].role().max_offset
        for node in self.nodes.values():
            node.stop()
        self.problems += [what for one in ledgers for what in one.broken]
        acknowledged = [told for one in ledgers for told in one.of()]
        numbers = Counter((told.topic, told.queue_id, told.queue_offset) for told in acknowledged)
        self.problems += [f"{number} was given {times} times" for number, times in numbers.items() if times > 1][:5]
        for side, node in self.nodes.items():
            self.problems += [f"{side}: {what}" for what in missing_on(node.root, self.file_size, acknowledged)[:5]]
            audit = CliRunner().invoke(app, ["audit", str(node.root)])
            if audit.exit_code:
                self.problems.append(f"audit of {side}: {audit.output[-2_000:]}")
        root = self.nodes["a"].root
        values = Counter(value_of(record.body) for _, _, record in records_on_disk(root, end))
        self.problems += [f"{value} is there {times} times" for value, times in values.items() if times > 1][:5]
        for side in ("b", "c"):
            assert_logs_equal(root, self.nodes[side].root, end, begin=0)
            assert_queues_equal(root, self.nodes[side].root)


def _acknowledged(ledgers: Sequence[Ledger]) -> int:
    """How many messages were told PUT_OK so far."""
    return sum(len(one.of()) for one in ledgers)


def _is_master(role: RoleState) -> bool:
    return role.identity.role != BrokerRole.SLAVE and not role.identity.fenced_by_epoch


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--every-step", action="store_true", help="no rounds, but a promotion at every step")
    parser.add_argument("--both", action="store_true", help="of each slave at every step, not of one of them in turn")
    parser.add_argument("--keep", type=Path, help="leave the nodes here")
    arguments = parser.parse_args()
    rounds = None if arguments.every_step else arguments.rounds
    with tempfile.TemporaryDirectory(prefix="tandem-three-") as scratch, network(SIDES) as net:
        report = ThreeNodes(arguments.keep or Path(scratch), net, arguments.seed).run(rounds, both=arguments.both)
    json.dump(report, sys.stdout, indent=1)
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
