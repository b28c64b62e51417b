"""What the store tells Prometheus: RocketMQ 5's names and labels where the notion is the same, `tandem_…` for the rest.

The hot paths only add to plain Python numbers; the text is made when somebody scrapes. A scrape runs on a thread of its
own and may see a number that is one event younger than its neighbour.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import Metric

from tandemmq.common.metrics.distribution import Distribution
from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.broker.hook_calls import HookCounts
from tandemmq.store.delivery_metrics import MOST_SERIES, OTHERS, DeliveryMetrics, is_system
from tandemmq.store.format.audit_result import NAME as AUDIT
from tandemmq.store.format.audit_result import AuditResult

_KIB, _MIB = 1 << 10, 1 << 20
_MESSAGE_SIZES = (_KIB, 4 * _KIB, 512 * _KIB, _MIB, 2 * _MIB, 4 * _MIB)
_APPEND_SECONDS = (1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1, 1.0)
_FLUSH_SECONDS = (
    1e-4,
    2e-4,
    5e-4,
    1e-3,
    2e-3,
    4e-3,
    8e-3,
    1.6e-2,
    3.2e-2,
    6.4e-2,
    0.128,
    0.256,
    0.512,
    1.0,
    2.0,
    4.0,
    8.0,
)
_DISPATCH_SECONDS = (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 1e-1, 1.0)

_LAG_SECONDS = (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 5e-1, 1.0)

_NO_GROUP = "(none)"
"""Of pulls that name no group. Prometheus takes an empty label for none at all."""

_TASKS = ("checkpoint", "dispatch", "flush", "rebuild", "retention", "scrub")
"""Background tasks that can fail. Counters begin at 0, or Prometheus would not see the first failure as an increase."""


SENDS = frozenset({"Send", "SendBatch", "SendMessage", "SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE"})
"""Calls that send messages, by the names that their fronts give them."""

_FINDINGS = ("unit", "index", "message")
"""What may not fit the log: queue units, places of the index; and messages that queues number and the log lacks."""


class _In:
    """What came in for one topic."""

    __slots__ = ("bytes", "messages", "sizes")

    def __init__(self) -> None:
        self.messages = self.bytes = 0
        self.sizes = Distribution(_MESSAGE_SIZES)


class _Out:
    """What went out to one consumer group of a topic."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = self.bytes = 0


class RecoveryProgress(NamedTuple):
    """How far a recovery or rebuild has come, in bytes."""

    done: int
    total: int


class Gauges(NamedTuple):
    """What is read off the store at each scrape; see `StoreMetrics.watch`."""

    flush_behind: int
    dispatch_behind: int
    disk_used: int
    disk_free: int
    disk_limit: float
    oldest_timestamp: int | None
    topics: int
    writable: bool
    damaged_ranges: int
    damaged_bytes: int
    missing_bytes: int
    log_begin: int
    log_end: int
    long_polls: int
    role: str
    epoch: int
    linked: bool
    in_sync: int
    waiting_for_replicas: int
    duplicates: int
    audit: AuditResult | None
    audit_unusable: bool


