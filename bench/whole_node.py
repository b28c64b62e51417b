"""A node as `tandem up` runs it, with its admin and console, as a contestant; and people who look at it."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

from bench import payloads
from bench.model import Unavailable
from bench.process import ServerProcess, environment
from bench.store import NAME, Store
from tandemmq.node.ports import AdminPorts, Ports, is_taken

_BASES = range(20_000, 30_000, 50)
_READY_SECONDS = 30.0
_SCRAPE_SECONDS = 1.0
_PAGE_SECONDS = 3.0
"""How often the console asks anew for these pages."""
_PAGES: tuple[tuple[tuple[str, dict[str, str]], ...], ...] = (
    (("GetCluster", {}), ("GetHistory", {"node": "a"})),
    (("GetTopic", {"topic": payloads.TOPIC}), ("GetHistory", {"topic": payloads.TOPIC})),
)
"""What the pages of the cluster and of a topic ask for."""

Look = Callable[[], None]


class WholeNode(Store):
    """`tandem up`; CPU is that of all its processes."""

    def __init__(self, directory: Path) -> None:
        self.name = f"{NAME} node"
        self.root = directory / "data"
        base = _free_base()
        self._ports, self._admin = Ports.from_base(base), AdminPorts.from_base(base)
        command = [sys.executable, "-m", "tandemmq.cli.main", "up", "--json", "--data", str(self.root)]
        command += ["--port", str(base), "--set", "logLevel=WARNING"]
        self.server = ServerProcess(f"tandem-{directory.name}", command, directory, base)
        self._data = directory.parent / f"{directory.name}-load"

    def call(self, *words: str) -> None:
        """A call of the command line. Raises Unavailable where it goes on to fail, as while the node starts."""
        command = [sys.executable, "-m", "tandemmq.cli.entry", "--server", self.server.target, *words]
        end = time.monotonic() + _READY_SECONDS
        while True:
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            if time.monotonic() > end:
                raise Unavailable(f"tandem {' '.join(words)} failed: {done.stderr.strip()[:300]}")

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Two pages of the console are open, and metrics are scraped each second. Raises Unavailable if that fails."""
        looks = [(_SCRAPE_SECONDS, self._scrape), *((_PAGE_SECONDS, partial(self._page, calls)) for calls in _PAGES)]
        over, failed = Event(), list[str]()

        def go_on(every: float, look: Look) -> None:
            try:
                look()
                while not over.wait(every):
                    look()
            except OSError as error:
                failed.append(str(error))

        threads = [Thread(target=go_on, args=look) for look in looks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
        if failed:
            raise Unavailable(f"looking at the node failed: {failed[0]}")

    def _scrape(self) -> None:
        ports = self._ports
        for port in (ports.store_metrics, ports.replicator_metrics, ports.metasync_metrics, self._admin.metrics):
            _read(urllib.request.Request(f"http://127.0.0.1:{port}/metrics"))

    def _page(self, calls: tuple[tuple[str, dict[str, str]], ...]) -> None:
        console = f"http://127.0.0.1:{self._admin.console}"
        headers = {"Content-Type": "application/json", "Origin": console, "x-tandem-refresh": "1"}
        for method, asked in calls:
            _read(urllib.request.Request(f"{console}/api/{method}", json.dumps(asked).encode(), headers))


def _read(request: urllib.request.Request) -> None:
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def _free_base() -> int:
    """Of ports none of which is taken. Raises Unavailable."""
    for base in _BASES:
        if not any(map(is_taken, {*Ports.from_base(base), *AdminPorts.from_base(base)})):
            return base
    raise Unavailable("no ports are free for a whole node")
