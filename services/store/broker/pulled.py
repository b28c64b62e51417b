"""What a consumer wants of a queue, and what it gets."""

from dataclasses import dataclass
from enum import IntEnum

from tandemmq.store.broker.tags import TagFilter


class PullStatus(IntEnum):
    """RocketMQ's ``GetMessageStatus``; the numbers are those of the contract."""

    FOUND = 1
    NO_MATCHED_MESSAGE = 2
    MESSAGE_WAS_REMOVING = 3
    OFFSET_FOUND_NULL = 4
    OFFSET_OVERFLOW_BADLY = 5
    OFFSET_OVERFLOW_ONE = 6
    OFFSET_TOO_SMALL = 7
    NO_MATCHED_LOGIC_QUEUE = 8
    NO_MESSAGE_IN_QUEUE = 9
    NO_NEW_MESSAGE = 10


NOTHING_YET = frozenset(
    {PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.NO_MATCHED_LOGIC_QUEUE, PullStatus.NO_MESSAGE_IN_QUEUE}
)
"""The statuses that a long poll waits on."""


@dataclass(slots=True)
class Wanted:
    """What a consumer wants of a queue. Nobody changes it; not frozen, as that takes four times as long to make.

    `tag_filter` None: every message. `group`: the consumer group, if it has one.
    """

    topic: str
    queue_id: int
    offset: int
    max_messages: int
    max_bytes: int
    tag_filter: TagFilter | None = None
    group: str = ""


@dataclass(slots=True)
class PullAnswer:
    """What it gets, which nobody changes either: `records` are whole records in queue order, `count` of them."""

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    count: int = 0
    records: bytes = b""