class StoreMetrics(DeliveryMetrics):
    """All numbers of one store. Also the log layer's `Observer`."""

    def __init__(self, cluster: str, node: str) -> None:
        super().__init__(cluster, "broker", node)
        self._in: dict[str, _In] = {}
        self._out: dict[tuple[str, str], _Out] = {}
        self._append = Distribution(_APPEND_SECONDS)
        self._flush = Distribution(_FLUSH_SECONDS)
        self._dispatch = Distribution(_DISPATCH_SECONDS)
        self._loop_lag = Distribution(_LAG_SECONDS)
        self._flushed_bytes = self._dispatched_messages = 0
        self._progress: dict[str, RecoveryProgress] = {}
        self._failures = dict.fromkeys(_TASKS, 0)
        self._found = dict.fromkeys(_FINDINGS, 0)
        self._scrub, self._scrubs = RecoveryProgress(0, 1), 0
        self._unusable_files: set[str] = set()
        self._repaired_bytes = self._repaired_records = 0
        self._gauges: Callable[[], Gauges] | None = None
        self._hooks: Callable[[], Iterable[tuple[str, str, HookCounts]]] = tuple
        self._core: Callable[[], Mapping[str, int]] | None = None

    def watch_hooks(self, counts: Callable[[], Iterable[tuple[str, str, HookCounts]]]) -> None:
        """Show what hooks do: by hook and method."""
        self._hooks = counts

    def watch_core(self, taken: Callable[[], Mapping[str, int]]) -> None:
        """Show that the compiled core is in use, and how many calls of each kind it has taken."""
        self._core = taken

    def watch(self, gauges: Callable[[], Gauges]) -> None:
        """Ask `gauges` at each scrape, on the scraping thread; before that those metrics are missing."""
        self._gauges = gauges

    # -- told by the service ----------------------------------------------------------------------------------------

    def sent(self, topic: str, messages: int, size: int) -> None:
        """`messages` of `size` bytes together were stored."""
        counts = self._in.get(topic)
        if counts is None:
            if len(self._in) >= MOST_SERIES:
                topic = OTHERS
            counts = self._in.setdefault(topic, _In())
        counts.messages += messages
        counts.bytes += size
        sizes = counts.sizes
        sizes.counts[bisect_left(_MESSAGE_SIZES, size / messages)] += messages
        sizes.sum += size

    def pulled(self, topic: str, group: str, messages: int, size: int) -> None:
        """`messages` of `size` bytes together were given to a consumer group."""
        counts = self._out.get((topic, group))
        if counts is None:
            if len(self._out) >= MOST_SERIES:
                topic = group = OTHERS
            counts = self._out.setdefault((topic, group), _Out())
        counts.messages += messages
        counts.bytes += size

    # -- asked by the native front ------------------------------------------------------------------------------------

    def taken_bytes(self, topic: str) -> int | None:
        """Bytes that were stored for a topic; None where topics are too many to be counted one by one."""
        counts = self._in.get(topic)
        if counts is not None:
            return counts.bytes
        return None if len(self._in) >= MOST_SERIES else 0

    def send_times(self) -> Distribution:
        """How long calls that send took; milliseconds."""
        return self.times_of(SENDS)

    # -- asked by the remoting front (`TrafficCounters`) --------------------------------------------------------------

    def traffic(self) -> list[tuple[str, str | None, int, int]]:
        """Topic, group, messages, bytes; without a group: what was stored."""
        stored = [(topic, None, one.messages, one.bytes) for topic, one in self._in.items()]
        return [*stored, *((topic, group, one.messages, one.bytes) for (topic, group), one in self._out.items())]

    def traffic_of(self, topic: str, group: str | None) -> tuple[int, int]:
        """Messages and bytes of one of them."""
        one = self._in.get(topic) if group is None else self._out.get((topic, group))
        return (0, 0) if one is None else (one.messages, one.bytes)

    # -- told by the log (`tandemmq.store.log.observer.Observer`) ------------------------------------------------------

    def appended(self, seconds: float, messages: int, size: int, calls: int = 1) -> None:
        """Records were copied into the log."""
        times = self._append  # `Distribution.add` in place: once for each send
        times.counts[bisect_left(times.bounds, seconds / calls)] += calls
        times.sum += seconds

    def flushed(self, seconds: float, size: int) -> None:
        """One group commit made bytes durable."""
        self._flush.add(seconds)
        self._flushed_bytes += size

    def dispatched(self, seconds: float, messages: int, size: int) -> None:
        """Records got their consume queue units and index entries."""
        self._dispatch.add(seconds)
        self._dispatched_messages += messages

    def loop_was_late(self, seconds: float) -> None:
        """A timer of the event loop called so much later than it should."""
        self._loop_lag.add(seconds)

    def recovering(self, phase: str, done: int, total: int) -> None:
        """Recovery or a rebuild has come so far."""
        self._progress[phase] = RecoveryProgress(done, total)

    def damaged(self, kind: str, size: int) -> None:
        """A damaged range was found; the gauges say how many there are."""

    def found(self, kind: str, count: int) -> None:
        """Something does not fit the log."""
        self._found[kind] = self._found.get(kind, 0) + count

    def unusable(self, file: str) -> None:
        """The start could not use a file beside the log."""
        self._unusable_files.add(file)

    def repaired(self, records: int, size: int) -> None:
        """A damaged range was put right with a peer's bytes."""
        self._repaired_records += records
        self._repaired_bytes += size

    def scrubbed(self, done: int, total: int) -> None:
        """A scrub has come so far."""
        self._scrub = RecoveryProgress(done, total)
        self._scrubs += done == total

    def failed(self, what: str) -> None:
        """A background task failed."""
        self._failures[what] = self._failures.get(what, 0) + 1

    # -- asked by Prometheus ----------------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """Every metric with its present values."""
        yield from self._collect_traffic()
        yield from self.collect_delivery()
        yield from self.collect_calls()
        yield from self._collect_log()
        yield from self._collect_hooks()
        yield from self._collect_core()
        now = None if self._gauges is None else self._gauges()
        yield self._unusable(now)
        if now is not None:
            yield from self._collect_gauges(now)
            yield from self._collect_audit(now.audit)

    def _collect_traffic(self) -> Iterator[Metric]:
        labels = ("topic", "message_type", "is_system")
        messages = self._counter("rocketmq_messages_in_total", "Messages stored.", *labels)
        size = self._counter("rocketmq_throughput_in_total", "Bytes of records stored.", *labels)
        sizes = self._histogram("rocketmq_message_size", "Size of stored records in bytes.", *labels)
        for topic, counts in list(self._in.items()):
            if topic.startswith(GROUP_TOPICS):  # RocketMQ leaves retry and dead-letter topics out
                continue
            values = self._values(topic, "normal", is_system(topic))
            messages.add_metric(values, counts.messages)
            size.add_metric(values, counts.bytes)
            sizes.add_metric(values, counts.sizes.cumulated(), counts.sizes.sum)
        yield from (messages, size, sizes)
        labels = ("topic", "consumer_group", "is_system")
        messages = self._counter("rocketmq_messages_out_total", "Messages given to consumers.", *labels)
        size = self._counter("rocketmq_throughput_out_total", "Bytes of records given to consumers.", *labels)
        for (topic, group), given in list(self._out.items()):
            values = self._values(topic, group or _NO_GROUP, is_system(topic))
            messages.add_metric(values, given.messages)
            size.add_metric(values, given.bytes)
        yield from (messages, size)

    def _collect_log(self) -> Iterator[Metric]:
        for name, text, times in (
            (
                "append",
                "Time to copy a record or batch into the log; of plain sends the mean of a turn of the event loop, "
                "of which the compiled core times each eighth.",
                self._append,
            ),
            ("flush", "Time of one group commit on disk.", self._flush),
            ("dispatch", "Time to write the queue units and index entries of one group of records.", self._dispatch),
        ):
            histogram = self._histogram(f"tandem_{name}_duration_seconds", text)
            histogram.add_metric(self._values(), times.cumulated(), times.sum)
            yield histogram
        lag = self._histogram(
            "tandem_loop_lag_seconds", "How late the event loop calls: what each send waits for first."
        )
        lag.add_metric(self._values(), self._loop_lag.cumulated(), self._loop_lag.sum)
        yield lag
        yield self._one_counter("tandem_flushed_bytes_total", "Log bytes made durable.", self._flushed_bytes)
        yield self._one_counter("tandem_dispatched_messages_total", "Messages dispatched.", self._dispatched_messages)
        text = "Damaged bytes of the log that were put right with a peer's."
        yield self._one_counter("tandem_repaired_bytes_total", text, self._repaired_bytes)
        text = "Records that can be read again since then."
        yield self._one_counter("tandem_repaired_records_total", text, self._repaired_records)
        failures = self._counter("tandem_background_failures_total", "Background tasks that failed.", "task")
        for task, count in list(self._failures.items()):
            failures.add_metric(self._values(task), count)
        yield failures
        findings = self._counter(
            "tandem_findings_total",
            "What did not fit the log: queue units (unit) and places of the index (index), made anew from it; messages "
            "that a queue numbers and the log does not have, or whose numbers others have (message).",
            "kind",
        )
        for kind, count in list(self._found.items()):
            findings.add_metric(self._values(kind), count)
        yield findings
        scrub = self._gauge(
            "tandem_scrub_progress_ratio", "How much of the log the present scrub has compared with queues and index."
        )
        scrub.add_metric(self._values(), self._scrub.done / self._scrub.total)
        yield scrub
        yield self._one_counter("tandem_scrubs_total", "Scrubs of the whole log that came to their end.", self._scrubs)
        ratio = self._gauge(
            "tandem_recovery_progress_ratio", "How far recovery or a rebuild has come, 0 to 1.", "phase"
        )
        done = self._gauge("tandem_recovery_done_bytes", "Log bytes that recovery or a rebuild has read.", "phase")
        size = self._gauge("tandem_recovery_size_bytes", "Log bytes that it has to read.", "phase")
        for phase, progress in list(self._progress.items()) or [("log", RecoveryProgress(0, 0))]:
            values = self._values(phase)
            ratio.add_metric(values, progress.done / progress.total if progress.total else 1.0)
            done.add_metric(values, progress.done)
            size.add_metric(values, progress.total)
        yield from (ratio, done, size)

    def _collect_hooks(self) -> Iterator[Metric]:
        times = self._histogram("tandem_hook_duration_seconds", "Time of each call of a hook.", "hook", "point")
        text = "Calls in which a hook raised: before_… refused something, after_… was of no consequence."
        failures = self._counter("tandem_hook_failures_total", text, "hook", "point")
        for hook, point, counts in self._hooks():
            times.add_metric(self._values(hook, point), counts.times.cumulated(), counts.times.sum)
            failures.add_metric(self._values(hook, point), counts.failures)
        yield from (times, failures)

    def _collect_core(self) -> Iterator[Metric]:
        text = "1 while plain calls go through the compiled core, 0 while all of them are Python's."
        yield self._one_gauge("tandem_compiled_core", text, float(self._core is not None))
        calls = self._counter("tandem_compiled_calls_total", "Calls that the compiled core has taken.", "call")
        for call, taken in (self._core() if self._core is not None else {"Send": 0}).items():
            calls.add_metric(self._values(call), taken)
        yield calls

    def _unusable(self, now: Gauges | None) -> Metric:
        unusable = self._gauge(
            "tandem_unusable_files",
            f"Files beside the log that the last start could not use, by name; and {AUDIT} while it cannot be used.",
            "file",
        )
        lately = {AUDIT} if now is not None and now.audit_unusable else set()
        for file in sorted(self._unusable_files | lately):
            unusable.add_metric(self._values(file), 1)
        return unusable

    def _collect_audit(self, audit: AuditResult | None) -> Iterator[Metric]:
        """Nothing but the names where no audit is known: 0 faults would say that somebody has looked."""
        findings = self._gauge(
            "tandem_audit_findings",
            "What the last audit of the directory (tandem data audit) found, by kind; fault: whether readers run into "
            "it (true), or it is a note (false). None where it found nothing.",
            "kind",
            "fault",
        )
        made = self._gauge("tandem_audit_timestamp_seconds", "When that audit began, in seconds since 1970.")
        if audit is not None:
            for fault, numbers in (("true", audit.faults), ("false", audit.notes)):
                for kind, number in numbers.items():
                    findings.add_metric(self._values(kind, fault), number)
            made.add_metric(self._values(), audit.made / 1000)
        yield from (findings, made)

    def _collect_gauges(self, now: Gauges) -> Iterator[Metric]:
        name: str
        text: str
        value: float
        storage = {"storage_type": "local", "storage_medium": "disk"}
        reserve = 0 if now.oldest_timestamp is None else max(time.time_ns() // 1_000_000 - now.oldest_timestamp, 0)
        for name, text, value in (
            ("size_bytes", "Used space of the disk that the store is on.", now.disk_used),
            ("flush_behind_bytes", "Log bytes that are not on disk yet.", now.flush_behind),
            ("dispatch_behind_bytes", "Log bytes that have no queue units yet.", now.dispatch_behind),
            ("message_reserve_time_milliseconds", "Age of the oldest message.", reserve),
        ):
            gauge = self._gauge(f"rocketmq_storage_{name}", text, *storage)
            gauge.add_metric(self._values(*storage.values()), value)
            yield gauge
        for name, text, value in (
            ("rocketmq_topic_number", "Topics.", now.topics),
            ("rocketmq_broker_permission", "2 write + 4 read.", 6 if now.writable else 4),
            ("tandem_store_writable", "1 while messages are taken.", int(now.writable)),
            ("tandem_damaged_ranges", "Ranges of the log that are damaged and skipped.", now.damaged_ranges),
            ("tandem_damaged_bytes", "Bytes in those ranges.", now.damaged_bytes),
            ("tandem_missing_log_bytes", "Those of them whose log files are not there.", now.missing_bytes),
            (
                "tandem_log_bytes",
                "Length of the log, from the oldest byte kept to its end.",
                now.log_end - now.log_begin,
            ),
            ("tandem_log_begin_offset", "Physical offset of the oldest byte of the log.", now.log_begin),
            ("tandem_log_end_offset", "Physical offset of the log's end: bytes that it ever had.", now.log_end),
            ("tandem_disk_free_bytes", "Room that is left to the store on its disk.", now.disk_free),
            ("tandem_disk_used_ratio", "Used share of that disk, 0 to 1, as the store's limits mean it.", _used(now)),
            ("tandem_disk_limit_ratio", "From this share on no messages are taken.", now.disk_limit),
            ("tandem_long_polls_waiting", "Pulls that wait for a message.", now.long_polls),
            ("tandem_store_epoch", "Number of the mastership.", now.epoch),
            ("tandem_store_replicator_linked", "1 while a replicator has the link.", int(now.linked)),
            ("tandem_in_sync_replicas", "Slaves in sync, as the replicator says.", now.in_sync),
            ("tandem_sends_waiting_for_replicas", "Sends that wait for slaves.", now.waiting_for_replicas),
        ):
            gauge = self._gauge(name, text)
            gauge.add_metric(self._values(), value)
            yield gauge
        copies = self._counter(
            "tandem_duplicate_messages", "Messages that were not stored, since they had been: see deduplicationWindow."
        )
        copies.add_metric(self._values(), now.duplicates)
        yield copies
        role = self._gauge("tandem_store_role", "1 for the role that the store has.", "role")
        role.add_metric(self._values(now.role), 1)
        yield role


def _used(now: Gauges) -> float:
    """Of what the store could have: blocks that are kept for root do not count."""
    available = now.disk_used + now.disk_free
    return now.disk_used / available if available else 0.0
