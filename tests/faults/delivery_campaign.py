"""Producers and consumers at a store, or at a pair, whose processes are killed: every message is dealt with.

    python -m tests.faults.delivery_campaign --scene store|power|pair --seed 7 --seconds 60 [--keep directory]

Consumers acknowledge, fail, stall, give up, are stopped and killed; producers are killed in the midst of sends. At the
end everything is left in peace: what is still to come is dealt with, and `delivery_history` judges. Then the store is
stopped cleanly: nothing comes again.
Prints a report as JSON; of what is lost, it says where it stopped on each node (`delivery_trace`). `power` needs root.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tandemmq.client import ClientError
from tandemmq.common.topic_names import dead_letter_topic
from tandemmq.store.delivery.journal.images import read_offsets
from tests.faults.delivery_consumer import TOPIC, GroupMember, Recorder, now
from tests.faults.delivery_events import history_of
from tests.faults.delivery_history import Group, History, Position, first_problems
from tests.faults.delivery_scenes import SCENES, Scene
from tests.faults.delivery_trace import Trace
from tests.faults.harness import value_of
from tests.faults.pair import Node
from tests.faults.pair_process import _DIES_WITH_US
from tests.faults.powercuts import CannotCut, see_mounts_alone

GROUPS = [Group("plain", 3), Group("line", 4, ordered=True), Group("picky", 3, tag="T1")]
MEMBERS = 2
"""Consumers of each group; each is a process."""
PRODUCERS = 2
PRODUCER = "producer"
DRAIN_SECONDS = 180.0
ENOUGH = 5
"""Messages acknowledged to producers for each second that was asked for, or a round means nothing."""


class ClientProcess:
    """A consumer or producer as a process, started again when it was killed."""

    def __init__(self, directory: Path, name: str, addresses: list[str], seed: int, module: str, *options: str) -> None:
        """`options`: of that module of the campaigns, beside those of all."""
        self.lives = 0
        self._name = name
        self._directory = directory
        self._addresses = addresses
        self._seed = seed
        self._command = [*_DIES_WITH_US, sys.executable, "-m", f"tests.faults.{module}", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """A new life."""
        self.lives += 1
        name = f"{self._name}-{self.lives}"
        command = [
            *self._command, "--name", name, "--addresses", ",".join(self._addresses),
            "--events", str(self._directory / f"{name}.events"), "--seed", f"{self._seed} {name}",
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def _log(self) -> Path:
        return self._directory / "clients.log"

    def check(self) -> None:
        """It does not end by itself."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"{self._name} ended: {self._log.read_text()[-3000:]}")

    def end(self) -> None:
        """It does what it is at, and no more."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(90)

    def stall(self, seconds: float) -> None:
        """It stands still."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """It dies."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)


