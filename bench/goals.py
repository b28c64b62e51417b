"""The numbers to reach with grpcio in front, and where a run stands.

Ratios are of medians of one run. Latencies and CPU times are turned round, so that more is always better.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.groups.growth import LARGE, SMALL
from bench.model import Results
from bench.store import NAME

_ASYNC, _SYNC = "RocketMQ ASYNC_FLUSH", "RocketMQ SYNC_FLUSH"


@dataclass(frozen=True)
class Standing:
    """One goal, and what was reached."""

    goal: str
    what: str
    reached: float
    target: float
    at_most: bool = False
    """The number is to stay below the target (a time, a size), not to reach it."""
    unit: str = "x"

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.reached <= self.target if self.at_most else self.reached >= self.target

    @property
    def cells(self) -> list[str]:
        """A row of the table."""
        sign = "≤" if self.at_most else "≥"
        reached = f"{self.reached:,.2f} {self.unit}"
        return [self.goal, self.what, reached, f"{sign} {self.target:g} {self.unit}", "yes" if self.met else "no"]


def standings(results: Results) -> list[Standing]:
    """Every goal whose cases were measured."""
    found: list[Standing] = []

    def add(
        goal: str, what: str, reached: float | None, target: float, *, at_most: bool = False, unit: str = "x"
    ) -> None:
        if reached is not None:
            found.append(Standing(goal, what, reached, target, at_most, unit))

    ratio, value = results.ratio, results.value
    add("3.1", "single sends, 64 clients, against RocketMQ", ratio("send.64", NAME, _ASYNC, "rate"), 0.2)
    add("3.2", "single send, 1 client, p50, against RocketMQ", ratio("send.1", _ASYNC, NAME, "p50_us"), 0.35)
    for way in ("encoded", "stream"):
        add(
            "3.3", f"batches of 64, {way}, against RocketMQ", ratio("send.batch", f"{NAME}, {way}", _ASYNC, "rate"), 1.5
        )
    add("3.4", "durable, 1 client, against RocketMQ", ratio("durable.1", _SYNC, NAME, "p50_us"), 0.8)
    add("3.4", "durable, 64 clients, against RocketMQ", ratio("durable.64", NAME, _SYNC, "rate"), 0.25)
    add(
        "3.4",
        "durable, batches of 64, against RocketMQ",
        ratio("durable.batch", f"{NAME}, encoded", _SYNC, "rate"),
        1.0,
    )
    add("3.5", "append alone, single", value("append.1k", "single", "us"), 0.7, at_most=True, unit="µs")
    add(
        "3.5", "append alone, encoded batches", value("append.1k", "encoded, by 64", "us"), 0.3, at_most=True, unit="µs"
    )
    for case, what in (("walk.300", "300 B"), ("walk.1200", "1.2 KiB")):
        add("3.6", f"walk with CRC, {what}, against C", ratio(case, "compiled", "C", "gb_s"), 0.4)
    add("3.6", "recovery of 1 GiB", _recovery_of_1_gib(results.value), 1.5, at_most=True, unit="s")
    for case in ("unary", "stream"):
        add("3.10", f"pulls, {case}, against bare grpcio", ratio(f"pull.{case}", NAME, "bare grpcio", "gb_s"), 0.6)
    embedded = f"{NAME}, embedded"
    add("3.11", "start to the first answer", value("start.empty", embedded, "seconds"), 1, at_most=True, unit="s")
    add("3.11", "idle memory", value("start.empty", embedded, "rss_mb"), 100, at_most=True, unit="MB")
    add("3.12", "start as the store grows", ratio("growth.start", LARGE, SMALL, "seconds"), 1.2, at_most=True)
    add("3.12", "send p99 as the store grows", ratio("growth.send", LARGE, SMALL, "p99_us"), 1.2, at_most=True)
    return found


def _recovery_of_1_gib(value: Callable[[str, str, str], float | None]) -> float | None:
    """Scaled from what was recovered, where a quick run took less."""
    speed = value("recovery.log", NAME, "gb_s")
    return (1 << 30) / 1e9 / speed if speed else None
