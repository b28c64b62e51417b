"""kill -9 of a store in which very many messages wait for their time, while more come: none is lost, or comes early.

    python -m tests.faults.timer_kill --timers 10000000

What was acknowledged waits when the store is open again, and is indexed. Some are due by then: each of them comes.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.delays.delays import Delays
from tandemmq.store.format.record import decode_record
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

TOPIC = "orders"
_SIZES: dict[str, Any] = {"mapped_file_size_commit_log": 64 << 20, "mapped_file_size_consume_queue": 6_000_000}
_AT_ONCE = 256
_SOON = 512
"""The first so many are due seconds later, the others tomorrow."""
_SOON_MS = 2_000
_MOST_SECONDS = 60
"""So long after the start they are waited for."""
_DAY_MS = 86_400_000


@dataclass
class Found:
    """What there is after the kill."""

    acknowledged: int
    waiting: int
    """With those that have come."""
    came: Counter[int]
    """By their numbers."""
    early: int
    open_seconds: float
    """Until all of them were in the index."""
    memory_mb: float
    """Of this process then, the most it ever had."""


def timed(number: int, now_ms: int) -> NewMessage:
    """A message with its number and its time in its body."""
    due = now_ms + _SOON_MS if number < _SOON else now_ms + _DAY_MS + number % 3_600_000
    return NewMessage(TOPIC, HOST, b"%d %d" % (number, due), {"TIMER_DELIVER_MS": str(due)}, queue_id=0)


async def fill(root: Path) -> None:
    """Store timed messages until this process is killed; prints how many are acknowledged."""
    async with delivering(root, **_SIZES) as at:
        acknowledged, now_ms = 0, int(time.time() * 1_000)
        while True:
            await at.broker.append([timed(acknowledged + n, now_ms) for n in range(_AT_ONCE)], [])
            acknowledged += _AT_ONCE
            sys.stdout.write(f"{acknowledged}\n")
            sys.stdout.flush()
            await asyncio.sleep(0)


def filled_and_killed(root: Path, timers: int) -> int:
    """Have another process fill a store, and kill it when so many are acknowledged; how many were at the end."""
    command = [sys.executable, "-c", f"from tests.faults.timer_kill import main; main(['--fill', {str(root)!r}])"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            acknowledged = 0
            for line in process.stdout:
                acknowledged = int(line)
                if acknowledged >= timers:
                    break
        finally:
            process.kill()
        rest = process.stdout.read().splitlines(keepends=True)
    whole = [int(line) for line in rest if line.endswith("\n")]
    return max([acknowledged, *whole])


async def look(root: Path, acknowledged: int) -> Found:
    """Open the store again, until all are indexed and those that are due have come."""
    begun = time.perf_counter()
    async with delivering(root, **_SIZES) as at:
        [delays] = [one for one in at.delivery.services if isinstance(one, Delays)]
        while delays.timed.not_indexed or not delays.timed.is_current:
            await asyncio.sleep(0.02)
        open_seconds = time.perf_counter() - begun
        queue, end = at.store.ensure_queue(TOPIC, 0), time.monotonic() + _MOST_SECONDS
        while len(came := bodies(at, queue.max_offset)) < _SOON and time.monotonic() < end:
            await asyncio.sleep(0.1)
        numbers = Counter(number for number, _, _ in came)
        early = sum(stored < due for _, due, stored in came)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return Found(acknowledged, delays.timed.waiting + len(numbers), numbers, early, open_seconds, memory)


def bodies(at: DeliveringStore, end: int) -> list[tuple[int, int, int]]:
    """Of what has come: its number, when it was due, and when it came."""
    queue, found = at.store.ensure_queue(TOPIC, 0), []
    for unit in queue.read(0, end):
        data = at.store.read_record(unit.physical_offset)
        assert data is not None
        record = decode_record(data)
        number, due = map(int, record.body.split())
        found.append((number, due, record.store_timestamp))
    return found


def problems(found: Found) -> list[str]:
    """What is wrong."""
    wrong = []
    if found.waiting < found.acknowledged:
        wrong.append(f"{found.acknowledged - found.waiting} timers are lost")
    if found.waiting > found.acknowledged + _AT_ONCE:
        wrong.append(f"{found.waiting - found.acknowledged} timers are there that nobody knows")
    if set(found.came) != set(range(_SOON)):
        wrong.append(f"of {_SOON} that were due {len(found.came)} came")
    if found.early:
        wrong.append(f"{found.early} came early")
    return wrong


def main(given: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument("--fill", type=Path, help="fill this store, and wait to be killed")
    arguments = parser.parse_args(given)
    if arguments.fill is not None:
        asyncio.run(fill(arguments.fill))
    with tempfile.TemporaryDirectory(prefix="tandem-timers-") as scratch:
        return soak(Path(scratch) / "store", arguments.timers)


def soak(root: Path, timers: int) -> int:
    """Fill a store, kill it, look at it; what was found, as exit code."""
    found = asyncio.run(look(root, filled_and_killed(root, timers)))
    wrong = problems(found)
    if found.acknowledged < timers:
        wrong.append(f"the store took {found.acknowledged:,} of {timers:,} and then no more")
    said = f"{found.acknowledged:,} timers, open after {found.open_seconds:.1f} s, {found.memory_mb:.0f} MB at most"
    sys.stdout.write(f"{said}: {wrong or 'all are there'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
