"""Numbers of a rebuild for Prometheus, served while it runs."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from tandemmq.spark.running.progress import Progress

PHASES = ("scan", "index", "check", "publish")


class RebuildMetrics(Collector):
    """What the job last said of each phase. Label ``store``: the store's directory."""

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._phases: dict[str, Progress] = {}
        self._seconds: dict[str, tuple[float, float]] = {}
        self._current = ""

    def update(self, progress: "Progress") -> None:
        """Take over how far the job is."""
        now = time.monotonic()
        with self._lock:
            self._current = progress.phase
            self._phases[progress.phase] = progress
            begun, _ = self._seconds.get(progress.phase, (now, now))
            self._seconds[progress.phase] = (begun, now)

    def registry(self) -> CollectorRegistry:
        """A registry with these numbers and those of the driver's process."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    def collect(self) -> Iterator[Metric]:
        """All numbers, of one moment."""
        with self._lock:
            phases, seconds, current = dict(self._phases), dict(self._seconds), self._current
        running = self._gauge("tandem_rebuild_phase", "1 for the phase that the rebuild is in.")
        done = self._gauge("tandem_rebuild_done_bytes", "Bytes of log read, or of files built or checked.")
        size = self._gauge("tandem_rebuild_size_bytes", "Bytes that the phase has to do.")
        ratio = self._gauge("tandem_rebuild_progress_ratio", "How far the phase has come, 0 to 1.")
        lasted = self._gauge("tandem_rebuild_phase_seconds", "Time from the first to the last news of the phase.")
        for phase in PHASES:
            running.add_metric([self._store, phase], float(phase == current))
            if (progress := phases.get(phase)) is None:
                continue
            done.add_metric([self._store, phase], progress.done_bytes)
            size.add_metric([self._store, phase], progress.total_bytes)
            share = progress.done_bytes / progress.total_bytes if progress.total_bytes else float(phase != current)
            ratio.add_metric([self._store, phase], share)
            lasted.add_metric([self._store, phase], seconds[phase][1] - seconds[phase][0])
        yield from (running, done, size, ratio, lasted)
        age = GaugeMetricFamily("tandem_rebuild_seconds", "Time since the job began.", labels=["store"])
        age.add_metric([self._store], time.monotonic() - self._begun)
        yield age

    def _gauge(self, name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, text, labels=["store", "phase"])
