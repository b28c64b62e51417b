"""What a log holds over time, by topic and by size: gathered while it is read, in bounded memory.

Time is cut into buckets. They are a second wide as long as there are few; with more they are made wider, each width a
multiple of the one before, so that what several tasks have gathered can be put together.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled.walk_layout import (
    GROUP,
    GROUP_WIDTH,
    GROUPS,
    RESULT_WIDTH,
    ROW_WIDTH,
    SIZE,
    STORE_TIME,
    TOPIC_AT,
    TOPIC_SIZE,
    groups_begin,
)
from tandemmq.store.format.compiled.walker import CompiledWalk
from tandemmq.store.format.java import decode_utf8

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
WIDTHS = (
    _SECOND, 10 * _SECOND, _MINUTE, 10 * _MINUTE, _HOUR, 6 * _HOUR, _DAY, 10 * _DAY, 100 * _DAY, 1_000 * _DAY,
    100_000 * _DAY, 1 << 62,
)  # fmt: skip
"""Milliseconds. The last is for times that cannot be: no checksum covers them."""

SIZE_STEPS = 4
"""Classes of record sizes per doubling: class n begins at 2^(n/4) bytes."""

_MOST_BUCKETS = 20_000
_MOST_COUNTED = 1 << 20

Counts = tuple[int, int]


@dataclass(slots=True)
class Statistics:
    """``buckets``: topic -> number of the bucket (store time // width) -> messages and bytes. ``width``: ms.

    ``sizes``: class of record size -> records. ``first_time``, ``last_time``: lowest and highest store time in ms, 0
    without records.
    """

    width: int = WIDTHS[0]
    buckets: dict[str, dict[int, Counts]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    first_time: int = 0
    last_time: int = 0

    def add(self, walk: CompiledWalk, buffer: ReadBuffer) -> None:
        """Take the records of a walk over ``buffer``."""
        if not walk.count:
            return
        _, filled, room = walk.memory
        memory = np.frombuffer(filled, np.int64, groups_begin(room) + room * GROUP_WIDTH)
        rows = memory[RESULT_WIDTH : RESULT_WIDTH + walk.count * ROW_WIDTH].reshape(-1, ROW_WIDTH)
        groups = memory[groups_begin(room) :][: int(memory[GROUPS]) * GROUP_WIDTH].reshape(-1, GROUP_WIDTH)
        topics: dict[str, int] = {}
        number_of = np.array(
            [
                topics.setdefault(decode_utf8(bytes(buffer[at : at + size])), len(topics))
                for at, size in groups[:, [TOPIC_AT, TOPIC_SIZE]].tolist()
            ]
        )
        times, sizes = rows[:, STORE_TIME], rows[:, SIZE]
        self._span(int(times.min()), int(times.max()))
        self._add_buckets(list(topics), number_of[rows[:, GROUP]], times, sizes)
        classes = np.bincount((np.log2(sizes) * SIZE_STEPS).astype(np.int64))
        for one in np.flatnonzero(classes).tolist():
            self.sizes[one] = self.sizes.get(one, 0) + int(classes[one])

    def _span(self, first: int, last: int) -> None:
        """Of records that are not counted in ``sizes`` yet."""
        self.first_time = min(self.first_time, first) if self.sizes else first
        self.last_time = max(self.last_time, last) if self.sizes else last

    def _add_buckets(self, topics: list[str], of_row: Any, times: Any, sizes: Any) -> None:
        bucket = times // self.width
        low = int(bucket.min())
        while (int(bucket.max()) - low + 1) * len(topics) > _MOST_COUNTED:
            self._widen(next(width for width in WIDTHS if width > self.width))
            bucket = times // self.width
            low = int(bucket.min())
        span = int(bucket.max()) - low + 1
        cell = of_row * span + (bucket - low)
        counts = np.bincount(cell)
        totals = np.bincount(cell, weights=sizes)
        for at in np.flatnonzero(counts).tolist():
            self._count(topics[at // span], low + at % span, int(counts[at]), int(totals[at]))
        self._bound(_MOST_BUCKETS)

    def merge(self, other: "Statistics") -> None:
        """Take over what another has."""
        width = max(self.width, other.width)
        self._widen(width)
        for topic, of_topic in other.buckets.items():
            for bucket, (messages, size) in of_topic.items():
                self._count(topic, bucket * other.width // width, messages, size)
        if other.sizes:
            self._span(other.first_time, other.last_time)
        for one, number in other.sizes.items():
            self.sizes[one] = self.sizes.get(one, 0) + number
        self._bound(10 * _MOST_BUCKETS)

    def totals(self) -> dict[str, Counts]:
        """Messages and bytes of each topic."""
        return {
            topic: (sum(one for one, _ in of_topic.values()), sum(size for _, size in of_topic.values()))
            for topic, of_topic in self.buckets.items()
        }

    def widened(self, most: int) -> "Statistics":
        """The same with at most so many buckets of time between the first and the last, for a plot."""
        wide = Statistics()
        wide.merge(self)
        for width in WIDTHS:
            numbers = [bucket for of_topic in wide.buckets.values() for bucket in of_topic]
            if not numbers or max(numbers) - min(numbers) < most:
                break
            wide._widen(max(width, wide.width))
        return wide

    def _count(self, topic: str, bucket: int, messages: int, size: int) -> None:
        of_topic = self.buckets.setdefault(topic, {})
        before = of_topic.get(bucket, (0, 0))
        of_topic[bucket] = before[0] + messages, before[1] + size

    def _bound(self, most: int) -> None:
        """A bucket a topic may always be."""
        for width in WIDTHS:
            if sum(map(len, self.buckets.values())) <= max(most, len(self.buckets)):
                return
            if width > self.width:
                self._widen(width)

    def _widen(self, width: int) -> None:
        if width == self.width:
            return
        old, before = self.buckets, self.width
        self.buckets, self.width = {}, width
        for topic, of_topic in old.items():
            for bucket, (messages, size) in of_topic.items():
                self._count(topic, bucket * before // width, messages, size)

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "width": self.width,
            "buckets": {
                topic: [[bucket, *counts] for bucket, counts in sorted(of_topic.items())]
                for topic, of_topic in self.buckets.items()
            },
            "sizes": sorted(self.sizes.items()),
            "first_time": self.first_time,
            "last_time": self.last_time,
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> "Statistics":
        """The inverse of `document`."""
        return cls(
            document["width"],
            {
                topic: {bucket: (messages, size) for bucket, messages, size in of_topic}
                for topic, of_topic in document["buckets"].items()
            },
            dict(map(tuple, document["sizes"])),
            document["first_time"],
            document["last_time"],
        )
