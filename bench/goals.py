"""The numbers to reach, with grpcio in front (G) and with our own transport (T), and where a run stands.

Ratios are of medians of one run. Latencies are turned round, so that more is always better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from bench.groups.admin import CALLS, CONSOLE, SERVICES
from bench.groups.classic import NEWEST
from bench.groups.growth import LARGE, SMALL
from bench.groups.hour import HOUR
from bench.groups.mixed import MIXED
from bench.groups.replication import BARE, BARE_COLD
from bench.groups.spark import READ, SEQUENTIAL, START, TWO
from bench.groups.start import COMMANDS, NODE, UNANSWERED
from bench.groups.watched import ALONE, WATCHED
from bench.model import Results
from bench.peers.rocketmq_pair import VERSIONS, pair_name
from bench.spark_scaling import CORES_GOAL, scaling
from bench.store import FAST, GRPCIO, NAME

_ASYNC, _SYNC = "RocketMQ ASYNC_FLUSH", "RocketMQ SYNC_FLUSH"
_PROXY = "RocketMQ proxy ASYNC_FLUSH"
HEADINGS = ["goal", "what", "G", "reached", "met", "T", "reached", "met"]


@dataclass(frozen=True)
class GoalMark:
    """A number to reach, and what was reached (None: not measured)."""

    target: float
    reached: float | None
    at_most: bool = False
    """The number is to stay below the target (a time, a size), not to reach it."""

    @property
    def met(self) -> bool | None:
        """Whether it is reached; None where it was not measured."""
        if self.reached is None:
            return None
        return self.reached <= self.target if self.at_most else self.reached >= self.target

    def cells(self, unit: str) -> list[str]:
        """Target, reached, met."""
        target = f"{'≤' if self.at_most else '≥'} {self.target:g} {unit}"
        if self.reached is None:
            return [target, "–", ""]
        return [target, f"{self.reached:,.2f} {unit}", "yes" if self.met else "no"]


@dataclass(frozen=True)
class GoalStanding:
    """One goal: on grpcio and on our transport; `fast` is None where no transport has a part in it."""

    goal: str
    what: str
    grpcio: GoalMark
    fast: GoalMark | None
    unit: str

    @property
    def cells(self) -> list[str]:
        """A row of the table."""
        fast = ["same", "", ""] if self.fast is None else self.fast.cells(self.unit)
        return [self.goal, self.what, *self.grpcio.cells(self.unit), *fast]

    def as_json(self) -> dict[str, object]:
        """For latest.json."""
        marks = {"G": self.grpcio, "T": self.fast}
        return {
            "goal": self.goal,
            "what": self.what,
            "unit": self.unit,
            **{
                name: {"target": mark.target, "reached": mark.reached, "met": mark.met}
                for name, mark in marks.items()
                if mark is not None
            },
        }


@dataclass(frozen=True)
class _Race:
    """A goal on either transport, as a quotient to a peer in one case."""

    goal: str
    what: str
    case: str
    peer: str
    metric: str
    on_grpcio: float
    on_fast: float
    way: str = ""
    """What follows the store's name in the case's table."""

    def standing(self, results: Results) -> GoalStanding | None:
        """None when neither transport was measured."""
        grpcio, fast = (
            GoalMark(target, self._quotient(results, f"{store}{self.way}"))
            for store, target in ((GRPCIO, self.on_grpcio), (FAST, self.on_fast))
        )
        if grpcio.reached is None and fast.reached is None:
            return None
        return GoalStanding(self.goal, self.what, grpcio, fast, "x")

    def _quotient(self, results: Results, store: str) -> float | None:
        if self.metric.endswith("_us"):
            return results.ratio(self.case, self.peer, store, self.metric)
        return results.ratio(self.case, store, self.peer, self.metric)


_RACES = (
    _Race("3.1", "single sends, 64 clients, against RocketMQ", "send.64", _ASYNC, "rate", 0.2, 1.8),
    _Race("3.2", "single send, 1 client, p50, against RocketMQ", "send.1", _ASYNC, "p50_us", 0.35, 1.67),
    _Race("3.3", "batches of 64, encoded, against RocketMQ", "send.batch", _ASYNC, "rate", 1.5, 2.5, ", encoded"),
    _Race("3.3", "batches of 64, stream, against RocketMQ", "send.batch", _ASYNC, "rate", 1.5, 2.5, ", stream"),
    _Race("3.4", "durable, 1 client, p50, against RocketMQ", "durable.1", _SYNC, "p50_us", 0.8, 1.3),
    _Race("3.4", "durable, 64 clients, against RocketMQ", "durable.64", _SYNC, "rate", 0.25, 1.8),
    _Race("3.4", "durable, batches of 64, against RocketMQ", "durable.batch", _SYNC, "rate", 1.0, 1.5, ", encoded"),
    _Race("3.10", "pulls, unary, against bare grpcio", "pull.unary", "bare grpcio", "gb_s", 0.6, 0.8),
    _Race("3.10", "pulls, stream, against bare grpcio", "pull.stream", "bare grpcio", "gb_s", 0.6, 0.8),
)


@dataclass(frozen=True)
class _Beside:
    """A goal as a quotient to a peer, whatever the transport."""

    goal: str
    what: str
    case: str
    metric: str
    peer: str
    target: float
    ours: str = NAME

    def reached(self, results: Results) -> float | None:
        """More is better: times and costs are turned round. None where it was not measured."""
        if self.metric == "rate":
            return results.ratio(self.case, self.ours, self.peer, self.metric)
        return results.ratio(self.case, self.peer, self.ours, self.metric)


_BESIDE = (
    _Beside("7.1", "classic sends, 64 clients, rate, against RocketMQ", "classic.64", "rate", NEWEST, 1.0),
    _Beside("7.1", "classic sends, 64 clients, CPU a message, against RocketMQ", "classic.64", "cpu_us", NEWEST, 2.0),
    _Beside("7.1", "classic sends, 1 client, p50, against RocketMQ", "classic.1", "p50_us", NEWEST, 1.0),
    *(
        _Beside(
            "7.2", f"receive and acknowledge, {who} consumers, {batch} at a time, {what}", case, metric, peer, target
        )
        for who, batch in product((1, 16, 64), (1, 32))
        for case in [f"delivery.page-{who}x{batch}"]
        for what, metric, peer, target in (
            ("rate, against RocketMQ's proxy", "rate", _PROXY, 2.0),
            ("CPU a message, against RocketMQ's proxy", "cpu_us", _PROXY, 2.0),
            ("rate, against NATS", "rate", "NATS JetStream", 1.0),
        )
    ),
    *(
        _Beside("7.3", f"{what}, against RocketMQ's proxy", case, metric, _PROXY, target, f"{NAME} direct")
        for what, case, metric, target in (
            ("SendMessage, 64 clients, rate", "rocketmq5.send-64", "rate", 1.5),
            ("SendMessage, 1 client, p50", "rocketmq5.send-1", "p50_us", 1.0),
            ("ReceiveMessage and AckMessage, 64 clients, rate", "rocketmq5.receive-64", "rate", 1.5),
        )
    ),
)


def standings(results: Results) -> list[GoalStanding]:
    """Every goal whose cases were measured, in order."""
    found = [standing for race in _RACES if (standing := race.standing(results))]
    found += _replication(results)

    def add(
        goal: str, what: str, reached: float | None, target: float, *, at_most: bool = False, unit: str = "x"
    ) -> None:
        if reached is not None:
            found.append(GoalStanding(goal, what, GoalMark(target, reached, at_most), None, unit))

    ratio, value = results.ratio, results.value
    add("3.5", "append alone, single", value("append.1k", "single", "us"), 0.7, at_most=True, unit="µs")
    core = value("append.1k", "single, core", "us")
    add("3.5", "append by the core, single, from request to answer", core, 0.7, at_most=True, unit="µs")
    add(
        "3.5", "append alone, encoded batches", value("append.1k", "encoded, by 64", "us"), 0.3, at_most=True, unit="µs"
    )
    for case, what in (("walk.300", "300 B"), ("walk.1200", "1.2 KiB")):
        add("3.6", f"walk with CRC, {what}, against C", ratio(case, "compiled", "C", "gb_s"), 0.4)
    add("3.6", "recovery of 1 GiB", _recovery_of_1_gib(results.value), 1.5, at_most=True, unit="s")
    embedded = f"{NAME}, embedded"
    add(
        "3.9", "rebuild, local[2] warm, 1 KiB, against sequential", ratio("spark.both-1k", TWO, SEQUENTIAL, "gb_s"), 1.5
    )
    add("3.9", "rebuild from a cold disk against reading it", ratio("spark.cold-1k", TWO, READ, "gb_s"), 0.5)
    add("3.9", "Spark's start-up", value("spark.start", START, "overhead_s"), 8, at_most=True, unit="s")
    model = scaling(results)
    if model is not None:
        what = f"on paper: {CORES_GOAL} cores against sequential"
        add("3.9", what, model.gain(CORES_GOAL), 0.8 * CORES_GOAL)
    add("3.11", "start to the first answer", value("start.empty", embedded, "seconds"), 1, at_most=True, unit="s")
    add("3.11", "idle memory", value("start.empty", embedded, "rss_mb"), 100, at_most=True, unit="MB")
    add(
        "17.1",
        "start of `tandem up` to the first answer",
        value("start.node", NODE, "seconds"),
        1,
        at_most=True,
        unit="s",
    )
    add("17.1", "anonymous memory of `tandem up`", value("start.node", NODE, "anon_mb"), 120, at_most=True, unit="MB")
    for shown in (*COMMANDS, UNANSWERED):
        most = 0.15 if shown == "--version" else 0.3
        used = value("start.calls", f"tandem {shown}", "cpu_us")
        reached = None if used is None else used / 1e6
        add("17.2", f"CPU of `tandem {shown}`", reached, most, at_most=True, unit="s")
    add("3.12", "start as the store grows", ratio("growth.start", LARGE, SMALL, "seconds"), 1.2, at_most=True)
    add("3.12", "send p99 as the store grows", ratio("growth.send", LARGE, SMALL, "p99_us"), 1.2, at_most=True)
    found += _admin(results)
    for beside in _BESIDE:
        add(beside.goal, beside.what, beside.reached(results), beside.target)
    add("7.4", "sends with all else, p99", value("mixed.send", MIXED, "p99_us"), 5_000, at_most=True, unit="µs")
    return sorted(found, key=lambda standing: [int(number) for number in standing.goal.split(".")])


def _replication(results: Results) -> list[GoalStanding]:
    """The pair was never measured on grpcio: its streams are our transport's."""
    found = []
    for size, what in (("1k", "1 KiB"), ("64k", "64 KiB")):
        for bare, pages in ((BARE, "warm"), (BARE_COLD, "new")):
            reached = results.ratio(f"replication.{size}", NAME, bare, "gb_s")
            if reached is not None:
                title = f"replication, {what}, against bare, {pages} pages"
                found.append(GoalStanding("3.7", title, GoalMark(0.6, None), GoalMark(0.7, reached), "x"))
    for clients, who in (("1", "1 client"), ("64", "64 clients")):
        for quantile, version in product(("p50", "p99"), VERSIONS):
            reached = _added(results, f"replication.added-{clients}", version, f"added_{quantile}_us")
            if reached is not None:
                title = f"added by SYNC_MASTER, {who}, {quantile}, against RocketMQ {version}"
                marks = GoalMark(0.25, None, at_most=True), GoalMark(0.1, reached, at_most=True)
                found.append(GoalStanding("3.8", title, *marks, "x"))
    return found


