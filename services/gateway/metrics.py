"""Numbers of a gateway: calls of its clients, and its links to the brokers."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import Metric

from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.gateway.remote_broker import RemoteBroker


class GatewayMetrics(CallMetrics):
    """All numbers of one gateway."""

    def __init__(
        self, cluster: str, gateway: str, brokers: Mapping[str, RemoteBroker], clients: Callable[[], int]
    ) -> None:
        """`clients`: how many members of groups there are."""
        super().__init__(cluster, "gateway", gateway)
        self._brokers = brokers
        self._clients = clients

    def collect(self) -> Iterator[Metric]:
        """Everything, as it is now."""
        yield from self.collect_calls()
        up = self._gauge("tandem_gateway_broker_up", "1 while the gateway has a link to the broker's master.", "broker")
        links = self._counter("tandem_gateway_links", "Links to the broker that were made.", "broker")
        for name, broker in self._brokers.items():
            up.add_metric(self._values(name), broker.link is not None)
            links.add_metric(self._values(name), broker.links)
        yield from (up, links)
        yield self._one_gauge("tandem_gateway_members", "Clients in their groups, at this gateway.", self._clients())
