"""What a round of collecting says for the hour's history: counters and gauges by series."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tandemmq.admin.books.books import Book
from tandemmq.admin.history.history import CountedPart, SeriesName
from tandemmq.admin.history.send_latency import SendTimesKeeper
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.slices import Slices


class HistoryReadings(NamedTuple):
    """Of one round; see HourHistory.note."""

    counters: Mapping[CountedPart, float]
    gauges: Mapping[SeriesName, float]


async def read_history(
    nodes: Iterable[admin_pb2.Node],
    books: Sequence[Book],
    lags: Mapping[str, int],
    waits: Mapping[str, int],
    sends: SendTimesKeeper,
    slices: Slices,
) -> HistoryReadings:
    """`lags`: messages that groups have not consumed; `waits`: ms that the oldest of them waits, of some groups.

    `sends` knows what the stores counted in the round before.
    """
    counters: dict[CountedPart, float] = {}
    gauges: dict[SeriesName, float] = {}
    for node in nodes:
        _read_node(node, counters, gauges)
        _read_sends(node, sends, gauges)
    for book in books:
        await _read_topics(book, counters, slices)
        await _read_groups(book, counters, slices)
    gauges |= {SeriesName("group", group, "lag"): messages for group, messages in lags.items()}
    gauges |= {SeriesName("group", group, "waits"): ms for group, ms in waits.items()}
    return HistoryReadings(counters, gauges)


def _read_node(node: admin_pb2.Node, counters: dict[CountedPart, float], gauges: dict[SeriesName, float]) -> None:
    if node.HasField("log"):
        counters[CountedPart(SeriesName("node", node.name, "bytes_in"), "")] = node.log.max_offset
    if node.HasField("disk"):
        gauges[SeriesName("node", node.name, "disk_used")] = node.disk.total_bytes - node.disk.free_bytes
    if node.HasField("replication") and node.replication.replicas:
        slowest = max(node.replication.replicas, key=lambda one: (one.lag_bytes, one.ack_age_seconds))
        gauges[SeriesName("node", node.name, "replication_lag")] = slowest.lag_bytes
        silence = max(one.silent_seconds for one in node.replication.replicas)
        gauges[SeriesName("node", node.name, "replication_silence")] = silence


def _read_sends(node: admin_pb2.Node, sends: SendTimesKeeper, gauges: dict[SeriesName, float]) -> None:
    if not node.files.HasField("send_times"):
        return
    latency = sends.since_last(node.name, node.files.send_times)
    if latency is not None:
        gauges[SeriesName("node", node.name, "send_mean")] = latency.mean
        gauges[SeriesName("node", node.name, "send_slowest")] = latency.slowest


async def _read_topics(book: Book, counters: dict[CountedPart, float], slices: Slices) -> None:
    """Ends of queues that are being rebuilt do not count: nobody knows them yet."""
    if book.ends is None or book.store is None:
        return
    whole = 0
    rebuilding = []
    part = f"{book.broker}, {book.store.name}"  # a slave that stands in for its master may have less
    for topic in list(book.ends.topics):
        queues = book.ends.queues(topic).values()
        if any(queue.rebuilding for queue in queues):
            rebuilding.append(topic)
        else:
            written = sum(queue.high for queue in queues)
            counters[CountedPart(SeriesName("topic", topic, "messages_in"), part)] = written
            whole += written
        told = book.ends.topics[topic]
        if told.HasField("taken_bytes"):
            counters[CountedPart(SeriesName("topic", topic, "bytes_in"), part)] = told.taken_bytes
        await slices.pause()
    counters[CountedPart(SeriesName("node", book.store.name, "messages_in"), f"without {rebuilding}")] = whole


async def _read_groups(book: Book, counters: dict[CountedPart, float], slices: Slices) -> None:
    """Where a group begins to consume a queue, nobody knows what it has consumed of it since the last round."""
    if book.tables is None:
        return
    for group, topics in list(book.tables.offsets.items()):
        part = f"{book.broker}, {sum(map(len, topics.values()))} queues"
        consumed = sum(sum(offsets.values()) for offsets in topics.values())
        counters[CountedPart(SeriesName("group", group, "consumed"), part)] = consumed
        await slices.pause()
