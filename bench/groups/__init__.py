"""The cases, group by group. A group is a function that starts what it needs, runs its cases, and cleans up."""

from collections.abc import Callable

from bench.context import Context
from bench.groups.growth import growth
from bench.groups.inside import append, walk
from bench.groups.pulls import pulls
from bench.groups.recovery import recovery
from bench.groups.sends import durable, sends
from bench.groups.start import start

GROUPS: dict[str, Callable[[Context], None]] = {
    "append": append,
    "walk": walk,
    "recovery": recovery,
    "start": start,
    "send": sends,
    "durable": durable,
    "pull": pulls,
    "growth": growth,
}
"""By name, in the order of a run."""
