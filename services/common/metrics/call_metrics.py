"""Metrics of the calls of RocketMQ's clients, under RocketMQ's name and bounds."""

from bisect import bisect_left
from collections.abc import Container, Iterator

from prometheus_client.core import Metric

from tandemmq.common.metrics.distribution import Distribution
from tandemmq.common.metrics.service_metrics import ServiceMetrics

_RPC_MILLISECONDS = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)


class CallMetrics(ServiceMetrics):
    """Numbers of a service that such clients call."""

    def __init__(self, cluster: str, node_type: str, node: str) -> None:
        super().__init__(cluster, node_type, node)
        self._calls: dict[tuple[str, str, str, bool], Distribution] = {}

    def called(
        self,
        method: str,
        outcome: str,
        seconds: float,
        *,
        long_polling: bool = False,
        protocol: str = "grpc",
        calls: int = 1,
    ) -> None:
        """So many calls ended, each after so long.

        `outcome`: SUCCESS, or RocketMQ's name of what it was. `protocol`: grpc or remoting.
        """
        times = self._calls.get((protocol, method, outcome, long_polling))
        if times is None:
            times = self.times(method, outcome, long_polling=long_polling, protocol=protocol)
        milliseconds = seconds * 1000
        times.counts[bisect_left(_RPC_MILLISECONDS, milliseconds)] += calls
        times.sum += milliseconds * calls

    def times(self, method: str, outcome: str, *, long_polling: bool = False, protocol: str = "grpc") -> Distribution:
        """Where `called` counts such calls, which are shown from now on; milliseconds."""
        return self._calls.setdefault((protocol, method, outcome, long_polling), Distribution(_RPC_MILLISECONDS))

    def times_of(self, methods: Container[str]) -> Distribution:
        """How long calls of these methods took, whatever came of them; milliseconds."""
        all_times = Distribution(_RPC_MILLISECONDS)
        for (_, method, _, _), times in self._calls.items():
            if method in methods:
                all_times.counts = [one + more for one, more in zip(all_times.counts, times.counts, strict=True)]
                all_times.sum += times.sum
        return all_times

    def collect_calls(self) -> Iterator[Metric]:
        """The times of all calls."""
        labels = ("protocol_type", "request_code", "response_code", "is_long_polling", "result")
        calls = self._histogram("rocketmq_rpc_latency_milliseconds", "Time in a call.", *labels)
        for (protocol, method, outcome, long_polling), times in list(self._calls.items()):
            values = self._values(protocol, method.lower(), outcome.lower(), str(long_polling).lower(), "success")
            calls.add_metric(values, times.cumulated(), times.sum)
        yield calls
