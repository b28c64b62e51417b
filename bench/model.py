"""Samples, series of samples, and the results of a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Sample = dict[str, float]
"""What one measurement gave, by metric.

    rate     operations (messages) a second          cpu_us   server CPU microseconds an operation
    p50_us, p99_us  latency of a request             gb_s     gigabytes (10^9 bytes) a second
    us       microseconds an operation               seconds  duration
    rss_mb, anon_mb, disk_mb  memory and disk, 2^20 bytes
    installed_mb, runtime_mb  files of a program, and of the Python or Java that it needs; 2^20 bytes
"""

Measure = Callable[[], Sample]


class Unavailable(Exception):
    """Something cannot be measured here; the text says why and what would help."""


@dataclass(frozen=True)
class Contestant:
    """One of those who take turns in a case."""

    name: str
    measure: Measure


@dataclass(frozen=True)
class Case:
    """One thing that is measured, with everybody who does it."""

    name: str
    """`group.case`: what --only selects by."""
    title: str
    metric: str
    """The metric that counts; the others are shown beside it."""
    contestants: list[Contestant] = field(default_factory=list)
    together: Callable[[int], dict[str, list[Sample]]] | None = None
    """Instead of contestants: measures that many rounds of all of them in a process of its own."""
    rounds: int | None = None
    """Number of rounds where it is not the run's."""


@dataclass
class Series:
    """The samples of one contestant in one case."""

    samples: list[Sample] = field(default_factory=list)

    def median(self, metric: str) -> float | None:
        """Median of a metric, None where nothing was measured."""
        values = self._values(metric)
        return median(values) if values else None

    def spread(self, metric: str) -> tuple[float, float] | None:
        """Least and greatest value of a metric."""
        values = self._values(metric)
        return (min(values), max(values)) if values else None

    @property
    def metrics(self) -> list[str]:
        """The metrics there are, in order of first appearance."""
        return list(dict.fromkeys(metric for sample in self.samples for metric in sample))

    def _values(self, metric: str) -> list[float]:
        return [sample[metric] for sample in self.samples if metric in sample]

    def as_json(self) -> dict[str, Any]:
        """Medians, ranges and all samples."""
        return {
            "median": {metric: self.median(metric) for metric in self.metrics},
            "range": {metric: self.spread(metric) for metric in self.metrics},
            "samples": self.samples,
        }


@dataclass
class CaseResult:
    """What a case gave."""

    title: str
    metric: str
    series: dict[str, Series] = field(default_factory=dict)


@dataclass
class Results:
    """Everything a run gave."""

    machine: dict[str, str] = field(default_factory=dict)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, case: Case, contestant: str, sample: Sample) -> None:
        """One more sample."""
        result = self.cases.setdefault(case.name, CaseResult(case.title, case.metric))
        result.series.setdefault(contestant, Series()).samples.append(sample)

    def note(self, text: str) -> None:
        """Something the reader must know, once."""
        if text not in self.notes:
            self.notes.append(text)

    def value(self, case: str, contestant: str, metric: str) -> float | None:
        """A median, None where it was not measured."""
        found = self.cases.get(case)
        series = None if found is None else found.series.get(contestant)
        return None if series is None else series.median(metric)

    def ratio(self, case: str, ours: str, theirs: str, metric: str) -> float | None:
        """Quotient of two medians of one case."""
        above, below = self.value(case, ours, metric), self.value(case, theirs, metric)
        return above / below if above is not None and below else None

    def as_json(self) -> dict[str, Any]:
        """For latest.json."""
        cases = {
            name: {
                "title": result.title,
                "metric": result.metric,
                "contestants": {who: series.as_json() for who, series in result.series.items()},
            }
            for name, result in self.cases.items()
        }
        return {"machine": self.machine, "notes": self.notes, "cases": cases}
