"""What the store tells Prometheus of delivery: groups, their members, what waits for its time, transactions."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import Metric

from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.common.topic_names import RETRY, is_system_group, is_system_topic
from tandemmq.store.delivery.delays.counts import OUTCOMES, DelayCounts
from tandemmq.store.delivery.figures.figures import GroupFigures
from tandemmq.store.delivery.figures.waiting_figures import WaitingFigures
from tandemmq.store.delivery.members.sessions import Member

MOST_SERIES = 50_000
"""Series of one metric, as RocketMQ limits them; topics, groups and clients beyond that count as one."""
OTHERS = "(others)"

_ENDING_MILLISECONDS = (5_000, 60_000, 600_000, 3_600_000, 43_200_000, 86_400_000)
_ENDINGS = ("commit", "rollback")
_UNKNOWN = "unknown"
"""Of clients that do not say; Prometheus takes an empty label for none at all."""


class _Endings:
    """The transactions of one topic that ended."""

    __slots__ = ("counts", "times")

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_ENDINGS, 0)
        self.times = Distribution(_ENDING_MILLISECONDS)


class DeliveryMetrics(CallMetrics):
    """Numbers of delivery. What groups, members and delays say is asked for at each scrape, on the scraping thread."""

    def __init__(self, cluster: str, node_type: str, node: str) -> None:
        super().__init__(cluster, node_type, node)
        self._endings: dict[str, _Endings] = {}
        self._group_figures: Callable[[], Iterable[GroupFigures]] = tuple
        self._dead_letters: Callable[[], Mapping[tuple[str, str], int]] = dict
        self._expired: Callable[[], Mapping[tuple[str, str], int]] = dict
        self._moved: Callable[[], Mapping[tuple[str, str], int]] = dict
        self._members: Callable[[], Iterable[Member]] = tuple
        self._waiting: Callable[[], WaitingFigures] = WaitingFigures
        self._delays = DelayCounts()

    def watch_groups(
        self,
        figures: Callable[[], Iterable[GroupFigures]],
        dead_letters: Callable[[], Mapping[tuple[str, str], int]],
        expired: Callable[[], Mapping[tuple[str, str], int]],
        moved: Callable[[], Mapping[tuple[str, str], int]],
    ) -> None:
        """How groups stand.

        `dead_letters`, `expired`, `moved`: messages by group and topic since the start; given up, gone unacknowledged,
        put off so long that they went to the retry topic.
        """
        self._group_figures, self._dead_letters, self._expired, self._moved = figures, dead_letters, expired, moved

    def watch_members(self, members: Callable[[], Iterable[Member]]) -> None:
        """Which clients are there, each once for each of its groups."""
        self._members = members

    def watch_waiting(self, waiting: Callable[[], WaitingFigures], delays: DelayCounts) -> None:
        """What waits for its time, and what has become of what did."""
        self._waiting, self._delays = waiting, delays

    def transaction_ended(self, topic: str, ending: str, milliseconds: float) -> None:
        """A transaction of a topic was ended as `commit` or `rollback`, so long after its half message was stored."""
        if topic not in self._endings and len(self._endings) >= MOST_SERIES:
            topic = OTHERS
        ended = self._endings.setdefault(topic, _Endings())
        ended.counts[ending] += 1
        ended.times.add(milliseconds)

    # -- asked by Prometheus ----------------------------------------------------------------------------------------

    def collect_delivery(self) -> Iterator[Metric]:
        """Every metric of delivery with its present values."""
        waiting = self._waiting()
        yield from self._collect_transactions(waiting)
        yield from self._collect_groups()
        yield from self._collect_members()
        yield from self._collect_delays(waiting)

    def _collect_transactions(self, waiting: WaitingFigures) -> Iterator[Metric]:
        commits = self._counter("rocketmq_commit_messages_total", "Transactions that were committed.", "topic")
        rollbacks = self._counter("rocketmq_rollback_messages_total", "Transactions that were rolled back.", "topic")
        times = self._histogram(
            "rocketmq_finish_message_latency_milliseconds",
            "Time from a half message, or the last check of it, to the end of its transaction.",
            "topic",
        )
        for topic, ended in list(self._endings.items()):
            values = self._values(topic)
            commits.add_metric(values, ended.counts["commit"])
            rollbacks.add_metric(values, ended.counts["rollback"])
            times.add_metric(values, ended.times.cumulated(), ended.times.sum)
        halves = self._gauge("rocketmq_half_messages", "Half messages whose transactions have not ended.", "topic")
        text = "Age of the oldest of them, since its producer made it."
        oldest = self._gauge("tandem_half_message_age_seconds", text, "topic")
        for topic, count, age_ms in waiting.halves:
            halves.add_metric(self._values(topic), count)
            oldest.add_metric(self._values(topic), age_ms / 1000)
        yield from (commits, rollbacks, times, halves, oldest)

    def _collect_groups(self) -> Iterator[Metric]:
        labels = ("consumer_group", "topic", "is_retry", "is_system")
        held = self._gauge("rocketmq_consumer_inflight_messages", "Messages that a group's consumers hold.", *labels)
        text = "Messages that a group can get now: new ones, and those that are due again."
        ready = self._gauge("rocketmq_consumer_ready_messages", text, *labels)
        text = "Age of the oldest message that a group was never given."
        queued = self._gauge("rocketmq_consumer_queueing_latency_milliseconds", text, *labels)
        text = "Of one message that a group has not dealt with: most deliveries."
        most = self._gauge("tandem_consumer_most_deliveries", text, *labels)
        text = "Age of the oldest message that a group has not dealt with."
        oldest = self._gauge("tandem_consumer_oldest_message_seconds", text, *labels)
        now = time.time_ns() // 1_000_000
        known: dict[tuple[str, str], int] = {}  # counters begin at 0, so that their first step is seen
        for one in self._group_figures():
            known[one.group, one.topic] = 0
            retry = str(one.topic.startswith(RETRY)).lower()
            values = self._values(one.group, one.topic, retry, is_system(one.topic))
            held.add_metric(values, one.in_flight)
            ready.add_metric(values, one.ready)
            oldest.add_metric(values, max(now - one.oldest_ms, 0) / 1000 if one.oldest_ms else 0)
            queued.add_metric(values, max(now - one.oldest_waiting_ms, 0) if one.oldest_waiting_ms else 0)
            most.add_metric(values, one.most_deliveries)
        yield from (held, ready, queued, oldest, most)
        fewer = ("consumer_group", "topic", "is_system")
        dead = self._counter("rocketmq_send_to_dlq_messages_total", "Messages that became dead letters.", *fewer)
        text = "Messages that expired or were lost before the group had acknowledged them."
        gone = self._counter("tandem_consumer_expired_messages_total", text, *fewer)
        text = "Messages that were put off for long, and went to the group's retry topic."
        moved = self._counter("tandem_consumer_moved_messages_total", text, *fewer)
        for counter, counts in ((dead, self._dead_letters()), (gone, self._expired()), (moved, self._moved())):
            for (group, topic), count in (known | dict(counts)).items():
                counter.add_metric(self._values(group, topic, is_system(topic)), count)
            yield counter

    def _collect_members(self) -> Iterator[Metric]:
        consumers: Counter[tuple[str, ...]] = Counter()
        producers: Counter[tuple[str, ...]] = Counter()
        senders: set[str] = set()  # RocketMQ 5 clients are there once for each topic
        for one in self._members():
            client = (one.language or _UNKNOWN, one.version or _UNKNOWN)
            if one.producer and one.client_id in senders:
                continue
            if one.producer:
                senders.add(one.client_id)
                _count(producers, (*client, one.protocol))
            else:
                mode = "push" if one.protocol == "remoting" else "pop"
                _count(consumers, (one.group, *client, mode, one.protocol, is_system(one.group)))
        labels = ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system")
        text = "Clients that consume, by their groups: those of which something was heard in the last two minutes."
        consuming = self._gauge("rocketmq_consumer_connections", text, *labels)
        of_producers = ("language", "version", "protocol_type")
        producing = self._gauge("rocketmq_producer_connections", "Clients that send.", *of_producers)
        for gauge, counts in ((consuming, consumers), (producing, producers)):
            for values, count in counts.items():
                gauge.add_metric(self._values(*values), count)
            yield gauge

    def _collect_delays(self, now: WaitingFigures) -> Iterator[Metric]:
        text = "Messages that wait for a time of their own; one that was recalled, and its recall, count until then."
        yield self._one_gauge("rocketmq_timing_messages", text, now.timers)
        text = "Messages that the index of timers does not have yet."
        yield self._one_gauge("rocketmq_timer_enqueue_lag", text, now.timers_not_indexed)
        text = "Messages with a time of their own that are due and not delivered."
        yield self._one_gauge("rocketmq_timer_dequeue_lag", text, now.timers_due)
        text = "How long the first of those is due; of delay levels too, if that is more."
        late = max(now.timers_late_ms, *(one.late_ms for one in now.levels), 0) if now.levels else now.timers_late_ms
        yield self._one_gauge("rocketmq_timer_dequeue_latency_milliseconds", text, late)
        yield from self._collect_timers()
        levels = self._gauge("tandem_delay_level_messages", "Messages that wait in a delay level.", "level")
        for one in now.levels:
            levels.add_metric(self._values(str(one.level)), one.waiting)
        yield levels
        text = (
            "What became of messages that waited for their time: delivered; recalled; rolled, stored again to outlive "
            "their file; superseded by that; unreadable; undeliverable; failed: attempts that are made again."
        )
        outcomes = self._counter("tandem_delayed_messages_total", text, "outcome")
        for name in OUTCOMES:
            outcomes.add_metric(self._values(name), getattr(self._delays, name))
        yield outcomes

    def _collect_timers(self) -> Iterator[Metric]:
        text = "Messages with a time of their own that were put into the index of timers."
        counted_in = self._counter("rocketmq_timer_enqueue_total", text, "topic")
        text = "Messages with a time of their own that were delivered."
        counted_out = self._counter("rocketmq_timer_dequeue_total", text, "topic")
        came, went = dict(self._delays.timers_in), dict(self._delays.timers_out)
        topics = list(came | went)  # each in both, from 0 on, so that its first step is seen
        for counter, counts in ((counted_in, came), (counted_out, went)):
            for topic in topics[:MOST_SERIES]:
                counter.add_metric(self._values(topic), counts.get(topic, 0))
            if others := topics[MOST_SERIES:]:
                counter.add_metric(self._values(OTHERS), sum(counts.get(topic, 0) for topic in others))
            yield counter


def is_system(name: str) -> str:
    """The label `is_system` of a topic or group."""
    return str(is_system_topic(name) or is_system_group(name)).lower()


def _count(counts: Counter[tuple[str, ...]], key: tuple[str, ...]) -> None:
    if key not in counts and len(counts) >= MOST_SERIES:
        key = (OTHERS,) * len(key)
    counts[key] += 1
