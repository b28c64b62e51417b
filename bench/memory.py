"""The memory of a tree of processes while it works: peaks, by what each process is."""

import threading
from pathlib import Path
from types import TracebackType

from bench.process import children

_MIB = 1 << 20
_PAUSE = 0.02


class SparkMemory:
    """Looks at a Spark driver and all that it has started, again and again: ``with SparkMemory(pid) as seen: …``.

    `sample` tells the most that was seen at any time; 2^20 bytes. Anonymous memory is what a process has for itself
    alone, and what it still shares with the process it was forked from: an upper bound. The pages of files that it maps
    are the page cache's, which gives them back.
    """

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self._peaks: dict[str, float] = {}
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> "SparkMemory":
        """Begin."""
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop looking."""
        self._over.set()
        self._watcher.join()

    @property
    def sample(self) -> dict[str, float]:
        """The peaks.

        ``worker_mb``, ``worker_rss_mb``: of the largest Python worker; ``workers``: how many there were at once;
        ``workers_mb``, ``jvm_mb``, ``driver_mb``: anonymous memory of all workers together, of Java, of the driver.
        """
        return dict(self._peaks)

    def _watch(self) -> None:
        while True:
            self._look()
            if self._over.wait(_PAUSE):
                return

    def _look(self) -> None:
        driver, _ = _memory(self._driver)
        self._note("driver_mb", driver)
        for jvm in children(self._driver):
            self._note("jvm_mb", _memory(jvm)[0])
            # Java starts a daemon, from which the workers are forked.
            workers = [_memory(worker) for daemon in children(jvm) for worker in children(daemon)]
            self._note("workers", len(workers))
            self._note("workers_mb", sum(anonymous for anonymous, _ in workers))
            for anonymous, resident in workers:
                self._note("worker_mb", anonymous)
                self._note("worker_rss_mb", resident)

    def _note(self, name: str, value: float) -> None:
        self._peaks[name] = max(self._peaks.get(name, 0.0), value)


def _memory(pid: int) -> tuple[float, float]:
    """Anonymous and resident memory; zeros for a process that has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 / _MIB for line in lines[1:]}
    return sizes.get("Anonymous", 0.0), sizes.get("Rss", 0.0)
