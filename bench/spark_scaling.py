"""A rebuild on more cores than there are here: a model on paper, from what was measured in one run.

    seconds = scan + index and check of queues + check of the index + what the driver does alone

The first three are Spark jobs: their tasks, neighbours packed into partitions as runner.py does it, are laid out over
the cores, each partition to the core that is free first, and no sooner than the driver has handed it out.

Work is what a core needs while both cores of this machine are busy (local[2]), with what it waits for the disk. That
disk and network keep up is taken for granted; how much they would have to deliver stands in the table. A core is taken
to be as fast as here, whatever else shares its memory.
"""

from dataclasses import asdict, dataclass
from heapq import heapreplace
from itertools import pairwise
from math import ceil

from bench.groups.spark import DRIVER, ONE, PART_SHARES, SEQUENTIAL, TASKS, TWO, driver_name, part_name, tasks_name
from bench.model import Results

CORES = (1, 2, 16, 100)
CORES_GOAL = 100
_GIGABYTES = (100, 1_000, 10_000)
_GIGABYTES_GOAL = 1_000
_QUEUES = 64
"""That every range has messages of."""
_RANGE = 128 << 20
_KEYS_PER_FILE = 19_999_999
_PARTITIONS_PER_CORE, _GROUPS_PER_CORE = 3, 4
_CHECKED_BY_DRIVER = 40_000_000
"""Entries up to which the driver looks at the index itself (rebuild_job.py)."""
_SIZE = "1k"
_MANY = "290"
"""The log with more messages says better what the check of a unit costs, whatever the size of its record."""


@dataclass(frozen=True)
class ScalingCosts:
    """What was measured, in seconds; of a core where nothing else is said."""

    job: float
    """A job without tasks, wall time."""
    handing_out: float
    """A task, of the driver."""
    task: float
    """A task that does nothing."""
    scan: float
    """A gigabyte (10^9 bytes) of log: walk, units to their places, keys to spills."""
    unit: float
    """Check of a message's unit."""
    key_looked_at: float
    """A key of an index file, for every part of that file."""
    key_put: float
    """A key, for the one part that it belongs to."""
    entry: float
    """Check of an index entry."""
    driver: float
    """Of the driver, whatever is rebuilt."""
    driver_range: float
    """Of the driver, a range."""
    driver_range_queue: float
    """Of the driver, a range's queue."""
    sequential: float
    """A gigabyte, by the store's sequential code, everything on disk at the end."""
    messages: float
    """In a gigabyte."""
    keys: float
    """In a gigabyte."""


@dataclass(frozen=True)
class Prediction:
    """Seconds of a rebuild of ``gigabytes`` on ``cores``, warm, by what they go to."""

    gigabytes: float
    cores: int
    scan: float
    index: float
    check: float
    spark: float
    """What planning of jobs, tasks and handing out add to these."""
    driver: float
    sequential: float
    """Of the store's sequential code on one core."""

    @property
    def seconds(self) -> float:
        """All together."""
        return self.scan + self.index + self.check + self.spark + self.driver

    @property
    def gain(self) -> float:
        """How many times as fast as the sequential code."""
        return self.sequential / self.seconds


def predict(costs: ScalingCosts, gigabytes: float, cores: int, queues: int = _QUEUES) -> Prediction:
    """A rebuild of queues and index of so much log, with messages of ``queues`` queues in every range."""
    ranges = ceil(gigabytes * 1e9 / _RANGE)
    keys, messages = costs.keys * gigabytes, costs.messages * gigabytes
    files, groups = ceil(keys / _KEYS_PER_FILE), _GROUPS_PER_CORE * cores
    each = max(1, ceil(cores / files))
    part = keys / files * (costs.key_looked_at + costs.key_put / each)
    by_driver = keys <= _CHECKED_BY_DRIVER
    scan, over_scan = _job(costs, [costs.scan * gigabytes / ranges] * ranges, cores)
    index, over_index = _job(costs, [part] * (files * each) + [messages * costs.unit / groups] * groups, cores)
    check, over_check = (0.0, 0.0) if by_driver else _job(costs, [keys / files * costs.entry] * files, cores)
    driver = costs.driver + ranges * (costs.driver_range + queues * costs.driver_range_queue)
    driver += keys * costs.entry if by_driver else 0.0
    spark = over_scan + over_index + over_check
    return Prediction(gigabytes, cores, scan, index, check, spark, driver, costs.sequential * gigabytes)


