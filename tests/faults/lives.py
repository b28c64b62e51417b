"""Many lives of one store directory, each ended by force; what they tell goes to one checker."""

import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.faults.checker import Ack, Audit, Checker, LogRecord, QueueView
from tests.faults.harness import value_parts
from tests.faults.worker import Life, spawn

LIFE_SECONDS_MAX = 240.0
LONGEST = 30.0
"""Lives are made longer by at most so much."""


@dataclass
class Tally:
    """Numbers of a run, for its report."""

    lives: int = 0
    kills: int = 0
    cuts: int = 0
    closes: int = 0
    kills_in_recovery: int = 0
    kills_in_close: int = 0
    sabotages: int = 0
    audits: int = 0
    refused: int = 0
    broken: list[str] = field(default_factory=list)


class Lives:
    """Starts lives, listens, ends them. Everything random comes from one seed."""

    audit_every = 12
    hour = 1.0

    def __init__(self, root: Path, seed: int, scratch: Path) -> None:
        self.root = root
        self.random = random.Random(seed)
        self.checker = Checker()
        self.tally = Tally()
        self._scratch = scratch
        self._begin = time.time()
        self._number = 0
        self._longer = 1.0

    def next_life(self, **choices: Any) -> Life:
        """The next life of the store; about one in twenty begins with the clock set back by up to ten hours."""
        self._number += 1
        self.tally.lives += 1
        back = self.random.randrange(36_000_000) if self.random.random() < 0.05 else 0
        life = Life(
            self.root,
            self._number,
            self.random.randrange(1 << 32),
            clock_begin=self._begin,
            clock_back_ms=back,
            hour=self.hour,
        )
        self.checker.begin(self._number)
        return replace(life, **choices)

    # -- listening ----------------------------------------------------------------------------------------------------

    def listen(self, pipe: int, seconds: float, rest: bytes = b"") -> Iterator[list[Any]]:
        """Lines of the pipe for so long, or until the process ends it. A half line at the end is dropped."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([pipe], [], [], left)[0]:
                return
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from map(json.loads, lines)
            if rest:  # written in one piece and read in two
                deadline = max(deadline, time.monotonic() + 0.001)

    def take(self, line: list[Any]) -> str:
        """Give one line to the checker; returns its kind."""
        kind, *rest = line
        if kind == "ack":
            value, topic, queue_id, offset, physical, size, crc = rest
            self.checker.ack(Ack(value, *value_parts(value), (topic, queue_id), offset, physical, size, crc))
        elif kind == "fail":
            self.tally.refused += 1
            self.checker.fail(rest[0])
        elif kind == "poll":
            consumer, topic, queue_id, first, seen = rest
            self.checker.poll(consumer, (topic, queue_id), first, [(offset, value) for offset, value in seen])
        elif kind in ("opened", "bounds"):
            log_min, log_max, bounds = rest
            self.checker.offsets(log_min, log_max, {(t, q): (first, end) for t, q, first, end in bounds})
        elif kind == "broken":
            self.tally.broken.append(f"life {self._number}: {rest[0]}")
        return str(kind)

    def longer(self, acks_per_life: int) -> float:
        """By what the next life is to last longer than planned, so that on a slow machine it does as much as on others.

        Lives that are as long everywhere would end before the first message is sent where everything takes long.
        """
        much = self.checker.acked_total >= acks_per_life * self.tally.lives
        self._longer = max(self._longer / 1.3, 1.0) if much else min(self._longer * 1.3, LONGEST)
        return self._longer

    # -- ways to live and die -----------------------------------------------------------------------------------------

    def killed(self, life: Life, after: float) -> None:
        """Live, and be killed ``after`` seconds, whatever the process is doing then."""
        pid, pipe = spawn(life)
        kinds = [self.take(line) for line in self.listen(pipe, after)]
        os.kill(pid, signal.SIGKILL)
        kinds += [self.take(line) for line in self.listen(pipe, LIFE_SECONDS_MAX)]
        self.reap(pid, pipe)
        self.tally.kills += "closed" not in kinds
        self.tally.closes += "closed" in kinds
        self.tally.kills_in_recovery += "opened" not in kinds
        self.tally.kills_in_close += life.close_after is not None and "closed" not in kinds and after > life.close_after

    def audited(self, life: Life) -> None:
        """Live only to be read: everything is compared with everything."""
        path = self._scratch / "audit.json"
        path.unlink(missing_ok=True)
        pid, pipe = spawn(replace(life, audit_to=path))
        kinds = [self.take(line) for line in self.listen(pipe, LIFE_SECONDS_MAX)]
        if "audited" in kinds:
            self.tally.audits += 1
            self.checker.audit(load_audit(path))
        elif "broken" not in kinds:
            os.kill(pid, signal.SIGKILL)
            self.tally.broken.append(f"life {life.number}: no audit within {LIFE_SECONDS_MAX} s")
        self.reap(pid, pipe)

    def reap(self, pid: int, pipe: int) -> int:
        os.close(pipe)
        return os.waitpid(pid, 0)[1]

    def sabotage(self) -> None:
        """Take away one thing that can be made again from the log."""
        self.tally.sabotages += 1
        queues = [*(self.root / "consumequeue").glob("*/*")]
        files = [*(self.root / "index").glob("*"), *(self.root / "consumequeue").glob("*/*/*")]
        names = ["consumequeue", "index", "checkpoint", "tandem.manifest", "tandem.damage"]
        victims = [self.root / name for name in names] + self.random.sample(queues, min(1, len(queues)))
        victim = self.random.choice(victims + self.random.sample(files, min(2, len(files))))
        sys.stderr.write(f"life {self._number}: without {victim.relative_to(self.root)}\n")
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)

    def report(self) -> dict[str, Any]:
        checker = self.checker
        return {
            **vars(self.tally),
            "acked": checker.acked_total,
            "expired": checker.expired_total,
            "polled": checker.polled_total,
            "problems": [list(problem) for problem in checker.problems],
        }

    def run(self, lives: int, one_life: Callable[[], None], minutes: float = 0.0) -> dict[str, Any]:
        """Live so often (or so long), with an audit now and then and at the end; stops at the first problem."""
        deadline = time.monotonic() + minutes * 60
        count = 0
        while not self.checker.problems and not self.tally.broken:
            count += 1
            if (minutes and time.monotonic() > deadline) or (not minutes and count > lives):
                break
            one_life()
            if count % self.audit_every == 0:
                self.audited(self.next_life())
                if self.random.random() < 0.5:
                    self.sabotage()
        self.audited(self.next_life())
        return self.report()


def load_audit(path: Path) -> Audit:
    data = json.loads(path.read_text())
    queues = {}
    for (topic, queue_id), view in data["queues"]:
        messages = {int(offset): tuple(found) for offset, found in view["messages"].items()}
        queues[topic, queue_id] = QueueView(view["min_offset"], view["max_offset"], messages)
    records = [LogRecord._make([*record[:3], (record[3][0], record[3][1]), *record[4:]]) for record in data["records"]]
    return Audit(data["log_min"], data["log_max"], records, queues, data["missing_keys"])
