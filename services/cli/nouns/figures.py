"""Numbers of a node that several commands show."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Node


def is_following(node: "Node") -> bool:
    """Whether it has a master."""
    return bool(node.replication.follower.master_address)


def slave_lag(node: "Node") -> int:
    """Bytes of its master's log that a slave does not have; 0 for a master."""
    follower = node.replication.follower
    return max(0, follower.master_max_offset - follower.acked_offset) if is_following(node) else 0


def disk_used(node: "Node") -> float | None:
    """Used part of a node's disk, 0 to 1; None if its store does not say."""
    disk = node.disk
    return 1 - disk.free_bytes / disk.total_bytes if disk.total_bytes else None


_BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """A line of bars, the oldest first, each the mean of its part of the values.

    A blank stands where nobody knows any of them (NaN).
    """
    width = min(width, len(values))
    parts = [values[at * len(values) // width : (at + 1) * len(values) // width] for at in range(width)]
    means = [_mean([value for value in part if not math.isnan(value)]) for part in parts]
    most = max((mean for mean in means if mean is not None), default=0.0)
    return "".join(" " if mean is None else _BARS[round(mean / most * 7) if most > 0 else 0] for mean in means)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
