"""What the replicator tells Prometheus, all `tandem_…`: RocketMQ has no metric for how far a replica is behind.

The paths that move bytes only add to plain numbers; what can be read off the service is read when somebody scrapes. A
scrape runs on a thread of its own and may see a number that is one event younger than its neighbour.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric

from tandemmq.common.metrics.service_metrics import ServiceMetrics
from tandemmq.replicator.slave.slave_connection import FollowerCounters
from tandemmq.replicator.slave.slave_errors import follow_end_reasons

STATES = ("connecting", "comparing", "following", "refused")
"""States of a slave, as label values."""

_NO_ENDS = dict.fromkeys(follow_end_reasons(), 0)
"""Counters begin at 0, or Prometheus would not see the first end as an increase."""


class ReplicaNow(NamedTuple):
    """One replica at this moment, as its master sees it."""

    identity: str
    connected: bool
    in_sync: bool
    lag_bytes: int
    lag_seconds: float
    ack_age: float
    silent_seconds: float


class MasterNow(NamedTuple):
    """What is read off the master side at each scrape."""

    replicas: Sequence[ReplicaNow]
    connections: int
    in_sync: int
    enough: bool


class SlaveNow(NamedTuple):
    """What is read off the slave side at each scrape. `lag_bytes` is None while the master's end is not known."""

    state: str
    lag_bytes: int | None
    unacked_bytes: int
    silent_seconds: float


class Now(NamedTuple):
    """What is read off the service at each scrape; a side that does not run is None."""

    linked: bool
    serving: bool
    role: str
    master: MasterNow | None
    slave: SlaveNow | None


class ReplicatorMetrics(ServiceMetrics):
    """All numbers of one replicator."""

    def __init__(self, cluster: str, node: str) -> None:
        super().__init__(cluster, "replicator", node)
        self._now: Callable[[], Now] | None = None
        self.frames_sent = self.heartbeats_sent = self.bytes_sent = self.reports_received = 0
        self.connections_accepted = self.joins = 0
        self.links = self.fences = 0
        self.heals = self.heal_failures = 0
        self.follower = FollowerCounters()
        """The slave side's own numbers; replaced by those of the follower that runs."""
        self._closed: dict[str, int] = {}

    def watch(self, now: Callable[[], Now]) -> None:
        """Ask `now` at each scrape, on the scraping thread; before that those metrics are missing."""
        self._now = now

    # -- told by the master side --------------------------------------------------------------------------------------

    def closed(self, reason: str) -> None:
        """A slave's connection ended. `reason`: ended, stopped, or why it was refused."""
        self._closed[reason] = self._closed.get(reason, 0) + 1

    # -- asked by Prometheus ------------------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present values."""
        follower = self.follower
        for name, text, value in (
            ("ha_frames_sent", "Frames with bytes of the log that were sent to slaves.", self.frames_sent),
            ("ha_heartbeats_sent", "Heartbeats sent to slaves.", self.heartbeats_sent),
            ("ha_sent_bytes", "Bytes sent to slaves, headers included.", self.bytes_sent),
            ("ha_reports_received", "Reports and acks that slaves sent.", self.reports_received),
            ("ha_connections_accepted", "Connections of slaves that were accepted.", self.connections_accepted),
            ("ha_joins", "Slaves that introduced themselves.", self.joins),
            ("ha_frames_received", "Frames that the master sent, heartbeats included.", follower.frames),
            ("ha_heartbeats_received", "Heartbeats that the master sent.", follower.heartbeats),
            ("ha_received_bytes", "Bytes that the master sent, headers included.", follower.received_bytes),
            ("ha_reports_sent", "Reports and acks sent to the master.", follower.reports),
            ("ha_master_connections", "Connections to the master that were made.", follower.connections),
            ("ha_reconnects", "Attempts to follow the master after the first.", follower.reconnects),
            ("ha_staging_pauses", "Times that the store was slower than the master.", follower.staging_pauses),
            ("fences", "Times that an old master was told that it was replaced.", self.fences),
            ("heals", "Damaged stretches of the log that were mended from a peer.", self.heals),
            ("heal_failures", "Attempts to mend one from a peer that failed.", self.heal_failures),
            ("store_links", "Times that the link to the store was made.", self.links),
        ):
            yield self._one_counter(f"tandem_{name}_total", text, value)
        closed = self._counter(
            "tandem_ha_connections_closed_total", "Connections of slaves that ended or were refused.", "reason"
        )
        for reason, count in list(self._closed.items()):
            closed.add_metric(self._values(reason), count)
        ends = self._counter(
            "tandem_ha_follow_ends_total", "Attempts to follow that ended, by reason; `fork` is one.", "reason"
        )
        for reason, count in {**_NO_ENDS, **follower.ends}.items():
            ends.add_metric(self._values(reason), count)
        yield from (closed, ends)
        if self._now is not None:
            now = self._now()
            yield from self._collect_service(now)
            if now.master is not None:
                yield from self._collect_master(now.master)
            if now.slave is not None:
                yield from self._collect_slave(now.slave)

    def _collect_service(self, now: Now) -> Iterator[Metric]:
        yield self._one_gauge("tandem_store_linked", "1 while the store talks to us.", int(now.linked))
        yield self._one_gauge("tandem_replicator_serving", "1 while health says so.", int(now.serving))
        role = self._gauge("tandem_replicator_role", "1 for the role of the store.", "role")
        role.add_metric(self._values(now.role), 1)
        yield role

    def _collect_master(self, now: MasterNow) -> Iterator[Metric]:
        yield self._one_gauge("tandem_ha_connections", "Connections of slaves.", now.connections)
        yield self._one_gauge("tandem_replicas_in_sync", "Slaves that are in sync.", now.in_sync)
        yield self._one_gauge(
            "tandem_replicas_enough", "1 while as many slaves are connected as a synchronous send needs.", now.enough
        )
        for name, text, value in (
            ("connected", "1 while the slave is connected.", lambda one: int(one.connected)),
            ("in_sync", "1 while it is in sync.", lambda one: int(one.in_sync)),
            ("lag_bytes", "Bytes of the log that it does not have.", lambda one: one.lag_bytes),
            ("lag_seconds", "Age of the oldest byte that it does not have.", lambda one: one.lag_seconds),
            ("ack_age_seconds", "Time since its last report.", lambda one: one.ack_age),
            (
                "silent_seconds",
                "How long nothing has come from it though a report or an ack was due; 0 while it comes.",
                lambda one: one.silent_seconds,
            ),
        ):
            gauge = self._gauge(f"tandem_replica_{name}", text, "replica")
            for replica in now.replicas:
                gauge.add_metric(self._values(replica.identity), value(replica))
            yield gauge

    def _collect_slave(self, now: SlaveNow) -> Iterator[Metric]:
        state = self._gauge("tandem_follower_state", "1 for what this slave does about its master.", "state")
        for known in STATES:
            state.add_metric(self._values(known), int(known == now.state))
        yield state
        if now.lag_bytes is not None:
            yield self._one_gauge(
                "tandem_follower_lag_bytes", "Bytes of the master's log that are missing here.", now.lag_bytes
            )
        yield self._one_gauge(
            "tandem_follower_unacked_bytes", "Bytes received and not acked to the master.", now.unacked_bytes
        )
        yield self._one_gauge(
            "tandem_follower_silent_seconds", "Time since the master's last byte.", now.silent_seconds
        )
