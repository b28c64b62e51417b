"""Copies that the broker makes of a message itself: dead letters, retries, delayed messages that are due, commits.

A copy is not sent, so nothing that is an order to a sending broker may be left in it, or a dead letter would be delayed
again, or become half of a transaction.
"""

from collections.abc import Mapping

from tandemmq.store.format import properties, sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import Record

ORDERS = (
    properties.DELAY,
    "TIMER_DELIVER_MS",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_OUT_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_DEQUEUE_MS",
    "TIMER_ROLL_TIMES",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEL_FLAG",
    properties.TRAN_MSG,
    properties.REAL_TOPIC,
    properties.REAL_QID,
    properties.TRANSACTION_ID,
    properties.POP_CK,
    "POP_CK_OFFSET",
    "1ST_POP_TIME",
    properties.CRC32,
    properties.WAIT,
)
"""Properties that are orders to a sending broker, or of one delivery."""


def internal_copy(
    record: Record,
    topic: str,
    queue_id: int,
    store_host: Host,
    *,
    extra: Mapping[str, str] | None = None,
    remove: tuple[str, ...] = (),
    reconsume_times: int | None = None,
) -> Message:
    """A message with the body, tags, keys and origin of `record`, for `topic`; none of its orders.

    `extra` properties are set last, orders too where they are wanted; those named in `remove` are left out as well. The
    transaction's bits are cleared, those of addresses made anew. Raises IllegalProperty.
    """
    kept = properties.remove(record.properties_bytes, *ORDERS, *remove, *(extra or ()))
    if extra:
        kept = properties.append(kept, extra)
    flags = record.sys_flag & ~sysflag.TRANSACTION_MASK
    return Message(
        topic,
        queue_id,
        record.body,
        kept,
        record.flag,
        sysflag.with_hosts(flags, born_v6=record.born_host.is_v6, store_v6=store_host.is_v6),
        record.born_timestamp,
        record.born_host,
        store_host,
        record.reconsume_times if reconsume_times is None else reconsume_times,
    )