def _admin(results: Results) -> list[GoalStanding]:
    """No transport has a part in these."""
    found = []

    def add(goal: str, what: str, reached: float | None, target: float, unit: str) -> None:
        if reached is not None:
            found.append(GoalStanding(goal, what, GoalMark(target, reached, at_most=True), None, unit))

    for name, (what, _) in CALLS.items():
        reached = results.value(f"admin.{name}", CONSOLE, "p50_us")
        add("6.1", f"console: {what}, p50", None if reached is None else reached / 1000, 100, "ms")
    told = results.value("admin.hour", HOUR, "p50_us")
    add("6.1", "console: a topic's charts of the last hour, p50", None if told is None else told / 1000, 100, "ms")
    slower = results.ratio("admin.watched", WATCHED, ALONE, "p99_us")
    add("6.4", "sends with the console open, p99, against without", slower, 1.3, "x")
    for service in SERVICES:
        add("6.2", f"start of {service}", results.value("admin.start", service, "seconds"), 1.0, "s")
        add("6.3", f"idle memory of {service}", results.value("admin.start", service, "rss_mb"), 100, "MB")
    return found


def _added(results: Results, case: str, version: str, metric: str) -> float | None:
    """Quotient of what waiting adds; None where it seems to add nothing to one of them, as chance may have it."""
    ours, theirs = results.value(case, NAME, metric), results.value(case, pair_name(version), metric)
    if ours is None or theirs is None or min(ours, theirs) <= 0:
        return None
    return ours / theirs


def _recovery_of_1_gib(value: Callable[[str, str, str], float | None]) -> float | None:
    """Scaled from what was recovered, where a quick run took less."""
    speed = value("recovery.log", NAME, "gb_s")
    return (1 << 30) / 1e9 / speed if speed else None
