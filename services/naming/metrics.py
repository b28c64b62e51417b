"""What the name server tells Prometheus: which brokers are registered, how many topics, what is asked, who is gone."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import Metric

from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.common.net.remoting.limits import RemotingCounts
from tandemmq.common.wire.remoting.registration import BrokerIdentity
from tandemmq.naming.routes import RouteTable

REASONS = ("silent", "closed")
"""Why a broker is forgotten that has not unregistered: nothing was heard of it, or its connection closed."""

_MISSING_SECONDS = 86_400.0
_MOST_MISSING = 1_000


class NamingMetrics(CallMetrics):
    """All numbers of one name server."""

    def __init__(self, node: str, now: Callable[[], float]) -> None:
        """`now`: a steady clock, in seconds."""
        super().__init__("", "names", node)
        self._now = now
        self._missing: dict[tuple[str, str, int, str], float] = {}
        """Brokers that were forgotten, as cluster, name, id, address; and since when."""
        self._routes = RouteTable()
        self._connections: Callable[[], int] = int
        self._ended: Callable[[], RemotingCounts] = RemotingCounts
        self._forgotten = dict.fromkeys(REASONS, 0)

    def watch(self, routes: RouteTable, connections: Callable[[], int], ended: Callable[[], RemotingCounts]) -> None:
        """Show this table, how many connections there are, and what peers were made to give up."""
        self._routes, self._connections, self._ended = routes, connections, ended

    def forgotten(self, reason: str, brokers: Sequence[BrokerIdentity]) -> None:
        """These brokers were forgotten, for one of REASONS."""
        self._forgotten[reason] += len(brokers)
        for one in brokers:
            self._missing[one.cluster, one.name, one.broker_id, one.address] = self._now()
        while len(self._missing) > _MOST_MISSING:
            del self._missing[next(iter(self._missing))]

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present values."""
        yield self._brokers()
        yield self._one_gauge("tandem_names_topics", "Topics that a registered broker has.", len(self._routes.topics))
        text = (
            "Brokers that were forgotten without having unregistered. silent: nothing was heard of them; closed: their "
            "connection closed."
        )
        forgotten = self._counter("tandem_names_forgotten_brokers_total", text, "reason")
        for reason, count in self._forgotten.items():
            forgotten.add_metric(self._values(reason), count)
        yield forgotten
        text = "Connections of brokers, clients and tools."
        yield self._one_gauge("tandem_names_connections", text, self._connections())
        yield self._refused()
        yield from self.collect_calls()

    def _brokers(self) -> Metric:
        text = (
            "Brokers, with their cluster; broker_id 0 is the master. 1: registered. 0: it went without unregistering, "
            "and nothing has registered in its place for up to a day."
        )
        brokers = self._gauge("tandem_names_broker", text, "broker", "broker_id", "address")
        there = set()
        for broker in list(self._routes.brokers.values()):
            for number, address in broker.addresses.items():
                there.add((broker.name, number))
                brokers.add_metric(self._of_broker(broker.cluster, broker.name, number, address), 1)
        for key, since in list(self._missing.items()):
            if key[1:3] in there or self._now() - since > _MISSING_SECONDS:
                self._missing.pop(key, None)
            else:
                brokers.add_metric(self._of_broker(*key), 0)
        return brokers

    def _of_broker(self, cluster: str, name: str, broker_id: int, address: str) -> list[str]:
        return [cluster, *self._values()[1:], name, str(broker_id), address]

    def _refused(self) -> Metric:
        text = (
            "What peers had to give up. turned_away: connections over namesMaxConnections; misbehaved: those that sent "
            "what is no frame; slow: that did not read; idle: on which nothing went; unknown: requests with a code "
            "that is not answered; failed: by a fault of the program."
        )
        refused = self._counter("tandem_names_refused_total", text, "reason")
        counts = self._ended()
        for reason in ("turned_away", "misbehaved", "slow", "idle", "unknown", "failed"):
            refused.add_metric(self._values(reason), getattr(counts, reason))
        return refused
