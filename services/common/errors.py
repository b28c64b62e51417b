"""The root of all errors that TandemMQ raises on purpose, and the kinds that they are of.

An error says what happened in the domain's own words. What a protocol makes of it stands in one table for each front:
`grpc_status.py` has that of our gRPC services, `store/fronts/native/statuses.py` that of the store.
"""

from enum import Enum, unique
from typing import ClassVar


@unique
class Kind(Enum):
    """What an error is to the caller; the value says it. A closed set: each front's table has all of them."""

    INTERNAL = "A fault of the program"
    UNNAMED = "Nothing but its message says what happened"

    # What is asked for can never be done.
    INVALID = "The request makes no sense as it is"
    MISCONFIGURED = "Settings, or the files that they name, make no sense"
    UNSUPPORTED = "This version cannot do it"
    TOO_LARGE = "The message, or the batch, is larger than may be stored"
    PROPERTIES_TOO_LONG = "The message's properties have no room in a record"

    # Who asks.
    UNAUTHENTICATED = "Nobody knows who the caller is"
    NOT_PERMITTED = "The caller may not do that"

    # What a message is sent to.
    UNKNOWN_TOPIC = "The topic does not exist, and is not created by sending"
    UNKNOWN_QUEUE = "The topic has fewer write queues"
    FORBIDDEN_TOPIC = "Clients may not send to the topic"

    # What is read from.
    NO_SUCH_QUEUE = "Nothing to read from: there is no such topic"
    QUEUE_OUT_OF_RANGE = "The topic has fewer read queues"
    NOT_READABLE = "The topic's permissions do not allow reading"
    NO_MESSAGE = "No message is at that place, or no longer"

    # What is delivered.
    UNKNOWN_GROUP = "The consumer group does not exist, and is not created by using it"
    FORBIDDEN_GROUP = "The consumer group may not consume"
    BAD_FILTER = "The filter expression cannot be understood"
    BAD_INVISIBLE_TIME = "The invisible time is outside its bounds"
    BAD_DELAY = "The delivery time cannot be kept"
    BAD_HANDLE = "The receipt handle is none of this broker, group or topic"
    HANDLE_EXPIRED = "The message was given out again since, or is dealt with"
    UNKNOWN_TRANSACTION = "Nobody knows that transaction"
    TRANSACTION_ENDED = "The transaction has ended the other way"
    NOT_DELIVERING = "This store gives out no messages at present"

    # Things in general.
    NOT_FOUND = "There is no such thing"
    NOT_HERE = "This node does not have that stretch of the log"
    CONFLICT = "There is one already"

    # The state does not allow it.
    NOT_POSSIBLE = "Not in the present state; somebody has to change that first"
    WRONG_ROLE = "A master's or a slave's business, asked of the other"
    IN_USE = "The store's files are taken: by another process, or by work that is under way"
    UNUSABLE = "Files or bytes that a store cannot go on with"

    # It may succeed later.
    STARTING = "Recovery has not finished"
    STOPPING = "The service ends"
    READ_ONLY = "No messages are taken at present"
    REBUILDING = "The queue is being rebuilt"
    FEW_REPLICAS = "Fewer replicas are in sync than are asked for"
    AWAY = "Something that is needed does not answer or cannot be had: a peer, a service, a port"
    EXHAUSTED = "A limit is reached: of memory, streams, threads"

    # The disk and the bytes.
    DISK_FULL = "No room is left"
    DISK_FAILED = "The disk refused; nothing was changed"
    NOT_DURABLE = "The disk refused to make written bytes durable"
    DAMAGED = "Bytes are not what they should be"


class TandemError(Exception):
    """A failure with a kind, a message for people, and what can be done about it.

    Subclasses set the class attributes; the message is the exception's text and must be safe to show to a client.
    """

    kind: ClassVar[Kind] = Kind.INTERNAL

    remedy: str | None = None
    """What the reader can do about it: one sentence, or None. A class attribute or set by the constructor."""

    master_address: str | None = None
    """Of a refusal by who is no master: where clients find the master, empty where that is not known. Else None."""

    def __init__(self, message: str = "", *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if remedy is not None:
            self.remedy = remedy

    def explain(self) -> str:
        """Message and remedy in one line, for a client or a terminal."""
        message = str(self) or type(self).__name__
        return f"{message} ({self.remedy})" if self.remedy else message
