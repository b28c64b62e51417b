"""Reading what clients may see: one record; and what is not there for the moment only."""

from tandemmq.store.format.intact import flaw_of
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.format.sysflag import is_indexed_in_queue
from tandemmq.store.format.unit import is_blank
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue


def read_whole(store: MessageStore, offset: int, size: int | None = None) -> bytes | None:
    """The record that begins at a log offset, of `size` bytes where that is known.

    None if there is none, if it lies in a damaged stretch of the log, or if it may not be seen yet (with SYNC_FLUSH, a
    message that is not on disk; on a synchronous master, one that its replicas do not have).
    """
    end = store.confirm_offset
    if not 0 <= offset < end:
        return None
    record = store.read_record(offset, size)
    if record is None or offset + len(record) > end:
        return None
    if any(known.begin < offset + len(record) and offset < known.end for known in store.damage):
        return None
    return record


def read_intact(store: MessageStore, offset: int, size: int | None = None) -> bytes | None:
    """As `read_whole`, with its checksum compared: None too for what does not fit, which is noted as damage.

    It is noted only where a queue says that a record begins there. Anybody may ask for any offset, and the body of a
    message may hold what looks like a record with a wrong checksum.
    """
    data = read_whole(store, offset, size)
    reason = "" if data is None else flaw_of(data)
    if data is None or not reason:
        return data
    if _is_in_queue(store, data, offset):
        store.note_rot(offset, offset + len(data), reason)
    return None


def _is_in_queue(store: MessageStore, data: bytes, offset: int) -> bool:
    try:
        record = decode_record(data, verify=False)
    except CorruptRecord:
        return False
    queue = store.queue(record.topic, record.queue_id)
    units = [] if queue is None else queue.read(record.queue_offset, 1)
    return bool(units) and (units[0].physical_offset, units[0].size) == (offset, len(data))


def is_damaged(store: MessageStore, offset: int) -> bool:
    """Whether a log offset lies in a stretch that is known as damaged."""
    return any(known.begin <= offset < known.end for known in store.damage)


def has_expired(store: MessageStore, record: Record) -> bool:
    """Whether a record that is in the log still is older than its topic keeps messages."""
    queue = store.queue(record.topic, record.queue_id) if is_indexed_in_queue(record.sys_flag) else None
    return queue is not None and record.queue_offset < queue.kept_from


def may_have_been_lost(store: MessageStore, topic: str, queue_id: int) -> bool:
    """Whether a queue that is not there may only not be rebuilt yet."""
    offsets = store.commit_log.offsets
    return not offsets.all_known or (topic, queue_id) in offsets.uncertain


def is_whole(store: MessageStore, queue: ConsumeQueue) -> bool:
    """Whether a queue is known to have all its messages; not while it is being rebuilt, or compared with the log.

    Its first offset is not final before: a first file that was lost comes back.
    """
    return not (queue.rebuilding or may_have_been_lost(store, queue.topic, queue.queue_id))


def readable_log_end(store: MessageStore) -> int:
    """Log offset after the last record that clients may see, where `confirm_offset` may lie inside one."""
    end, limit = store.dispatched_offset, store.confirm_offset
    if end <= limit:
        return end
    units = (queue.unit(queue.readable_end - 1) for queue in store.queues() if queue.readable_end > queue.min_offset)
    ends = [unit.end for unit in units if unit is not None and not is_blank(unit)]
    return max([store.commit_log.min_offset, *(one for one in ends if one <= limit)])
