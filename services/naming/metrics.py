"""What the name server tells Prometheus: what every service tells, of itself as a process and of its gRPC port."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tandemmq.common.service_metrics import ServiceMetrics


class NamingMetrics(ServiceMetrics):
    """The common numbers; a name server has none of its own."""

    def __init__(self, node: str) -> None:
        super().__init__("", "names", node)

    def collect(self) -> Iterator[Metric]:
        """None."""
        return iter(())
