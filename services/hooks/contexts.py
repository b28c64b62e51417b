"""What a hook is told: plain values. What is written into a context changes nothing but what later hooks read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple


@dataclass(kw_only=True)
class HookContext:
    """What all contexts have."""

    failure: BaseException | None = None
    """Afterwards: why it was not done. None: it was."""
    notes: dict[str, object] = field(default_factory=dict)
    """For the hooks themselves: what they write before is there after."""


@dataclass(kw_only=True)
class SendContext(HookContext):
    """A message on its way into the log."""

    topic: str
    properties: Mapping[str, str]
    """As the client gave them, RocketMQ's own names included: TAGS, KEYS, UNIQ_KEY, DELAY, PGROUP…"""
    body: bytes
    born_host: str
    """The client, address:port."""
    queue_id: int
    """Before: the queue asked for, -1 for any. Afterwards: where consumers find it."""
    message_id: str = ""
    """UNIQ_KEY. Before: empty where the client has made none. Of a message of a batch: of that alone."""
    queue_offset: int = -1
    log_offset: int = -1
    """Afterwards: where it begins in the log. -1: it is not stored."""
    status: str = ""
    """Afterwards: RocketMQ's PUT_OK, FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE."""


class DeliveredMessage(NamedTuple):
    """A message that a consumer is given."""

    topic: str
    queue_id: int
    queue_offset: int
    log_offset: int
    message_id: str
    """UNIQ_KEY."""
    body_size: int
    attempt: int
    """How often it has been given out, this time included; 0 in a pull, where nobody counts."""


@dataclass(kw_only=True)
class DeliveryContext(HookContext):
    """A consumer's call for messages."""

    topic: str
    group: str
    """Empty for a pull that names none."""
    queue_id: int
    """-1: any."""
    client_id: str = ""
    """Where the protocol says it."""
    pulls: bool = False
    """Whether the consumer keeps its own offset; else it acknowledges each message."""
    read: Callable[[], Sequence[DeliveredMessage]] = tuple

    @cached_property
    def messages(self) -> Sequence[DeliveredMessage]:
        """Afterwards: what it is given; read from the records when it is asked for."""
        return self.read()


class ConsumerSays(Enum):
    """What a consumer says of messages."""

    DONE = "done"
    """It has dealt with the message."""
    DONE_BELOW = "done below"
    """It has dealt with all messages of the queue below the offset (consumers that pull commit)."""
    LATER = "later"
    """It wants the message again, after some time."""
    NEVER = "never"
    """The message belongs to the dead letters."""


@dataclass(kw_only=True)
class AcknowledgementContext(HookContext):
    """A consumer's word of a message, or of a queue."""

    topic: str
    """Empty where the consumer does not say it: a message that is sent back (LATER) is named by its log offset."""
    group: str
    says: ConsumerSays
    queue_id: int = -1
    queue_offset: int = -1
    log_offset: int = -1
    """Of a message that is sent back."""
    handle: str = ""
    """The receipt handle, where there is one."""
