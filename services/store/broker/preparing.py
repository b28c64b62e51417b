"""What becomes of a message that is not to be delivered as soon as it is stored. No I/O.

A half message is stored in a topic of the broker's own, with its real topic and queue among its properties, until its
producer says how the transaction has ended. RocketMQ: ``TransactionalMessageBridge.parseHalfMessageInner``.
"""

from collections.abc import Mapping

from tandemmq.common import topic_names
from tandemmq.store.format import properties as names

HALF_TOPIC = topic_names.HALF
HALF_QUEUE = 0

_NOT_OF_A_HALF = (
    names.DELAY,
    names.TIMER_DELIVER_MS,
    names.TIMER_DELAY_MS,
    names.TIMER_DELAY_SEC,
    names.TIMER_OUT_MS,
    names.TRANSACTION_CHECK_TIMES,
    names.TRAN_PREPARED_QUEUE_OFFSET,
)
"""What would have a half message delayed, or says what only the broker says."""


def is_half(given: Mapping[str, str], reconsume_times: int) -> bool:
    """Whether a message begins a transaction. One that was consumed and comes back does not, whatever it says."""
    return not reconsume_times and given.get(names.TRAN_MSG, "").strip().lower() == "true"


def make_half(given: dict[str, str], topic: str, queue_id: int, unique_key: str) -> None:
    """Turn the properties of a message into those of its half message."""
    for name in _NOT_OF_A_HALF:
        given.pop(name, None)
    given[names.TRAN_MSG] = "true"
    given[names.TRANSACTION_ID] = unique_key
    given[names.REAL_TOPIC] = topic
    given[names.REAL_QID] = str(queue_id)
