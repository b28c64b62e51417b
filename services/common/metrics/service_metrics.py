"""What the collectors of all services share: labels, families with these labels, a registry."""

from collections.abc import Callable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.grpc_transport import Load, Told
from tandemmq.common.serving.guard import REASONS, CallGuard


class ServiceMetrics(Collector):
    """Numbers of one service, under RocketMQ's common labels.

    Hot paths only add to plain Python numbers; the text is made when somebody scrapes. A scrape runs on a thread of its
    own and may see a number that is one event younger than its neighbour.
    """

    def __init__(self, cluster: str, node_type: str, node: str) -> None:
        self._common = {"cluster": cluster, "node_type": node_type, "node_id": node}
        self._guards: tuple[CallGuard, ...] = ()
        self._peers: tuple[FollowedPeer, ...] = ()
        self._loads: dict[str, Callable[[], Load | None]] = {"client": lambda: Load(0, 0, Told())}

    def registry(self) -> CollectorRegistry:
        """A registry with these numbers, the build's version, and the numbers of the process."""
        registry = CollectorRegistry()
        registry.register(self)
        registry.register(_Build(self))
        for read in (self.access, self.load, self.peers):
            registry.register(_Beside(read))
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        return registry

    def watch_access(self, *guards: CallGuard) -> None:
        """Count what these refuse from now on: the guards of the service's servers."""
        self._guards = guards

    def access(self) -> Iterator[Metric]:
        """Calls refused, and whether the access file can be used; all there without one, too."""
        text = "Calls refused: nobody known, too many wrong secrets, or no permission."
        refused = self._counter("tandem_access_refused", text, "reason")
        for reason in REASONS:
            refused.add_metric(self._values(reason), sum(guard.refused[reason] for guard in self._guards))
        yield refused
        gates = [guard.gate for guard in self._guards if guard.gate is not None]
        good = not any(gate.keeper.problem for gate in gates)
        text = "0 while the accessFile cannot be used and an older state of it is in force; else 1."
        yield self._one_gauge("tandem_access_file_good", text, good)

    def watch_load(self, **ports: Callable[[], Load | None]) -> None:
        """Show what the servers on these ports (`client`, `internal`) hold for their callers."""
        self._loads = ports

    def load(self) -> Iterator[Metric]:
        """What is held for callers, and what they were made to give up; nothing of ports that grpcio serves."""
        held = self._gauge(
            "tandem_grpc_held_bytes", "Bytes held for callers: answers not taken, requests not complete.", "port"
        )
        budget = self._gauge("tandem_grpc_budget_bytes", "Bytes that may be (grpcMemoryBudget).", "port")
        text = (
            "What callers had to give up. no_room: calls refused for want of memory; slow_call: calls ended as the "
            "caller did not go on reading or sending; slow_connection: connections closed for that; misbehaved: "
            "connections ended for floods and the like."
        )
        ended = self._counter("tandem_grpc_ended", text, "port", "reason")
        text = "Calls whose frames compiled code has read and answered; all others are Python's."
        laned = self._counter("tandem_lane_calls", text, "port")
        for port, read in self._loads.items():
            now = read()
            if now is None:
                continue
            laned.add_metric(self._values(port), now.laned)
            held.add_metric(self._values(port), now.held)
            budget.add_metric(self._values(port), now.budget)
            told = now.told
            for reason, count in (
                ("no_room", told.refused),
                ("slow_call", told.slow_calls),
                ("slow_connection", told.slow_connections),
                ("misbehaved", told.misbehaved),
            ):
                ended.add_metric(self._values(port, reason), count)
        yield from (held, budget, ended, laned)

    def watch_peers(self, *peers: FollowedPeer) -> None:
        """Show these too, from now on."""
        self._peers += peers

    def peers(self) -> Iterator[Metric]:
        """Which of the processes that this one keeps in touch with are there."""
        text = "1 while the service is in touch with another process that it needs; 0: the log says why not."
        there = self._gauge("tandem_peer_there", text, "peer", "name")
        for one in self._peers:
            there.add_metric(self._values(one.peer, one.name), one.there)
        yield there

    def build_info(self) -> Metric:
        """Which version of TandemMQ this is: a gauge that is 1 and has it as a label."""
        info = self._gauge("tandem_build_info", "1; the label has the version of TandemMQ.", "version")
        info.add_metric(self._values(version("tandemmq")), 1)
        return info

    def _values(self, *values: str) -> list[str]:
        return [*self._common.values(), *values]

    def _counter(self, name: str, text: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(name, text, labels=[*self._common, *labels])

    def _gauge(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, text, labels=[*self._common, *labels])

    def _histogram(self, name: str, text: str, *labels: str) -> HistogramMetricFamily:
        return HistogramMetricFamily(name, text, labels=[*self._common, *labels])

    def _one_counter(self, name: str, text: str, value: float) -> CounterMetricFamily:
        counter = self._counter(name, text)
        counter.add_metric(self._values(), value)
        return counter

    def _one_gauge(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        gauge = self._gauge(name, text)
        gauge.add_metric(self._values(), value)
        return gauge


class _Beside(Collector):
    """Numbers beside the service's own."""

    def __init__(self, read: Callable[[], Iterator[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        yield from self._read()


class _Build(Collector):
    """The version beside the service's own numbers: it never changes, so it is made once."""

    def __init__(self, service: ServiceMetrics) -> None:
        self._info = service.build_info()

    def collect(self) -> Iterator[Metric]:
        yield self._info
