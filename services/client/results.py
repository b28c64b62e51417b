"""What calls give back, where it is more than a message of the contract; and the requests that both clients make."""

from collections.abc import Iterable
from dataclasses import dataclass

from tandemmq.client.encode import Outgoing
from tandemmq.client.records import decode_records
from tandemmq.store.format.record import Record
from tandemmq.store.v1 import store_pb2

FOUND = store_pb2.FOUND


@dataclass(frozen=True, slots=True)
class Pulled:
    """The answer to a pull. `status`: RocketMQ's name of it (`FOUND`, ...); `next_offset`: where to pull next."""

    status: str
    records: list[Record]
    next_offset: int
    min_offset: int
    max_offset: int


@dataclass(frozen=True, slots=True)
class QueueOffsets:
    """One queue. `at_time`: offset of the first message stored at or behind the time that was asked for.

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
    """The answer to a pull, decoded. Raises CorruptRecord."""
    return Pulled(
        status=store_pb2.PullStatus.Name(response.status),
        records=decode_records(response.records, verify=verify),
        next_offset=response.next_begin_offset,
        min_offset=response.min_offset,
        max_offset=response.max_offset,
    )


def readable_end(log: store_pb2.GetLogResponse) -> int:
    """The log offset behind the last record that consumers of a store may see."""
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
