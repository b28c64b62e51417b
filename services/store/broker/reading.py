"""Reading what clients may see: one record; and what is not there for the moment only."""

from tandemmq.store.log.message_store import MessageStore


def read_whole(store: MessageStore, offset: int, size: int | None = None) -> bytes | None:
    """The record that begins at a log offset, of `size` bytes where that is known.

    None if there is none, if it lies in a damaged stretch of the log, or if it may not be seen yet (with SYNC_FLUSH, a
    message that is not on disk).
    """
    if not 0 <= offset < store.confirm_offset:
        return None
    record = store.read_record(offset, size)
    if record is None or any(known.begin < offset + len(record) and offset < known.end for known in store.damage):
        return None
    return record


def may_have_been_lost(store: MessageStore, topic: str, queue_id: int) -> bool:
    """Whether a queue that is not there may only not be rebuilt yet."""
    offsets = store.commit_log.offsets
    return not offsets.all_known or (topic, queue_id) in offsets.uncertain
