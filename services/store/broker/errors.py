"""What the broker refuses, and how that is told.

::

    TandemError
    └── BrokerError
        ├── BadRequest              a number or text of the request makes no sense
        ├── IllegalMessage          the message breaks a rule
        │   ├── PropertiesTooLong   its properties do not fit
        │   ├── NotSupported        a kind of message that cannot be stored here, or not in a batch
        │   ├── BadDelay            a delivery time beyond the limit, or none at all
        │   ├── ForbiddenTopic      a system topic, or one without write permission
        │   ├── UnknownTopic        the topic does not exist and may not be created
        │   └── UnknownQueue        the topic has fewer queues
        ├── NotReadable             the topic has no read permission
        ├── NoSuchQueue             nothing to read from: the topic, or its queue, does not exist
        │   └── QueueOutOfRange
        ├── MessageNotFound         no message at an offset id
        ├── StoreStarting           recovery has not finished
        ├── StoreStopping           a long poll or a stream ended by the store's own end
        ├── SendFailed              a fault of the program: nothing is acknowledged
        ├── UnreadableTable         a table's file, as topics.json, and its back-up cannot be read
        └── TableNotSaved           the disk refused the new table
"""

from tandemmq.common.errors import Kind, TandemError


class BrokerError(TandemError):
    """Root of the broker's errors."""


class BadRequest(BrokerError):
    """A number or text of the request makes no sense: negative offsets, unreadable ids, empty keys."""

    kind = Kind.INVALID


class IllegalMessage(BrokerError):
    """The message breaks a rule and could never be stored."""

    kind = Kind.INVALID


class SendFailed(BrokerError):
    """A fault of the program, and nobody's choice: the message is not acknowledged, and may have been stored."""


class PropertiesTooLong(IllegalMessage):
    """The properties take more bytes than a record has room for."""

    kind = Kind.PROPERTIES_TOO_LONG


class NotSupported(IllegalMessage):
    """The message asks for something that this store cannot do yet."""

    kind = Kind.UNSUPPORTED


class BadDelay(IllegalMessage):
    """The delivery time cannot be kept: beyond the limit, or no time at all."""

    kind = Kind.BAD_DELAY


class ForbiddenTopic(IllegalMessage):
    """Clients may not send to this topic."""

    kind = Kind.FORBIDDEN_TOPIC


class UnknownTopic(IllegalMessage):
    """The topic does not exist and may not be created by sending to it."""

    kind = Kind.UNKNOWN_TOPIC


class UnknownQueue(IllegalMessage):
    """The topic has fewer write queues."""

    kind = Kind.UNKNOWN_QUEUE


class NotReadable(BrokerError):
    """The topic's permissions do not allow reading."""

    kind = Kind.NOT_READABLE


class NoSuchQueue(BrokerError):
    """There is no such topic."""

    kind = Kind.NO_SUCH_QUEUE


class QueueOutOfRange(NoSuchQueue):
    """The topic has fewer read queues."""

    kind = Kind.QUEUE_OUT_OF_RANGE


class MessageNotFound(BrokerError):
    """No message begins at this offset: expired, never written, or damaged."""

    kind = Kind.NO_MESSAGE


class StoreStarting(BrokerError):
    """The store still recovers; it answers when its health says SERVING."""

    kind = Kind.STARTING


class StoreStopping(BrokerError):
    """The store stops; whoever waits should ask again elsewhere or later."""

    kind = Kind.STOPPING


class UnreadableTable(BrokerError):
    """Neither the table's file nor its back-up can be read. Never treated as an empty table."""

    kind = Kind.UNUSABLE


class TableNotSaved(BrokerError):
    """The disk refused the new table; the old one stands."""

    kind = Kind.DISK_FAILED
