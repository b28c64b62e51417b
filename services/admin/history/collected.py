"""Lag and state of the cluster, collected again and again for the metrics: a scrape never waits for another service."""

import heapq
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from tandemmq.admin.books.books import Book, Books
from tandemmq.admin.books.store_times import MessagePlace, store_times
from tandemmq.admin.cluster.cluster import ClusterView
from tandemmq.admin.consuming.progress import GroupPosition, lag_in
from tandemmq.admin.errors import AdminError
from tandemmq.admin.history.history import HourHistory
from tandemmq.admin.history.history_readings import read_history
from tandemmq.admin.history.send_latency import SendTimesKeeper
from tandemmq.admin.jobs.jobs import Jobs
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers

log = get_log(__name__)

MOST_LAGS = 5_000
"""Pairs of group and topic that are told: those that lag most. Every one is three time series."""

MOST_PULLS = 200
"""Messages of a broker that are looked at in one round, to know how old they are."""

QUEUES_OF_A_PAIR = 4


class Lag(NamedTuple):
    """How far one group is behind in one topic of one broker."""

    messages: int
    topic: str
    group: str
    broker: str
    cluster: str


@dataclass(frozen=True)
class Collected:
    """What a round found out; never changed."""

    services: tuple[tuple[str, str, bool], ...] = ()
    """Node, service, whether it serves."""
    problems: tuple[tuple[str, int], ...] = ()
    """Node, number of its problems."""
    groups: tuple[tuple[str, str, int], ...] = ()
    """Broker, cluster, number of groups."""
    lags: tuple[Lag, ...] = ()
    left_out: int = 0
    """Pairs beyond MOST_LAGS."""
    latencies: dict[Lag, int] = field(default_factory=dict)
    """Age of the oldest message that waits, ms; 0 where none does. Without those that were not looked at."""
    jobs: Counter[str] = field(default_factory=Counter)
    """Remembered jobs by state."""
    seconds: float = 0.0
    """How long the round took."""
    at: float = 0.0
    """When it ended, seconds since 1970."""


class Collector:
    """Begins to collect every `interval` seconds, from `run` on until that is cancelled."""

    def __init__(
        self,
        cluster: ClusterView,
        books: Books,
        jobs: Jobs,
        history: HourHistory,
        interval: float,
        timers: Timers,
    ) -> None:
        """`history` gets a point of what is found out as often as it wants one."""
        self._history = history
        self._sends = SendTimesKeeper()
        self._cluster = cluster
        self._timers = timers
        self._books = books
        self._jobs = jobs
        self._interval = interval
        self.last = Collected()
        self.failures = 0
        """Rounds without lags."""

    async def run(self) -> None:
        """For ever. What goes wrong is counted and logged."""
        while True:
            begun = self._timers.time()
            try:
                self.last = await self._collect()
            except Exception as error:  # noqa: BLE001 - the next round may go well
                self.failures += 1
                log.failure("collecting for the metrics failed", error)
            await self._timers.sleep(pause_after(self._timers.time() - begun, self._interval))

    async def _collect(self) -> Collected:
        begun = self._timers.time()
        nodes = (await self._cluster.look()).nodes
        books = await self._read()
        lags = [lag for book in books for lag in await _lags(book, Slices(self._timers))]
        worst = tuple(sorted(lags, reverse=True)[:MOST_LAGS])
        latencies = {lag: 0 for lag in worst if not lag.messages}
        for book in books:
            latencies |= await _latencies(book, worst)
        await self._note(nodes, books, lags, latencies)
        jobs = Counter(admin_pb2.JobState.Name(job.state).lower() for job in self._jobs.list().jobs)
        return Collected(
            services=tuple((node.name, one.service, one.serving) for node in nodes for one in node.services),
            problems=tuple((node.name, len(node.problems)) for node in nodes),
            groups=tuple((book.broker, book.cluster, len(book.group_names)) for book in books if book.tables),
            lags=worst,
            left_out=len(lags) - len(worst),
            latencies=latencies,
            jobs=jobs,
            seconds=self._timers.time() - begun,
            at=time.time(),
        )

    async def _note(
        self, nodes: Iterable[admin_pb2.Node], books: list[Book], lags: list[Lag], latencies: Mapping[Lag, int]
    ) -> None:
        """The hour's history has a point more, if it is time for it."""
        if not self._history.is_due(at := time.time()):
            return
        behind: Counter[str] = Counter()
        for lag in lags:
            behind[lag.group] += lag.messages
        waits: dict[str, int] = {}
        for lag, ms in latencies.items():
            waits[lag.group] = max(waits.get(lag.group, 0), ms)
        slices = Slices(self._timers)
        self._history.note(at, *await read_history(nodes, books, behind, waits, self._sends, slices))

    async def _read(self) -> list[Book]:
        try:
            books = await self._books.read()
        except AdminError:
            self.failures += 1
            return []
        if any(book.tables is None or book.ends is None for book in books):
            self.failures += 1
        return books


def pause_after(took: float, interval: float) -> float:
    """Seconds until the next round, which begins `interval` after this one did; slow rounds have pauses as long."""
    return max(interval - took, min(took, interval))


async def _lags(book: Book, slices: Slices) -> list[Lag]:
    """Of every pair of group and topic. Gives way to other calls between."""
    lags: list[Lag] = []
    if book.ends is None or book.tables is None:
        return lags
    for group, topics in list(book.tables.offsets.items()):
        for topic, offsets in topics.items():
            lags.append(Lag(lag_in(book.ends.queues(topic), offsets), topic, group, book.broker, book.cluster))
        await slices.pause()
    return lags


async def _latencies(book: Book, worst: Iterable[Lag]) -> dict[Lag, int]:
    """How old what waits is, for the pairs of a broker that lag most."""
    if book.ends is None or book.tables is None or book.store is None:
        return {}
    wanted = list(islice(_oldest(book, worst), MOST_PULLS))
    times = await store_times(book.store, {place for _, place in wanted})
    now = time.time_ns() // 1_000_000
    latencies: dict[Lag, int] = {}
    for lag, place in wanted:
        if place in times:
            latencies[lag] = max(latencies.get(lag, 0), now - times[place])
    return latencies


def _oldest(book: Book, worst: Iterable[Lag]) -> Iterator[tuple[Lag, MessagePlace]]:
    """Where the oldest waiting messages of each pair are, in the queues that lag most."""
    assert book.ends is not None
    assert book.tables is not None
    for lag in worst:
        if not lag.messages or lag.broker != book.broker:
            continue
        queues = book.ends.queues(lag.topic)
        offsets = book.tables.offsets.get(lag.group, {}).get(lag.topic, {})
        waiting = {
            queue: where
            for queue, offset in offsets.items()
            if queue in queues and (where := GroupPosition(queues[queue], offset)).lag
        }
        for queue in heapq.nlargest(QUEUES_OF_A_PAIR, waiting, key=lambda queue: waiting[queue].lag or 0):
            oldest = waiting[queue].oldest_waiting
            if oldest is not None:
                yield lag, MessagePlace(lag.topic, queue, oldest)
