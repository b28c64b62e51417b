"""What the metadata service tells Prometheus."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric

from tandemmq.common.metrics.service_metrics import ServiceMetrics
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.standing import NodeRole, Standing
from tandemmq.metasync.status import pending, sync_age
from tandemmq.metasync.tables import TableKind


class MetasyncMetrics(ServiceMetrics):
    """All numbers of one metadata service."""

    def __init__(self, cluster: str, node: str) -> None:
        super().__init__(cluster, "metasync", node)
        self._commits: Counter[str] = Counter()
        self.tables_sent: Counter[TableKind] = Counter()
        """Whole tables asked for, which is what a slave does when its version differs."""
        self._watched: tuple[Keeper, TablePuller, Callable[[], Standing]] | None = None

    def watch(self, keeper: Keeper, puller: TablePuller, standing: Callable[[], Standing]) -> None:
        """Read the tables and the copying at each scrape; before that those metrics are missing."""
        self._watched = keeper, puller, standing

    def committed(self, results: Iterable[pb.CommitResult]) -> None:
        """Offsets were committed, or not."""
        self._commits.update(pb.CommitStatus.Name(result.status) for result in results)

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present values."""
        commits = self._counter("tandem_metadata_commits_total", "Consumer offsets by what became of them.", "status")
        for status in pb.CommitStatus.keys()[1:]:
            commits.add_metric(self._values(status.lower()), self._commits[status])
        sent = self._counter("tandem_metadata_tables_sent_total", "Whole tables that were asked for.", "table")
        for kind in TableKind:
            sent.add_metric(self._values(_label(kind)), self.tables_sent[kind])
        yield from (commits, sent)
        if self._watched is not None:
            yield from self._collect_tables(*self._watched)

    def _collect_tables(
        self, keeper: Keeper, puller: TablePuller, standing: Callable[[], Standing]
    ) -> Iterator[Metric]:
        slave = standing().role is NodeRole.SLAVE
        gauges: tuple[tuple[str, str, Callable[[TableKind], float]], ...] = (
            ("entries", "Entries of a table.", lambda kind: len(keeper.table(kind).entries)),
            ("version", "Counter of a table's version.", lambda kind: keeper.table(kind).version.counter),
            ("version_state", "Epoch of a table's version.", lambda kind: keeper.table(kind).version.state_version),
            ("unsaved", "1 while changes are not on disk.", lambda kind: int(keeper.unsaved(kind))),
            (
                "sync_age_seconds",
                "Slave: since the table was last found, or made, equal to the master's; -1 if never.",
                lambda kind: sync_age(puller, kind) if slave else -1.0,
            ),
            ("sync_problem", "Slave: 1 while a table cannot be copied.", lambda kind: int(kind in puller.problems)),
            ("pending_commits", "Slave: commits that wait for the master.", lambda kind: pending(keeper, kind)),
        )
        for name, text, value in gauges:
            gauge = self._gauge(f"tandem_metadata_{name}", text, "table")
            for kind in TableKind:
                gauge.add_metric(self._values(_label(kind)), value(kind))
            yield gauge
        counters: tuple[tuple[str, str, dict[TableKind, int]], ...] = (
            ("syncs_total", "Slave: tables taken over from the master.", puller.taken_over),
            ("sync_failures_total", "Slave: tables that could not be copied.", puller.failures),
            ("write_failures_total", "Tables that could not be written.", keeper.write_failures),
        )
        for name, text, counts in counters:
            counter = self._counter(f"tandem_metadata_{name}", text, "table")
            for kind in TableKind:
                counter.add_metric(self._values(_label(kind)), counts[kind])
            yield counter
        yield self._one_counter("tandem_metadata_handed_over_total", "Slave: offsets handed over.", puller.handed_over)
        yield self._one_gauge("tandem_metadata_watchers", "Calls of Watch.", len(keeper.hub))
        yield self._one_gauge("tandem_metadata_master", "1 on a master.", int(standing().role is NodeRole.MASTER))


def _label(kind: TableKind) -> str:
    return kind.name.lower()
