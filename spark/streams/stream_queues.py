"""Following a store over the network: what is new are stretches of its queues.

Offset document, as that of Spark's Kafka source: ``{"topic": {"0": N}}``, for each queue the offset after the last
message that was read. Queues that come into being while the query runs are read from their start. Messages without a
place in a queue (prepared and rolled-back ones), and what the store has marked as damaged, are not sent by it.
"""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tandemmq.client import ClientError, Identity, StoreClient
from tandemmq.client.errors import from_rpc
from tandemmq.client.results import QueueOffsets
from tandemmq.common.errors import Kind
from tandemmq.spark.errors import BadJobOption, SparkJobError
from tandemmq.spark.reading.scan import ScanWanted
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streams.stream_loss import lose
from tandemmq.spark.streams.stream_store import StreamStore, check_master, is_away
from tandemmq.store.v1 import store_pb2

Document = dict[str, Any]
Offsets = dict[tuple[str, int], int]

MESSAGES_PER_TASK = 1 << 17
"""A task reads so many messages, of one queue or of several."""

TASK_PATIENCE_SECONDS = 60.0
"""How long a task waits for a store that is away; then Spark tries the task again."""

_ANSWER_BYTES = 4 << 20
_BATCH_BYTES = 8 << 20
_PAUSE_SECONDS = 0.5
_READ_PERMISSION = 4
_GONE = {
    store_pb2.OFFSET_TOO_SMALL: "they have expired before they were read",
    store_pb2.MESSAGE_WAS_REMOVING: "they have expired while they were read",
    store_pb2.OFFSET_FOUND_NULL: "the store cannot read this part of its consume queue",
}


class QueueRebuilding(SparkJobError):
    """A new query cannot begin in a queue that is being rebuilt."""

    kind = Kind.AWAY


@dataclass(frozen=True, slots=True)
class Span:
    """Queue offsets [begin, end) of one queue."""

    topic: str
    queue_id: int
    begin: int
    end: int


class SpansPartition(InputPartition):
    """The work of one task."""

    value: tuple[Span, ...]


