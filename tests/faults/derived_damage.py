"""Flip bits of consume queues and index files, at random, and see what readers get.

    python -m tests.faults.derived_damage --cases 1000 [--seed 7]

Whatever the log has is served, or what was wrong has been reported, once a reader and a scrub have been there; nothing
is ever served that the log does not have.
"""

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandemmq.store.broker.pulled import NOTHING_YET, Wanted
from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.format.index_layout import HEADER_SIZE, IndexHeader, entry_position
from tandemmq.store.format.record import decode_record
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.log.errors import QueueNotReady
from tests.unit.broker.broker_kit import Kit, broker, records
from tests.unit.broker.listener import listening

SLOTS, ENTRIES, QUEUES, KEYS, TAGS = 53, 150, 3, 17, 3
SETTINGS: dict[str, Any] = {"max_hash_slot_num": SLOTS, "max_index_num": ENTRIES}
_MESSAGES = 240
_WAIT_SECONDS = 120.0

Served = dict[str, list[bytes]]
"""Bodies by what was asked for: a queue, a queue with a filter, a key."""


@dataclass
class Report:
    """What became of the cases."""

    seed: int
    cases: int = 0
    problems: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"seed": self.seed, "cases": self.cases, "problems": self.problems, "outcomes": dict(self.outcomes)}


async def make(root: Path) -> Served:
    """A store with some of everything, closed cleanly; what it serves."""
    async with broker(root, **SETTINGS) as kit:
        for number in range(_MESSAGES):
            kit.clock.now += number % 5 * 700
            properties = {"KEYS": f"k{number % KEYS} n{number}", "TAGS": f"t{number % TAGS}"}
            kit.send("orders", b"body %d" % number, number % 7 % QUEUES, **properties)
        await kit.dispatched()
        return await ask(kit)


async def ask(kit: Kit) -> Served:
    """Everything there is, by every way of asking."""
    served: Served = {}
    for queue_id in range(QUEUES):
        for tags in ("", *(f"t{tag}" for tag in range(TAGS))):
            served[f"queue {queue_id} {tags}"] = await _consume(kit, queue_id, tags)
    for key in (*(f"k{key}" for key in range(KEYS)), *(f"n{number}" for number in range(0, _MESSAGES, 5))):
        found = kit.finder.by_key("orders", key, 0, 0, 64, unique=False)
        served[f"key {key}"] = [decode_record(data).body for data in found]
    return served


async def _consume(kit: Kit, queue_id: int, tags: str) -> list[bytes]:
    bodies: list[bytes] = []
    wanted = Wanted("orders", queue_id, 0, 32, 1 << 20, parse_tags(tags))
    while True:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                pulled = await kit.polls.pull_now(kit.puller, wanted)
        except QueueNotReady:  # said at the start: its end was wrong
            await kit.store.rebuilt()
            continue
        bodies += [record.body for record in records(pulled)]
        if pulled.status in NOTHING_YET or pulled.next_offset >= pulled.max_offset:
            return bodies
        wanted = Wanted("orders", queue_id, pulled.next_offset, 32, 1 << 20, wanted.tag_filter)


def damage(root: Path, dice: random.Random) -> str:
    """Change some bytes of one file, where it is in use; what was done, in words."""
    index = dice.random() < 0.5
    directory = root / ("index" if index else "consumequeue")
    path = dice.choice(sorted(path for path in directory.rglob("*") if path.is_file()))
    data = bytearray(path.read_bytes())
    used = _index_end(data) if index else _queue_end(data)
    at = dice.randrange(min(HEADER_SIZE, used)) if index and dice.random() < 0.2 else dice.randrange(used)
    length = dice.choice((1, 1, 1, 1, 4, 20, 100))
    kind = dice.choice(("bit", "bit", "bit", "byte", "zeros", "ones"))
    for place in range(at, min(at + (1 if kind in ("bit", "byte") else length), used)):
        data[place] = {
            "bit": data[place] ^ 1 << dice.randrange(8), "byte": dice.randrange(256), "zeros": 0, "ones": 0xFF,
        }[kind]  # fmt: skip
    path.write_bytes(data)
    return f"{path.relative_to(root)} at {at}: {kind} {length}"


def _queue_end(data: bytearray) -> int:
    return min(len(data.rstrip(b"\0")) // UNIT_SIZE * UNIT_SIZE + UNIT_SIZE, len(data))


def _index_end(data: bytearray) -> int:
    return entry_position(SLOTS, IndexHeader.unpack(data).index_count)


async def one_case(sound: Path, root: Path, truth: Served, dice: random.Random, report: Report) -> None:
    """Damage a copy, read it twice, with a scrub in between."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(sound, root)
    done = damage(root, dice)
    report.cases += 1
    async with broker(root, **SETTINGS) as kit:
        listener = listening(kit)
        told_at_start = kit.store.rebuilding or bool(kit.store.recovery.notes)
        first = await ask(kit)
        noticed = bool(listener.counts)
        await kit.store.scrub.once()
        await kit.store.rebuilt()
        second = await ask(kit)
        missing = any(first[name] != truth[name] for name in truth)
        for name, wanted in truth.items():
            if set(first[name]) - set(wanted) or len(set(first[name])) != len(first[name]):
                report.problems.append(f"{done}: {name} gave what is not there: {first[name]}")
            if second[name] != wanted:
                report.problems.append(f"{done}: {name} does not give all: {second[name]}, reported {listener.counts}")
        if missing and not (listener.counts or told_at_start):
            report.problems.append(f"{done}: messages were hidden, and nothing was reported")
    report.outcomes[
        "hidden until the scrub" if missing and not noticed else "noticed by a reader" if noticed else "nothing hidden"
    ] += 1


async def campaign(seed: int, cases: int, directory: Path) -> Report:
    """Many cases, up to the first problem."""
    report, dice = Report(seed), random.Random(seed)
    sound = directory / "sound"
    truth = await make(sound)
    while report.cases < cases and not report.problems:
        await one_case(sound, directory / "damaged", truth, dice, report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report = asyncio.run(campaign(arguments.seed, arguments.cases, Path(directory)))
    json.dump(report.document(), sys.stdout)
    sys.stdout.write("\n")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
