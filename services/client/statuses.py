"""RocketMQ's names of what became of a message, and of a pull."""

from enum import StrEnum, unique


@unique
class SendStatus(StrEnum):
    """What became of a message: RocketMQ's PutMessageStatus. With the first four it is stored."""

    PUT_OK = "PUT_OK"
    """As safe as the store was set up to make it."""
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """Not known to be on the disk."""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """Not acknowledged by enough replicas in time."""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """Not enough replicas are connected."""
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"

    @property
    def stored(self) -> bool:
        """Whether the message is in the log, however safe."""
        return self in _STORED


_STORED = frozenset(list(SendStatus)[:4])


@unique
class PulledStatus(StrEnum):
    """The answer to a pull: RocketMQ's GetMessageStatus. All but FOUND come without messages."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    """None of those that were looked at fits the tags; go on at the next offset."""
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    """The queue does not reach as far as the offset."""
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    """Everything has been read."""
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    """Expired: the next offset is the first that there is."""
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    NO_NEW_MESSAGE = "NO_NEW_MESSAGE"
    """A long poll ended without one."""