class QueueFollower:
    """Follows the queues of one store."""

    def __init__(self, options: SourceOptions, store: str) -> None:
        """``store``: ``host:port``, as the driver and the tasks can reach it."""
        self._options = options
        self._store = store
        self._link = StreamStore(store)
        self._assigned: dict[tuple[str, int], int] = {}
        """Of each queue the next offset that it will assign, whether or not all before it may be seen."""

    def check(self, document: Document) -> None:
        """Raises BadJobOption if a checkpoint's document is not of this kind."""
        if not all(isinstance(queues, dict) for queues in document.values()):
            raise BadJobOption(
                "The checkpoint is that of a query that read the log's files, not over the network: give it the path, "
                "as before, or another checkpointLocation."
            )

    def initial(self) -> Document:
        """Where a new query begins; for ``startingTimestamp`` where the store's own search says.

        Raises:
            ClientError, QueueRebuilding.
        """
        options = self._options
        listed = self._link.demand(self._listed)
        for (topic, queue_id), known in listed.items():
            if known.rebuilding:  # it has neither begin nor end for the moment
                raise QueueRebuilding(
                    f"Queue {queue_id} of topic {topic} is being rebuilt by the store. Start the query when it is done."
                )
        if options.starting_at_end:
            return _document({place: offsets.max_offset for place, offsets in listed.items()})
        begin = {place: offsets.min_offset for place, offsets in listed.items()}
        if options.starting_timestamp is not None:
            when = options.starting_timestamp
            for topic in {topic for topic, _ in listed}:
                for queue in self._link.demand(partial(_at_time, topic, when)):
                    if queue.at_time is not None and (topic, queue.queue_id) in begin:
                        begin[topic, queue.queue_id] = queue.at_time
        return _document(begin)

    def end(self, *, wait: bool) -> Document | None:
        """After the last messages; None while the store is away. Raises ClientError; without ``wait`` at once."""
        listed = self._link.ask(self._listed) if wait else self._link.demand(self._listed)
        if listed is None:
            return None
        self._assigned = {place: _assigned(offsets) for place, offsets in listed.items()}
        return _document({place: offsets.max_offset for place, offsets in listed.items() if not offsets.rebuilding})

    def after(self, start: Document, end: Document) -> Document:
        """``end``, as it can follow on ``start``. Raises MissingLog if a queue is shorter than it was."""
        before, now = _offsets(start), _offsets(end)
        for place, offset in before.items():
            known = now.setdefault(place, offset)  # one that is rebuilt has no end for the moment
            if known < offset <= self._assigned.get(place, 0):  # a master that has just started waits for its replicas
                now[place] = offset
            elif known < offset:
                lose(
                    self._options.fail_on_data_loss,
                    f"Queue {place[1]} of topic {place[0]} ends at offset {known:,}, and the query has read it up to "
                    f"{offset:,}: the store has lost its last messages, or it is another store.",
                )
        return _document(now)

    def within(self, start: Document, end: Document, messages: int) -> Document:
        """At most so many messages from ``start`` on, but not after ``end``; queues get shares by what they have."""
        before, after = _offsets(start), _offsets(end)
        missing = {place: offset - before.get(place, 0) for place, offset in after.items()}
        missing = {place: count for place, count in missing.items() if count > 0}
        total = sum(missing.values())
        if total <= messages:
            return end
        exact = {place: count * messages / total for place, count in missing.items()}
        shares = {place: math.floor(share) for place, share in exact.items()}
        over = sorted(exact, key=lambda place: (shares[place] - exact[place], place))
        for place in over[: messages - sum(shares.values())]:
            shares[place] += 1
        cut = {place: before.get(place, 0) + share for place, share in shares.items()}
        # What has got no share has the document's old entry, or none yet.
        kept = {place: offset for place, offset in cut.items() if place in before or shares[place]}
        return _document({**before, **{place: at for place, at in after.items() if place not in missing}, **kept})

    def partitions(self, start: Document, end: Document) -> list[SpansPartition]:
        """What is between two documents, in pieces for tasks."""
        before = _offsets(start)
        pieces: list[tuple[Span, ...]] = []
        open_piece: list[Span] = []
        room = MESSAGES_PER_TASK
        for (topic, queue_id), stop in sorted(_offsets(end).items()):
            at = before.get((topic, queue_id), 0)
            while at < stop:
                taken = min(stop - at, room)
                open_piece.append(Span(topic, queue_id, at, at + taken))
                at += taken
                room -= taken
                if not room:
                    pieces.append(tuple(open_piece))
                    open_piece, room = [], MESSAGES_PER_TASK
        if open_piece:
            pieces.append(tuple(open_piece))
        return [SpansPartition(piece) for piece in pieces]

    def read(self, partition: InputPartition, wanted: ScanWanted) -> Iterator[pa.RecordBatch]:
        """The rows of some spans. Raises MissingLog, ClientError."""
        spans: tuple[Span, ...] = partition.value
        with StoreClient(self._store, **Identity.from_environment().at(self._store).arguments()) as client:
            for span in spans:
                yield from self._read_span(client, span, wanted.also(Condition("queue_offset", "<", span.end)))

    def stop(self) -> None:
        """Let go of the store."""
        self._link.close()

    def _listed(self, client: StoreClient) -> dict[tuple[str, int], store_pb2.QueueOffsets]:
        """The queues that are wanted and may be read."""
        topics = self._options.topic
        return {
            (topic.topic, queue.queue_id): queue
            for topic in client.queues().topics
            if (not topics or topic.topic in topics) and _is_readable(topic)
            for queue in topic.queues
        }

    def _read_span(self, client: StoreClient, span: Span, wanted: ScanWanted) -> Iterator[pa.RecordBatch]:
        from tandemmq.spark.reading.range_reading import batches_of_records

        options = self._options
        for records in _gathered(self._answers(client, span)):
            yield from batches_of_records(records, wanted, check_crc=options.check_crc, damaged=options.include_damaged)

    def _answers(self, client: StoreClient, span: Span) -> Iterator[bytes]:
        """The records of a span, through the store's restarts."""
        fail = self._options.fail_on_data_loss
        offset, moved = span.begin, time.monotonic()
        while True:
            trouble: ClientError | None = None
            try:
                check_master(client)
                with closing(_Call(client, span, offset)) as call:
                    for answer in call.answers:
                        if answer.records:
                            yield answer.records
                        following = answer.next_begin_offset
                        if following > offset:
                            if answer.status in _GONE:
                                lose(fail, _missing(span, offset, following, _GONE[answer.status]))
                            offset, moved = following, time.monotonic()
                        if offset >= span.end:
                            return
                queue = client.offsets(span.topic, span.queue_id)[0]
                if not queue.rebuilding and queue.next_offset < span.end:
                    lose(fail, _missing(span, offset, span.end, "the store has lost them, or it is another store"))
                    return
            except grpc.RpcError as error:
                trouble = from_rpc(error)
            except ClientError as error:
                trouble = error
            if trouble is not None and not is_away(trouble):
                raise trouble
            if time.monotonic() - moved > TASK_PATIENCE_SECONDS:
                raise trouble or ClientError(f"{self._store} sends nothing of {_name(span)}.", "UNAVAILABLE")
            time.sleep(_PAUSE_SECONDS)