class Campaign:
    """One round. Everything that is chosen comes from one seed."""

    def __init__(self, directory: Path, scene: str, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(f"delivery {scene} {seed}")
        self.events = directory / "events"
        self.events.mkdir(parents=True)
        self.scene: Scene = SCENES[scene](directory, self.random, GROUPS)
        self.positions: list[Position] = []
        self.done: Counter[str] = Counter()
        self.drained: list[GroupMember] = []

    def run(self, seconds: float) -> dict[str, Any]:
        """A round; its report."""
        report: dict[str, Any] = {"seed": self.seed, "kind": self.scene.kind}
        broken = ""
        history = History(GROUPS)
        try:
            self.scene.start()
            self.under_load(seconds)
            history = self.drain()
            if history.lost():
                report["stopped"] = self.where_they_stopped(history)
            self.stop_cleanly(history)
        except Exception:  # noqa: BLE001 - it is the report
            broken = traceback.format_exc()[-6_000:]
        finally:
            self.scene.close()
            for member in self.drained:
                member.close()
        problems = history.problems()
        told = [one for one in history.sent.values() if one.told]
        return report | {
            "told": {"PUT_OK": len(told), "unknown": len(history.sent) - len(told)},
            "received": len(history.receipts),
            "settled": dict(Counter(one.how for one in history.settlings if one.told)),
            "dead_letters": {group: len(letters) for group, letters in history.letters.items()},
            "positions": len(self.positions),
            "done": dict(self.done),
            "killed": sum(number for what, number in self.done.items() if what not in ("restart", "stall")),
            "problems": first_problems(problems),
            "broken": [broken] if broken else [],
        }

    # -- under load -------------------------------------------------------------------------------------------------

    def under_load(self, seconds: float) -> None:
        """Producers and consumers at work, and faults in turn, until it was long enough and much enough."""
        producers, consumers = self.producers(), self.consumers()
        for one in (*producers, *consumers):
            one.start()
        begun = time.monotonic()
        try:
            while (passed := time.monotonic() - begun) < seconds or (
                self.acknowledged() < ENOUGH * seconds and passed < 4 * seconds + 60
            ):
                time.sleep(self.random.random() * self.random.choice([0.5, 1.0, 4.0]))
                self.one_fault(producers, consumers)
                self.look_at_positions()
            for producer in producers:
                producer.end()
        finally:
            for one in (*producers, *consumers):
                one.kill()

    def producers(self) -> list[ClientProcess]:
        return [
            ClientProcess(
                self.events, f"{PRODUCER}{at}", self.scene.addresses, self.seed, "delivery_producer", "--pause", "0.02"
            )
            for at in range(PRODUCERS)
        ]

    def consumers(self) -> list[ClientProcess]:
        return [
            ClientProcess(
                self.events, f"{group.name}{at}", self.scene.addresses, self.seed, "delivery_consumer",
                "--group", group.name, "--tag", group.tag,
            )
            for group in GROUPS
            for at in range(MEMBERS)
        ]  # fmt: skip

    def acknowledged(self) -> int:
        """Messages that producers were told of so far."""
        return sum(path.read_bytes().count(b'["sent", ') for path in self.events.glob(f"{PRODUCER}*.events"))

    def one_fault(self, producers: list[ClientProcess], consumers: list[ClientProcess]) -> None:
        """Something is done to somebody."""
        for one in (*producers, *consumers):
            one.check()
        draw = self.random.random()
        victim = self.random.choice(consumers)
        if draw < 0.2:
            self.done["kill consumer"] += 1
            victim.kill()
            victim.start()
        elif draw < 0.3:
            self.done["kill producer"] += 1
            producer = self.random.choice(producers)
            producer.kill()
            producer.start()
        elif draw < 0.45:
            victim.stall(self.random.choice([0.5, 3.0]))
            self.done["stall"] += 1
        else:
            ways = self.scene.ways()
            before = len(self.scene.faults)
            self.random.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
            self.done[self.scene.faults[-1].what if len(self.scene.faults) > before else "restart"] += 1

    def look_at_positions(self) -> None:
        """What consumerOffset.json says, on each node."""
        for node in self.scene.nodes:
            self.positions += self.stands_at(node)

    @staticmethod
    def stands_at(node: Node) -> list[Position]:
        """What the file of a node says now of our topic."""
        try:
            document = json.loads((node.root / "config" / "consumerOffset.json").read_text())
        except FileNotFoundError:
            return []
        at = now()
        return [
            Position(one.place.group, (one.place.topic, one.place.queue), one.offset, at)
            for one in read_offsets(document)
            if one.place.topic == TOPIC
        ]

    # -- in peace -----------------------------------------------------------------------------------------------------

    def history(self) -> History:
        """What was seen so far."""
        history = history_of(self.events, GROUPS, self.scene.faults)
        history.positions = self.positions
        return history

    def drain(self) -> History:
        """Nobody dies any more: take all that is still to come, until nothing is missing and nothing comes."""
        self.scene.heal()
        recorder = Recorder(self.events / "last.events")
        self.drained = [
            GroupMember(self.scene.addresses, group.name, group.tag, recorder, f"last {group.name}") for group in GROUPS
        ]
        deadline = time.monotonic() + DRAIN_SECONDS
        quiet = 0
        while quiet < 4 and time.monotonic() < deadline:
            came = sum(self.take(member) for member in self.drained)
            quiet = 0 if came or self.missing() else quiet + 1
        history = self.history()
        history.letters = {group.name: list(self.letters(group)) for group in GROUPS}
        self.look_at_positions()
        return history

    def missing(self) -> bool:
        """Whether something is still to come, as far as can be told without a look at all dead letters."""
        history = self.history()
        if not history.lost():
            return False
        history.letters = {group.name: list(self.letters(group)) for group in GROUPS}
        return bool(history.lost())

    @staticmethod
    def take(member: GroupMember) -> int:
        """Messages that came and are dealt with."""
        held = member.receive(256, 10_000, 500, 60.0)
        if held:
            member.acknowledge(held)
        return len(held)

    def letters(self, group: Group) -> Iterator[str]:
        """The values of a group's dead letters."""
        topic = dead_letter_topic(group.name)
        with self.scene.master.client() as client:
            try:
                queues = client.offsets(topic)
            except ClientError:
                return  # there is none
            for queue in queues:
                offset = queue.min_offset
                while offset < queue.max_offset:
                    pulled = client.pull(topic, queue.queue_id, offset, max_messages=500)
                    for record in pulled.records:
                        yield value_of(record.body)
                    assert pulled.next_offset > offset, "a pull makes no progress"
                    offset = pulled.next_offset

    def where_they_stopped(self, history: History) -> dict[str, dict[str, list[str]]]:
        """What each node's files say of what nobody got. Its processes are killed for that."""
        values = [value for _, value in history.lost()]
        for node in self.scene.nodes:
            node.kill()
        return {str(node.root): Trace(node.root, values).found for node in self.scene.nodes}

    def stop_cleanly(self, history: History) -> None:
        """After a clean stop nothing comes, and each position is the end of its queue."""
        if history.problems():
            return
        self.scene.restart(self.scene.master.store)
        self.scene.heal()
        for member in self.drained:
            came = [one.value for _ in range(3) for one in member.receive(256, 10_000, 500, 60.0)]
            assert not came, f"after a clean stop {member.group} gets {came[:5]} ({len(came)})"
        with self.scene.master.client() as client:
            ends = {(TOPIC, queue.queue_id): queue.max_offset for queue in client.offsets(TOPIC)}
        deadline = time.monotonic() + 60
        expected = {(group.name, *at): end for group in GROUPS for at, end in ends.items()}
        while (stands := self.last_positions()) != expected:
            assert time.monotonic() < deadline, f"positions {stands} are not the ends {ends}"
            time.sleep(0.2)

    def last_positions(self) -> dict[tuple[str, str, int], int]:
        """What the master's consumerOffset.json says."""
        return {(one.group, *one.queue): one.offset for one in self.stands_at(self.scene.master)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--scene", choices=SCENES, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--keep", type=Path, help="leave nodes and events here")
    arguments = parser.parse_args()
    memory = Path("/dev/shm")
    where = memory if arguments.scene == "power" and memory.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="tandem-delivery-", dir=where) as scratch:
        try:
            if arguments.scene == "power":
                see_mounts_alone()
            campaign = Campaign(arguments.keep or Path(scratch), arguments.scene, arguments.seed)
        except CannotCut as reason:
            json.dump({"skipped": str(reason)}, sys.stdout)
            return 0
        report = campaign.run(arguments.seconds)
    json.dump(report, sys.stdout, indent=1)
    return 1 if report["problems"] or report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
