"""What admin tells Prometheus: lag of consumer groups under RocketMQ 5's names, and which services answer.

The numbers of groups stand under the name and the cluster of their broker, as RocketMQ's brokers give them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from tandemmq.admin.catalogue.topic_kinds import topic_kind
from tandemmq.admin.history.collected import Collected, Lag
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.metrics.service_metrics import ServiceMetrics
from tandemmq.common.topic_names import RETRY, is_system_group

_OF_BROKER = ("cluster", "node_type", "node_id")
_OF_GROUP = (*_OF_BROKER, "consumer_group", "topic", "is_retry", "is_system")

_STATES = [name.lower() for name in admin_pb2.JobState.keys()[1:]]


class AdminMetrics(ServiceMetrics):
    """All numbers of one admin."""

    def __init__(self, cluster: str) -> None:
        super().__init__(cluster, "admin", "admin")
        self._collected: Callable[[], Collected] = Collected
        self._failures: Callable[[], int] = lambda: 0
        self._actions: Mapping[tuple[str, str], int] = Counter()

    def watch(
        self, collected: Callable[[], Collected], failures: Callable[[], int], actions: Mapping[tuple[str, str], int]
    ) -> None:
        """Where the numbers are. `actions`: how many there were, by method and outcome."""
        self._collected, self._failures, self._actions = collected, failures, actions

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present values."""
        now = self._collected()
        yield from _of_groups(now)
        yield from self._of_cluster(now)
        failures = "Rounds in which lags, or those of a broker, could not be collected."
        yield self._one_counter("tandem_admin_collect_failures_total", failures, self._failures())
        actions = self._counter(
            "tandem_admin_actions_total",
            "Calls that change something, or were turned away, by outcome: OK or the gRPC code.",
            "method",
            "outcome",
        )
        for (method, outcome), count in list(self._actions.items()):
            actions.add_metric(self._values(method, outcome), count)
        yield actions

    def _of_cluster(self, now: Collected) -> Iterator[Metric]:
        up = self._gauge("tandem_admin_node_up", "1 while a service of a node answers and serves.", "node", "service")
        for node, service, serving in now.services:
            up.add_metric(self._values(node, service), int(serving))
        problems = self._gauge("tandem_admin_node_problems", "What is wrong with a node: see its problems.", "node")
        for node, count in now.problems:
            problems.add_metric(self._values(node), count)
        jobs = self._gauge("tandem_admin_jobs", "Remembered jobs by state.", "state")
        for state in _STATES:
            jobs.add_metric(self._values(state), now.jobs[state])
        yield from (up, problems, jobs)
        for name, text, value in (
            ("lags_left_out", "Pairs of group and topic that are not told: they lag least.", now.left_out),
            ("collect_seconds", "How long the last round of collecting took.", now.seconds),
            ("collect_timestamp_seconds", "When it ended, seconds since 1970; 0: never.", now.at),
        ):
            yield self._one_gauge(f"tandem_admin_{name}", text, value)


def _of_groups(now: Collected) -> Iterator[Metric]:
    messages = _gauge("rocketmq_consumer_lag_messages", "Messages from a group's position on.", _OF_GROUP)
    latency = _gauge(
        "rocketmq_consumer_lag_latency_milliseconds",
        "Age of the oldest message that a group has not consumed; of those that lag most.",
        _OF_GROUP,
    )
    for lag in now.lags:
        labels = _labels(lag)
        messages.add_metric(labels, lag.messages)
        if lag in now.latencies:
            latency.add_metric(labels, now.latencies[lag])
    groups = _gauge("rocketmq_consumer_group_number", "Groups that are configured or have offsets.", _OF_BROKER)
    for broker, cluster, count in now.groups:
        groups.add_metric((cluster, "broker", broker), count)
    yield from (messages, latency, groups)


def _labels(lag: Lag) -> tuple[str, ...]:
    system = topic_kind(lag.topic) == admin_pb2.SYSTEM or is_system_group(lag.group)
    retry = lag.topic.startswith(RETRY)
    return lag.cluster, "broker", lag.broker, lag.group, lag.topic, str(retry).lower(), str(system).lower()


def _gauge(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)
