"""What the broker says, as messages of the contract."""

from collections.abc import Callable, Iterable

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.common.slices import Slices, each
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.offsets import QueueState, TopicState
from tandemmq.store.broker.pulled import PullAnswer
from tandemmq.store.broker.reading import readable_log_end
from tandemmq.store.broker.send import Ready, SendOutcome, SentAll, SentBatch
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.delivery.delays.recalls import recall_handle
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.log.marks.lock import mark_of
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended
from tandemmq.store.v1 import message_pb2, store_pb2

Append = Callable[[int, bytes], bool]
"""Sends a field of a number after the next answer; False where it must be set in the answer. See `append_field`."""

_APPENDED = 16 << 10
"""Records of so many bytes are not copied into their answer."""
_STATUS_NAMES = frozenset(store_pb2.SendStatus.keys())


def send_response(receipt: Receipt) -> store_pb2.SendResponse:
    """The answer to a send."""
    answer = store_pb2.SendResponse()
    _fill(answer.receipt, *receipt)
    return answer


def _fill(receipt: store_pb2.SendReceipt, ready: Ready, place: Appended, status: PutStatus) -> None:
    """Where a message lies. A receipt filled in its place costs half of one that is made and then copied there."""
    message = ready.message
    physical_offset, _, receipt.queue_offset, receipt.store_timestamp, _ = place
    receipt.status = status  # type: ignore[assignment]  # the same numbers
    receipt.message_id = f"{message.store_host.digits}{physical_offset:016X}"
    receipt.unique_key = ready.unique_key
    receipt.physical_offset = physical_offset
    if ready.half_of < 0 and ready.postponed is None:
        receipt.queue_id = message.queue_id
        return
    receipt.queue_id = ready.queue_id
    if ready.half_of >= 0:
        handle = TransactionHandle(ready.unique_key, place.queue_offset, physical_offset)
        receipt.transaction_handle = str(handle)
    else:
        receipt.recall_handle = recall_handle(ready)


async def receipts(sent: SentAll, status: PutStatus, slices: Slices) -> store_pb2.SendBatchResponse:
    """Where all of a request lies; `status` is that of everything that was stored."""
    answer = store_pb2.SendBatchResponse()
    for one in sent.batches:
        _fill_batch(answer.batch_receipts.add(), one, status)
    add = answer.receipts.add

    def fill(one: SendOutcome) -> None:
        ready, place, failure = one
        if place is not None:
            _fill(add(), ready, place, status)
        else:
            add(
                status=_failed_status(failure),
                unique_key=ready.unique_key,
                queue_id=ready.queue_id,
                reason=_reason(failure),
            )

    await each(fill, sent.messages, slices)
    return answer


def _fill_batch(receipt: store_pb2.BatchReceipt, one: SentBatch, status: PutStatus) -> None:
    """Where an encoded batch lies."""
    place = one.place
    receipt.queue_id = one.batch.queue_id
    if place is None:
        receipt.status, receipt.reason = _failed_status(one.failure), _reason(one.failure)
        return
    receipt.status = status  # type: ignore[assignment]  # the same numbers
    receipt.first_queue_offset = place.first_queue_offset
    receipt.count = place.count
    receipt.store_timestamp = place.store_timestamp
    receipt.message_id = encode_offset_id(one.batch.store_host, place.physical_offsets[0])
    receipt.physical_offsets.extend(place.physical_offsets)


def _failed_status(failure: TandemError | None) -> store_pb2.SendStatus.ValueType:
    name = STATUSES[failure.kind if failure is not None else Kind.INTERNAL].rocketmq
    return store_pb2.SendStatus.Value(name) if name in _STATUS_NAMES else store_pb2.UNKNOWN_ERROR


def _reason(failure: TandemError | None) -> str:
    return "" if failure is None else failure.explain()


def refusal(error: TandemError) -> store_pb2.Refusal:
    """An error inside a stream that goes on."""
    status = STATUSES[error.kind]
    return store_pb2.Refusal(
        code=status.code,
        rocketmq_status=status.rocketmq,
        message=error.explain(),
        kind=error.kind.name,
        master_address=error.master_address,
    )


def pull_response(
    pulled: PullAnswer, form: message_pb2.RecordForm.ValueType, ask_next: int, append: Append
) -> store_pb2.PullResponse:
    """The answer to a pull; `ask_next` is the id of the broker to pull from next.

    `append` is that of its call, which must give this answer next: the records may follow it.
    """
    answer = store_pb2.PullResponse(
        status=int(pulled.status),  # type: ignore[arg-type]
        next_begin_offset=pulled.next_offset,
        min_offset=pulled.min_offset,
        max_offset=pulled.max_offset,
        count=pulled.count,
        suggest_which_broker_id=ask_next,
    )
    if form == message_pb2.DECODED:
        answer.messages.extend(decoded(pulled.records))
    elif len(pulled.records) < _APPENDED or not append(store_pb2.PullResponse.RECORDS_FIELD_NUMBER, pulled.records):
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
        next_offset=state.next_offset,
    )


def topic_queues(state: TopicState, taken_bytes: int | None) -> store_pb2.TopicQueues:
    """A topic with its queues."""
    config = state.config
    return store_pb2.TopicQueues(
        topic=state.topic,
        read_queues=config.read_queues if config is not None else 0,
        write_queues=config.write_queues if config is not None else 0,
        perm=config.perm if config is not None else 0,
        queues=[queue_offsets(queue) for queue in state.queues],
        taken_bytes=taken_bytes,
    )


def log_state(store: MessageStore) -> store_pb2.LogState:
    """The state of the commit log."""
    return store_pb2.LogState(
        min_offset=store.commit_log.min_offset,
        max_offset=store.commit_log.max_offset,
        flushed_offset=store.flushed_offset,
        writable=store.writable,
        not_writable_reason=store.why_not_writable,
        master=store.replica.elsewhere is None,
        damaged=[
            store_pb2.DamagedRange(
                begin_offset=known.begin, end_offset=known.end, reason=f"{known.kind}: {known.reason}"
            )
            for known in store.damage
        ],
    )


def log_files(store: MessageStore, core: str, sends: Distribution) -> store_pb2.GetLogResponse:
    """Where the log and the files derived from it lie, how far they go, how they are cut, and what sends go through."""
    store.catch_up()  # who has an acknowledgement reads up to here, and must find the message
    config = store.config
    return store_pb2.GetLogResponse(
        root=str(config.store_path_root_dir.absolute()),
        min_offset=store.commit_log.min_offset,
        max_offset=store.confirm_offset,
        dispatched_offset=store.dispatched_offset,
        readable_offset=readable_log_end(store),
        file_size=config.mapped_file_size_commit_log,
        consume_queue_file_size=config.mapped_file_size_consume_queue // UNIT_SIZE * UNIT_SIZE,
        index_slots=config.max_hash_slot_num,
        index_entries=config.max_index_num,
        index_enabled=config.message_index_enable,
        delay_levels_ms=config.message_delay_levels,
        state=log_state(store),
        directory_mark=mark_of(config.store_path_root_dir),
        core=core,
        send_times=store_pb2.SendTimes(bounds_ms=sends.bounds, calls=sends.counts, sum_ms=sends.sum),
    )