def _job(costs: ScalingCosts, tasks: list[float], cores: int) -> tuple[float, float]:
    """Seconds of a job of tasks that take so long, without what Spark takes; and what Spark adds to them."""
    count = min(len(tasks), _PARTITIONS_PER_CORE * cores)
    cuts = [len(tasks) * number // count for number in range(count + 1)]
    partitions = [sum(tasks[low:high]) for low, high in pairwise(cuts)]
    bare = _laid_out(partitions, cores, 0.0)
    return bare, costs.job + _laid_out([one + costs.task for one in partitions], cores, costs.handing_out) - bare


def _laid_out(partitions: list[float], cores: int, handing_out: float) -> float:
    """When the last partition is done."""
    free = [0.0] * cores
    for number, seconds in enumerate(partitions, 1):
        heapreplace(free, max(free[0], number * handing_out) + seconds)
    return max(free)


class Scaling:
    """The model with its costs."""

    def __init__(self, costs: ScalingCosts, measured_gigabytes: float, measured_seconds: float) -> None:
        self.costs = costs
        self._measured_gigabytes = measured_gigabytes
        self._measured_seconds = measured_seconds

    def gain(self, cores: int) -> float:
        """How many times as fast as the sequential code, for a log of a terabyte."""
        return predict(self.costs, _GIGABYTES_GOAL, cores).gain

    @property
    def predictions(self) -> list[Prediction]:
        """All that the table has."""
        return [predict(self.costs, gigabytes, cores) for gigabytes in _GIGABYTES for cores in CORES]

    @property
    def lines(self) -> list[str]:
        """As Markdown."""
        costs = self.costs
        text = [
            "",
            "On paper: rebuild of queues and index on more cores, records of 1.1 KiB, without Spark's start-up",
            "",
            f"Per core and GB: scan {costs.scan:.3f} s. Per key: {costs.key_looked_at * 1e9:.1f} ns to look at it, in "
            f"every part, {costs.key_put * 1e9:.1f} to put it, {costs.entry * 1e9:.1f} to check it; per unit checked "
            f"{costs.unit * 1e9:.1f} ns. A job: {costs.job * 1e3:.0f} ms. A task: {costs.task * 1e3:.1f} ms of a core, "
            f"{costs.handing_out * 1e3:.1f} ms of the driver. The driver alone: {costs.driver:.2f} s, and a range of "
            f"{_QUEUES} queues {(costs.driver_range + _QUEUES * costs.driver_range_queue) * 1e6:.0f} µs.",
            "",
            "| log GB | cores | scan s | index s | check s | Spark s | driver s | all s | GB/s to be read "
            "| driver's share | x sequential | of the cores |",
            "|-------:" * 12 + "|",
        ]
        for one in self.predictions:
            alone = predict(costs, one.gigabytes, 1).seconds
            cells = [
                f"{one.gigabytes:,.0f}", f"{one.cores}", f"{one.scan:,.1f}", f"{one.index:,.1f}", f"{one.check:,.1f}",
                f"{one.spark:,.1f}", f"{one.driver:,.1f}", f"{one.seconds:,.1f}",
                f"{one.gigabytes / one.seconds:,.1f}", f"{one.driver / one.seconds:.0%}", f"{one.gain:,.1f}",
                f"{alone / one.seconds / one.cores:.0%}",
            ]  # fmt: skip
            text.append("| " + " | ".join(cells) + " |")
        here = predict(costs, self._measured_gigabytes, 2).seconds
        return [
            *text,
            "",
            f"The model for what was measured, {self._measured_gigabytes:.1f} GB on 2 cores: {here:.2f} s; "
            f"measured: {self._measured_seconds:.2f} s.",
        ]

    def as_json(self) -> dict[str, object]:
        """Costs and predictions."""
        return {
            "costs": asdict(self.costs),
            "predictions": [{**asdict(one), "seconds": one.seconds, "gain": one.gain} for one in self.predictions],
        }


def scaling(results: Results) -> Scaling | None:
    """The model from a run; None where the run lacks a case that it needs."""
    both = _of(results, f"spark.both-{_SIZE}", TWO)
    queues = _of(results, f"spark.queues-{_MANY}", TWO) or _of(results, f"spark.queues-{_SIZE}", TWO)
    sequential = _of(results, f"spark.both-{_SIZE}", SEQUENTIAL)
    tasks, driver, parts = _tasks(results), _driver(results), _parts(results)
    if not (both and queues and sequential and tasks and driver and parts):
        return None
    job, handing_out, task = tasks
    gigabytes = both["gb_s"] * both["seconds"]
    messages = both["m_msg_s"] * 1e6 * both["seconds"]

    def work(job_seconds: float, pieces: float) -> float:
        """Of both cores, in a job of so many ranges or groups."""
        partitions = min(pieces, 2 * _PARTITIONS_PER_CORE)
        return max(2 * (job_seconds - job - partitions * handing_out) - partitions * task, 0.0)

    per_range, per_queue = driver
    used = both["ranges"] * (per_range + DRIVER[0][1] * per_queue)
    costs = ScalingCosts(
        job=job,
        handing_out=handing_out,
        task=task,
        scan=work(both["scan_job_s"], both["ranges"]) / gigabytes,
        unit=work(queues["index_job_s"], 2 * _GROUPS_PER_CORE) / (queues["m_msg_s"] * 1e6 * queues["seconds"]),
        key_looked_at=parts[0],
        key_put=parts[1],
        entry=both["check_s"] / both["index_entries"],
        driver=max(both["driver_s"] - both["check_s"] - used, 0.0),
        driver_range=per_range,
        driver_range_queue=per_queue,
        sequential=sequential["seconds"] / gigabytes,
        messages=messages / gigabytes,
        keys=both["index_entries"] / gigabytes,
    )
    return Scaling(costs, gigabytes, both["seconds"])


def _of(results: Results, case: str, contestant: str) -> dict[str, float]:
    """The medians of a contestant."""
    found = results.cases.get(case)
    series = None if found is None else found.series.get(contestant)
    if series is None:
        return {}
    return {metric: value for metric in series.metrics if (value := series.median(metric)) is not None}


def _tasks(results: Results) -> tuple[float, float, float] | None:
    """Seconds of a job, of handing out a task, of a task on its core: from lines through the empty jobs.

    With n tasks on c cores a job takes job + n x (handing out + task / c).
    """
    slopes, begins = [], []
    for master in (ONE, TWO):
        values = [results.value("spark.tasks", tasks_name(tasks, master), "seconds") for tasks in TASKS]
        points = [(tasks, value) for tasks, value in zip(TASKS, values, strict=True) if value is not None]
        if len(points) < 2:
            return None
        slope, begin = _line(points)
        slopes.append(slope)
        begins.append(begin)
    task = max(2 * (slopes[0] - slopes[1]), 0.0)
    return max(min(begins), 0.0), max(slopes[0] - task, 0.0), task


def _line(points: list[tuple[int, float]]) -> tuple[float, float]:
    """Slope and intercept of the line with the least squares."""
    middle, height = (sum(one) / len(points) for one in zip(*points, strict=True))
    spread = sum((x - middle) ** 2 for x, _ in points)
    slope = sum((x - middle) * (y - height) for x, y in points) / spread
    return slope, height - slope * middle


def _driver(results: Results) -> tuple[float, float] | None:
    """Seconds of the driver a range, and a queue of a range."""
    values = [results.value("spark.driver", driver_name(*shape), "seconds") for shape in DRIVER[1:]]
    few, many = values
    if few is None or many is None:
        return None
    (ranges, queues), (_, more) = DRIVER[1:]
    per_queue = max((many - few) / ranges / (more - queues), 0.0)
    return max(few / ranges - queues * per_queue, 0.0), per_queue


def _parts(results: Results) -> tuple[float, float] | None:
    """Seconds a key that every part of an index file takes, and the part that the key belongs to."""
    whole, part = (results.value("spark.part", part_name(share), "ns_a_key") for share in PART_SHARES)
    if whole is None or part is None:
        return None
    put = max((whole - part) * PART_SHARES[1] / (PART_SHARES[1] - 1), 0.0)
    return max(whole - put, 0.0) / 1e9, put / 1e9
