"""Reading one record, as far as clients may see it."""

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