class _Call:
    """A stream of what a queue has of a span from an offset on; it ends there, or where the queue does."""

    def __init__(self, client: StoreClient, span: Span, offset: int) -> None:
        # The side that asks is closed at once, so the store does not wait for news at the queue's end.
        self._call = client.stub.PullStream(iter([_subscription(span, offset)]))

    @property
    def answers(self) -> Iterator[store_pb2.PullResponse]:
        return iter(self._call)

    def close(self) -> None:
        self._call.cancel()


def _at_time(topic: str, when: int, client: StoreClient) -> list[QueueOffsets]:
    return client.offsets(topic, timestamp_ms=when)


def _is_readable(topic: store_pb2.TopicQueues) -> bool:
    """A topic that is on disk only has no permissions, and can be read."""
    return bool(topic.perm & _READ_PERMISSION) or not (topic.perm or topic.read_queues)


def _subscription(span: Span, offset: int) -> store_pb2.PullStreamRequest:
    return store_pb2.PullStreamRequest(
        subscribe=store_pb2.PullRequest(
            topic=span.topic,
            queue_id=span.queue_id,
            offset=offset,
            max_messages=span.end - offset,
            max_bytes=_ANSWER_BYTES,
            consumer_group="spark",
        ),
        initial_credit=store_pb2.Credit(messages=span.end - offset),
    )


def _gathered(answers: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces."""
    pieces: list[bytes] = []
    size = 0
    for records in answers:
        pieces.append(records)
        size += len(records)
        if size >= _BATCH_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def _name(span: Span) -> str:
    return f"queue {span.queue_id} of topic {span.topic}"


def _missing(span: Span, offset: int, following: int, reason: str) -> str:
    return f"Offsets {offset:,} to {min(following, span.end):,} of {_name(span)} cannot be read: {reason}."


def _offsets(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {(topic, int(queue)): offset for topic, queues in document.items() for queue, offset in queues.items()}


def _document(offsets: Offsets) -> Document:
    """Always in the same order: Spark compares documents as text."""
    document: Document = {}
    for (topic, queue), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(queue)] = offset
    return document


def _assigned(queue: store_pb2.QueueOffsets) -> int:
    return max(queue.next_offset, queue.max_offset)
