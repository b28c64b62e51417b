"""Damage to the files that say what is delivered when: `timers/` and `config/timercheck`.

    python -m tests.faults.timer_damage --seed 7 --cases 2000      --first N: begin at case N, to replay one

Each case copies a store in which some timers have come and others wait, damages one of those files, opens it and lets
time pass until all are due. Each message that waited must come, and once: twice only where a word was said about it.
"""

import asyncio
import random
import shutil
import sys
import traceback
from collections import Counter
from pathlib import Path

from tandemmq.store.delivery.delays.timer_check_file import TimerCheckFile
from tandemmq.store.log.edges.disk import LocalDisk
from tests.faults.byte_damage import Case, Ears, command_line, damage, judged, scratch, told
from tests.unit.delivery.delays.delay_kit import BEGIN, DelayKit, delaying

CASES = 2_000
HOUR_MS = 3_600_000
SECONDS_AHEAD = (1, 2, 30, 59, 60, 61, 600, 3_599, 3_600, 3_601, 3_700, 7_300, 7_301, 40_000)
OPENED_AT = BEGIN + 90_000
"""By then those of the first minute have come."""
DUE_AT = BEGIN + 12 * HOUR_MS
"""By then all have."""


def check_file(kit: DelayKit) -> TimerCheckFile:
    """The keeper of `config/timercheck`."""
    delays = kit.delays
    return TimerCheckFile(kit.kit.store, kit.journal.ledger, delays.index, LocalDisk(), kit.wall, 1_000)


async def make(root: Path) -> None:
    """A store with timers of which some have come, closed cleanly."""
    async with delaying(root) as kit:
        for number in range(4):
            for seconds in SECONDS_AHEAD:
                await kit.send(b"%d/%d" % (seconds, number), TIMER_DELIVER_MS=str(BEGIN + seconds * 1_000 + number))
        for _ in range(9):
            await kit.pass_time(10)
        await kit.delays.follower.checkpoint()
        check = check_file(kit)
        check.start()
        await check.stop()


def victims(root: Path) -> list[Path]:
    """The files that a case may damage."""
    return [*sorted(path for path in (root / "timers").rglob("*") if path.is_file()), root / "config" / "timercheck"]


async def come(root: Path) -> tuple[Counter[bytes], list[str]]:
    """How often each message has come when all are due, over two lives; and what was said."""
    with Ears() as ears:
        async with delaying(root, now=OPENED_AT, starts=False) as kit:
            kit.journal.note(*check_file(kit).facts())
            kit.delays.start()
            await kit.pass_time(600)
        async with delaying(root, now=DUE_AT) as kit:
            for _ in range(3):
                await kit.pass_time(2)
            return Counter(kit.bodies()), ears.told


class TimerDamage:
    """One store, and cases of damage to it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._whole, self._work, self._seed = directory / "whole", directory / "work", seed
        self._sent: set[bytes] = set()

    async def prepare(self) -> None:
        """Make the store, and look at it as it is."""
        await make(self._whole)
        shutil.copytree(self._whole, self._work)
        found, _ = await come(self._work)
        shutil.rmtree(self._work)
        assert set(found.values()) == {1}
        assert len(found) == 4 * len(SECONDS_AHEAD)
        self._sent = set(found)

    async def case(self, number: int) -> Case:
        """One case."""
        chance = random.Random(f"{self._seed}/{number}")
        root = shutil.copytree(self._whole, self._work)
        files = victims(root)
        victim = chance.choice(files)
        how = damage(victim, [path for path in files if path != victim], chance)
        case = Case(number, "timers", str(victim.relative_to(root)), how)
        try:
            found, told = await come(root)
        except Exception:  # noqa: BLE001 - whatever it is, it is what the campaign looks for
            case.faults.append(traceback.format_exc(limit=-6))
        else:
            twice = sorted(body for body, count in found.items() if count > 1)
            case.verdict = "twice" if twice else "reported" if told else "served"
            case.faults += [f"never came: {sorted(self._sent - set(found))}"] if self._sent - set(found) else []
            case.faults += [f"invented: {sorted(set(found) - self._sent)}"] if set(found) - self._sent else []
            case.faults += [f"came twice, silently: {twice}"] if twice and not told else []
        shutil.rmtree(root, ignore_errors=True)
        return case


async def campaign(seed: int, cases: int, first: int = 0, *, say: bool = False) -> tuple[Counter[str], list[Case]]:
    """See `judged`."""
    with scratch("tandem-timers-") as directory:
        whole = TimerDamage(directory, seed)
        await whole.prepare()
        return await judged(whole.case, seed, cases, first, say=say)


def soak(seed: int, cases: int, first: int = 0) -> int:
    """Many cases; what they found, as exit code."""
    return told("timer damage", seed, asyncio.run(campaign(seed, cases, first, say=True)))


if __name__ == "__main__":
    sys.exit(command_line(__doc__, CASES, soak))
