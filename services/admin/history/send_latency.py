"""How long sends of the last round took, from what stores count since their start. No I/O, no clock."""

from collections.abc import Sequence
from typing import NamedTuple

from tandemmq.store.v1 import store_pb2

_SHARE = 0.99


class SendLatency(NamedTuple):
    """Of the calls that sent messages between two rounds; milliseconds."""

    mean: float
    slowest: float
    """99 of 100 took at most so long, as far as the ranges tell."""


class SendTimesKeeper:
    """Remembers the last round of each node."""

    def __init__(self) -> None:
        self._before: dict[str, store_pb2.SendTimes] = {}

    def since_last(self, node: str, now: store_pb2.SendTimes) -> SendLatency | None:
        """None where nobody sent, where it is the first round, or the store was started anew."""
        before = self._before.get(node)
        self._before[node] = now
        if before is None or before.bounds_ms != now.bounds_ms:
            return None
        calls = [one - earlier for one, earlier in zip(now.calls, before.calls, strict=True)]
        total = sum(calls)
        if total <= 0 or min(calls) < 0:
            return None
        return SendLatency((now.sum_ms - before.sum_ms) / total, _within(calls, now.bounds_ms, total * _SHARE))


def _within(calls: Sequence[int], bounds: Sequence[float], wanted: float) -> float:
    """How long so many of the calls took at most. Within a range they are taken to be spread evenly."""
    below, begin = 0, 0.0
    for count, end in zip(calls, bounds, strict=False):
        if count and below + count >= wanted:
            return begin + (end - begin) * (wanted - below) / count
        below, begin = below + count, end
    return begin
