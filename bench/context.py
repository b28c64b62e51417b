"""A run: how long, how often, where, and what came of it."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from bench.generators import LoadShape
from bench.model import Case, Results, Unavailable
from bench.process import environment

_ROOT = Path(__file__).parent.parent
_WORKER_SECONDS = 900


class Ended(Protocol):
    """A server, or several."""

    def discard(self) -> None:
        """End it and remove what it wrote."""
        ...


class Runnable(Protocol):
    """A contestant that is a server."""

    @property
    def server(self) -> Ended:
        """What is to be ended."""
        ...

    def start(self) -> object:
        """Start it. Raises Unavailable."""
        ...


Peer = TypeVar("Peer", bound=Runnable)


@dataclass
class Context:
    """What the groups of cases need to know and to do."""

    rounds: int
    quick: bool
    selected: Sequence[str]
    directory: Path
    results: Results = field(default_factory=Results)

    def shape(self, connections: int = 1, in_flight: int = 1, items: int = 1) -> LoadShape:
        """A shape of this run's length."""
        shape = LoadShape(connections, in_flight, items)
        return replace(shape, warm=0.3, seconds=0.6) if self.quick else shape

    def wants(self, name: str) -> bool:
        """Whether a case `group.case`, or any case of a `group`, was asked for."""
        group = name.partition(".")[0]
        return not self.selected or any(
            wanted in (name, group) or (name == group and wanted.startswith(f"{group}.")) for wanted in self.selected
        )

    def say(self, text: str) -> None:
        """A line of progress."""
        print(text, file=sys.stderr, flush=True)

    def miss(self, error: Unavailable) -> None:
        """Something cannot be measured: the reader is told why."""
        self.results.note(str(error))
        self.say(f"  not measured: {error}")

    @contextmanager
    def running(self, makers: Sequence[Callable[[], Peer]]) -> Iterator[list[Peer]]:
        """Start those servers that can be had; afterwards they and their data are gone."""
        started: list[Peer] = []
        try:
            for make in makers:
                peer: Peer | None = None
                try:
                    peer = make()
                    started.append(peer)
                    peer.start()
                except Unavailable as error:
                    self.miss(error)
                    if peer is not None:
                        started.remove(peer)
                        peer.server.discard()
            yield started
        finally:
            for peer in started:
                peer.server.discard()

    def fresh(self, name: str) -> Path:
        """A new directory for one contestant."""
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def worker(self, *arguments: str) -> str:
        """Run a measurement in a process of its own; its last line. Raises Unavailable."""
        command = [sys.executable, "-m", "bench.worker", *arguments]
        done = subprocess.run(
            command, cwd=_ROOT, env=environment(), capture_output=True, text=True, timeout=_WORKER_SECONDS, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            last = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            raise Unavailable(f"bench.worker {arguments[0]} failed: {last[0][:300]}")
        return lines[-1]

    def run(self, cases: Sequence[Case]) -> None:
        """Measure cases, contestants taking turns."""
        for case in cases:
            if not self.wants(case.name):
                continue
            rounds = min(case.rounds or self.rounds, self.rounds)
            if case.together is not None:
                self.say(f"  {case.name}")
                try:
                    for who, samples in case.together(rounds).items():
                        for sample in samples:
                            self.results.add(case, who, sample)
                except Unavailable as error:
                    self.miss(error)
                continue
            self._take_turns(case, rounds)

    def _take_turns(self, case: Case, rounds: int) -> None:
        playing = list(case.contestants)
        failed: set[str] = set()
        for number in range(rounds):
            self.say(f"  {case.name}  round {number + 1}/{rounds}")
            for contestant in list(playing):
                try:
                    self.results.add(case, contestant.name, contestant.measure())
                except Unavailable as error:
                    self.miss(Unavailable(f"{case.name}, {contestant.name}: {error}"))
                    if contestant.name in failed:  # once may be chance: a broker that is short of time refuses
                        playing.remove(contestant)
                    failed.add(contestant.name)


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """A directory for the data of all contestants, on one disk; removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="tandem-bench-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
