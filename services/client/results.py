"""What calls give back, where it is more than a message of the contract; and the requests that both clients make."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tandemmq.client.encode import Outgoing
from tandemmq.client.errors import ClientError, DamagedMessage
from tandemmq.client.records import sorted_records
from tandemmq.client.statuses import PulledStatus
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record
from tandemmq.store.v1 import store_pb2

log = logging.getLogger("tandemmq.client")

FOUND = store_pb2.FOUND


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull. `status`: what it has (`FOUND`, ...); `next_offset`: where to pull next.

    `damaged`: messages that are not among the `records`, since their checksum does not fit and the store has them no
    better. Their fields are as they came.
    """

    status: PulledStatus
    records: list[Record]
    next_offset: int
    min_offset: int
    max_offset: int
    damaged: list[Record] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """One queue. `at_time`: offset of the first message stored at or after the time that was asked for.

    `max_offset` is the end that consumers see, `next_offset` what the next message gets: more, where replicas are
    awaited.
    """

    queue_id: int
    min_offset: int
    max_offset: int
    at_time: int | None
    rebuilding: bool
    next_offset: int


def pulled(response: store_pb2.PullResponse, *, verify: bool) -> Pulled:
    """The answer to a pull, decoded. Raises DamagedMessage."""
    records, damaged = sorted_records(response.records, verify=verify)
    return Pulled(
        status=PulledStatus(store_pb2.PullStatus.Name(response.status)),
        records=records,
        next_offset=response.next_begin_offset,
        min_offset=response.min_offset,
        max_offset=response.max_offset,
        damaged=damaged,
    )


def second_look(damaged: Record) -> store_pb2.ViewMessageRequest:
    """Asks for a message that came damaged. A store compares what it shows with its checksum, and notes the damage."""
    return store_pb2.ViewMessageRequest(message_id=encode_offset_id(damaged.store_host, damaged.physical_offset))


def seen_again(damaged: Record, found: Record) -> Record | None:
    """What a second look has found, if it is the same message."""
    same = (found.topic, found.queue_id, found.queue_offset) == (
        damaged.topic,
        damaged.queue_id,
        damaged.queue_offset,
    )
    return found if same else None


def warn_of_damage(damaged: Record, reason: ClientError) -> None:
    """Say that a message is left out. Raises the reason where it will pass: then the answer can be had again."""
    if reason.retriable:
        raise reason
    log.warning(
        "message %d of queue %d of topic %s is damaged and left out: %s",
        damaged.queue_offset,
        damaged.queue_id,
        damaged.topic,
        reason,
    )


def mended(answer: Pulled, looks: Sequence[Record | None]) -> Pulled:
    """The answer with what a second look at each damaged message has found."""
    found = [record for record in looks if record is not None]
    return replace(
        answer,
        records=sorted([*answer.records, *found], key=lambda record: record.queue_offset),
        damaged=[record for record, better in zip(answer.damaged, looks, strict=True) if better is None],
    )


def intact(data: bytes) -> list[Record]:
    """The records of an answer, without those that are damaged, which are warned of. Raises DamagedMessage."""
    records, damaged = sorted_records(data)
    for record in damaged:
        warn_of_damage(record, DamagedMessage("its checksum does not fit"))
    return records


def readable_end(log: store_pb2.GetLogResponse) -> int:
    """The log offset after the last record that consumers of a store may see."""
    return int(log.readable_offset if log.HasField("readable_offset") else log.dispatched_offset)


def queue_offsets(response: store_pb2.GetOffsetsResponse) -> list[QueueOffsets]:
    """The offsets of queues."""
    return [
        QueueOffsets(
            queue.queue_id,
            queue.min_offset,
            queue.max_offset,
            queue.offset_at_time if queue.HasField("offset_at_time") else None,
            queue.rebuilding,
            max(queue.next_offset, queue.max_offset),
        )
        for queue in response.queues
    ]


def send_request(message: Outgoing, no_wait: bool) -> store_pb2.SendRequest:
    """The request for one message."""
    return store_pb2.SendRequest(message=message.to_proto(), no_wait=no_wait)


def batch_request(messages: Iterable[Outgoing], no_wait: bool) -> store_pb2.SendBatchRequest:
    """The request for many messages."""
    return store_pb2.SendBatchRequest(messages=[message.to_proto() for message in messages], no_wait=no_wait)


def pull_request(
    topic: str,
    queue_id: int,
    offset: int,
    max_messages: int,
    max_bytes: int,
    tags: str,
    wait_seconds: float,
    group: str,
) -> store_pb2.PullRequest:
    """The request for messages of a queue."""
    return store_pb2.PullRequest(
        topic=topic,
        queue_id=queue_id,
        offset=offset,
        max_messages=max_messages,
        max_bytes=max_bytes,
        tags=tags,
        wait_ms=round(wait_seconds * 1000),
        consumer_group=group,
    )


def query_request(
    topic: str, key: str | None, unique_key: str | None, begin_ms: int, end_ms: int, most: int
) -> store_pb2.QueryMessageRequest:
    """The request for messages by key. Raises ValueError unless exactly one kind of key is given."""
    if (key is None) == (unique_key is None):
        raise ValueError("give either key or unique_key")
    request = store_pb2.QueryMessageRequest(
        topic=topic, begin_timestamp=begin_ms, end_timestamp=end_ms, max_messages=most
    )
    if key is not None:
        request.key = key
    elif unique_key is not None:
        request.unique_key = unique_key
    return request
