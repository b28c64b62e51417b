"""What the broker says, as messages of the contract."""

from collections.abc import Iterable

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.offsets import QueueState, TopicState
from tandemmq.store.broker.pull import Pulled
from tandemmq.store.broker.send import Ready, Sent, SentAll, SentBatch
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.log.commit_log import Appended
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.v1 import message_pb2, store_pb2

PUT_OK = store_pb2.PUT_OK
FLUSH_DISK_TIMEOUT = store_pb2.FLUSH_DISK_TIMEOUT

_STATUS_NAMES = frozenset(store_pb2.SendStatus.keys())


def receipt(ready: Ready, place: Appended, status: store_pb2.SendStatus.ValueType) -> store_pb2.SendReceipt:
    """Where a message lies."""
    return store_pb2.SendReceipt(
        status=status,
        message_id=encode_offset_id(ready.message.store_host, place.physical_offset),
        unique_key=ready.unique_key,
        queue_id=ready.message.queue_id,
        queue_offset=place.queue_offset,
        physical_offset=place.physical_offset,
        store_timestamp=place.store_timestamp,
    )


def receipts(sent: SentAll, status: store_pb2.SendStatus.ValueType) -> store_pb2.SendBatchResponse:
    """Where all of a request lies; `status` is that of everything that was stored."""
    return store_pb2.SendBatchResponse(
        receipts=[_receipt(one, status) for one in sent.messages],
        batch_receipts=[_batch_receipt(one, status) for one in sent.batches],
    )


def _receipt(one: Sent, status: store_pb2.SendStatus.ValueType) -> store_pb2.SendReceipt:
    if one.place is not None:
        return receipt(one.ready, one.place, status)
    message = one.ready.message
    return store_pb2.SendReceipt(
        status=_failed_status(one.failure),
        unique_key=one.ready.unique_key,
        queue_id=message.queue_id,
        reason=_reason(one.failure),
    )


def _batch_receipt(one: SentBatch, status: store_pb2.SendStatus.ValueType) -> store_pb2.BatchReceipt:
    place = one.place
    if place is None:
        return store_pb2.BatchReceipt(
            status=_failed_status(one.failure), queue_id=one.batch.queue_id, reason=_reason(one.failure)
        )
    return store_pb2.BatchReceipt(
        status=status,
        queue_id=one.batch.queue_id,
        first_queue_offset=place.first_queue_offset,
        count=place.count,
        store_timestamp=place.store_timestamp,
        message_id=encode_offset_id(one.batch.store_host, int(place.physical_offsets[0])),
        physical_offsets=place.physical_offsets,
    )


def _failed_status(failure: TandemError | None) -> store_pb2.SendStatus.ValueType:
    name = failure.rocketmq_status if failure is not None else "UNKNOWN_ERROR"
    return store_pb2.SendStatus.Value(name) if name in _STATUS_NAMES else store_pb2.UNKNOWN_ERROR


def _reason(failure: TandemError | None) -> str:
    return "" if failure is None else failure.explain()


def refusal(error: TandemError) -> store_pb2.Refusal:
    """An error inside a stream that goes on."""
    return store_pb2.Refusal(code=error.grpc_code, rocketmq_status=error.rocketmq_status, message=error.explain())


def pull_response(pulled: Pulled, form: message_pb2.RecordForm.ValueType) -> store_pb2.PullResponse:
    """The answer to a pull."""
    answer = store_pb2.PullResponse(
        status=int(pulled.status),  # type: ignore[arg-type]
        next_begin_offset=pulled.next_offset,
        min_offset=pulled.min_offset,
        max_offset=pulled.max_offset,
        count=pulled.count,
    )
    if form == message_pb2.DECODED:
        answer.messages.extend(decoded(pulled.records))
    elif pulled.count:
        answer.records = pulled.records
    return answer


def decoded(records: bytes) -> Iterable[message_pb2.StoredMessage]:
    """Concatenated records as messages."""
    at = 0
    while at < len(records):
        record = decode_record(records, at, verify=False)
        yield stored_message(record)
        at += record.size


def stored_message(record: Record) -> message_pb2.StoredMessage:
    """A record as a message."""
    return message_pb2.StoredMessage(
        topic=record.topic,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        record_size=record.size,
        message_id=encode_offset_id(record.store_host, record.physical_offset),
        unique_key=record.unique_key or "",
        tag=record.tags or "",
        keys=record.keys,
        body=record.body,
        properties=record.properties,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=str(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=str(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        body_crc=record.body_crc,
    )


def queue_offsets(state: QueueState) -> store_pb2.QueueOffsets:
    """The offsets of a queue."""
    return store_pb2.QueueOffsets(
        queue_id=state.queue_id,
        min_offset=state.min_offset,
        max_offset=state.max_offset,
        offset_at_time=state.at_time,
        rebuilding=state.rebuilding,
    )


def topic_queues(state: TopicState) -> store_pb2.TopicQueues:
    """A topic with its queues."""
    config = state.config
    return store_pb2.TopicQueues(
        topic=state.topic,
        read_queues=config.read_queues if config is not None else 0,
        write_queues=config.write_queues if config is not None else 0,
        perm=config.perm if config is not None else 0,
        queues=[queue_offsets(queue) for queue in state.queues],
    )


def log_state(store: MessageStore) -> store_pb2.LogState:
    """The state of the commit log."""
    return store_pb2.LogState(
        min_offset=store.commit_log.min_offset,
        max_offset=store.commit_log.max_offset,
        flushed_offset=store.flushed_offset,
        writable=store.writable,
        not_writable_reason=store.why_not_writable,
        damaged=[
            store_pb2.DamagedRange(
                begin_offset=known.begin, end_offset=known.end, reason=f"{known.kind}: {known.reason}"
            )
            for known in store.damage
        ],
    )
