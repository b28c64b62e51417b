"""The cases, group by group. A group is a function that starts what it needs, runs its cases, and cleans up."""

from collections.abc import Callable

from bench.context import Context
from bench.groups.admin import admin
from bench.groups.classic import classic
from bench.groups.delivery import delivery
from bench.groups.first import first
from bench.groups.growth import growth
from bench.groups.inside import append, walk
from bench.groups.mixed import mixed
from bench.groups.pulls import pulls
from bench.groups.recovery import recovery
from bench.groups.replication import replication
from bench.groups.rocketmq5 import rocketmq5
from bench.groups.sends import durable, sends
from bench.groups.spark import spark
from bench.groups.start import start
from bench.groups.transport import transport

GROUPS: dict[str, Callable[[Context], None]] = {
    "append": append,
    "walk": walk,
    "recovery": recovery,
    "start": start,
    "first": first,
    "transport": transport,
    "send": sends,
    "durable": durable,
    "pull": pulls,
    "classic": classic,
    "delivery": delivery,
    "rocketmq5": rocketmq5,
    "growth": growth,
    "mixed": mixed,
    "replication": replication,
    "admin": admin,
    "spark": spark,
}
"""By name, in the order of a run."""
