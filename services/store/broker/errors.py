"""What the broker refuses, and how that is told.

::

    TandemError
    └── BrokerError
        ├── BadRequest              a number or text of the request makes no sense
        ├── IllegalMessage          the message breaks a rule
        │   ├── PropertiesTooLong   its properties do not fit
        │   ├── NotSupported        a delayed or transactional message
        │   ├── ForbiddenTopic      a system topic, or one without write permission
        │   ├── UnknownTopic        the topic does not exist and may not be created
        │   └── UnknownQueue        the topic has fewer queues
        ├── NotReadable             the topic has no read permission
        ├── NoSuchQueue             nothing to read from: the topic, or its queue, does not exist
        │   └── QueueOutOfRange
        ├── MessageNotFound         no message at an offset id
        ├── StoreStarting           recovery has not finished
        ├── StoreStopping           a long poll or a stream ended by the store's own end
        └── TopicTableError
            ├── UnreadableTable     topics.json and its back-up cannot be read
            └── TableNotSaved       the disk refused the new table
"""

from typing import ClassVar

from tandemmq.common.errors import TandemError


class BrokerError(TandemError):
    """Root of the broker's errors."""


class BadRequest(BrokerError):
    """A number or text of the request makes no sense: negative offsets, unreadable ids, empty keys."""

    grpc_code: ClassVar[str] = "INVALID_ARGUMENT"
    rocketmq_status: ClassVar[str] = "MESSAGE_ILLEGAL"


class IllegalMessage(BrokerError):
    """The message breaks a rule and could never be stored."""

    grpc_code: ClassVar[str] = "INVALID_ARGUMENT"
    rocketmq_status: ClassVar[str] = "MESSAGE_ILLEGAL"


class PropertiesTooLong(IllegalMessage):
    """The properties take more bytes than a record has room for."""

    rocketmq_status: ClassVar[str] = "PROPERTIES_SIZE_EXCEEDED"


class NotSupported(IllegalMessage):
    """The message asks for something that this store cannot do yet."""

    grpc_code: ClassVar[str] = "UNIMPLEMENTED"


class ForbiddenTopic(IllegalMessage):
    """Clients may not send to this topic."""

    grpc_code: ClassVar[str] = "PERMISSION_DENIED"


class UnknownTopic(IllegalMessage):
    """The topic does not exist and may not be created by sending to it."""

    grpc_code: ClassVar[str] = "NOT_FOUND"


class UnknownQueue(IllegalMessage):
    """The topic has fewer write queues."""

    grpc_code: ClassVar[str] = "OUT_OF_RANGE"


class NotReadable(BrokerError):
    """The topic's permissions do not allow reading."""

    grpc_code: ClassVar[str] = "PERMISSION_DENIED"
    rocketmq_status: ClassVar[str] = "NO_MATCHED_LOGIC_QUEUE"


class NoSuchQueue(BrokerError):
    """There is no such topic."""

    grpc_code: ClassVar[str] = "NOT_FOUND"
    rocketmq_status: ClassVar[str] = "NO_MATCHED_LOGIC_QUEUE"


class QueueOutOfRange(NoSuchQueue):
    """The topic has fewer read queues."""

    grpc_code: ClassVar[str] = "OUT_OF_RANGE"


class MessageNotFound(BrokerError):
    """No message begins at this offset: expired, never written, or damaged."""

    grpc_code: ClassVar[str] = "NOT_FOUND"
    rocketmq_status: ClassVar[str] = "MESSAGE_WAS_REMOVING"


class StoreStarting(BrokerError):
    """The store still recovers; it answers when its health says SERVING."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class StoreStopping(BrokerError):
    """The store stops; whoever waits should ask again elsewhere or later."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class TopicTableError(BrokerError):
    """The topic table cannot be used."""

    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class UnreadableTable(TopicTableError):
    """Neither the table's file nor its back-up can be read. Never treated as an empty table."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"


class TableNotSaved(TopicTableError):
    """The disk refused the new table; the old one stands."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
