"""Errors of the log layer.

::

    TandemError
    └── StoreError
        ├── NotWritable             the store refuses to append: why, in words
        │   └── DiskFull            no room for the next file
        ├── QueueNotReady           this queue's next offset is not known yet (a rebuild is under way)
        ├── RecordTooLarge          the record could never fit (trap T3)
        ├── FlushFailed             fdatasync failed: the store is read-only from here on
        ├── StoreLocked             another process owns the directory
        ├── StoreClosed             the store has been shut down
        └── UnusableDirectory       what lies in the directory is not what the settings say
            ├── FileSizeMismatch
            └── ForeignFile
"""

from typing import ClassVar

from tandemmq.common.errors import TandemError


class StoreError(TandemError):
    """Root of the log layer's errors."""


class NotWritable(StoreError):
    """The store takes no messages at present; reads go on."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class DiskFull(NotWritable):
    """No room is left for the next file."""

    grpc_code: ClassVar[str] = "RESOURCE_EXHAUSTED"


class QueueNotReady(StoreError):
    """The next offset of this queue is not known yet, because its consume queue is being rebuilt."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class RecordTooLarge(StoreError):
    """The record, or the batch, is larger than a log file or the configured maximum can hold."""

    grpc_code: ClassVar[str] = "INVALID_ARGUMENT"
    rocketmq_status: ClassVar[str] = "MESSAGE_ILLEGAL"


class FlushFailed(StoreError):
    """The disk refused to make written bytes durable. Never retried: the kernel may have dropped the pages."""

    grpc_code: ClassVar[str] = "DATA_LOSS"
    rocketmq_status: ClassVar[str] = "FLUSH_DISK_TIMEOUT"


class StoreLocked(StoreError):
    """Another process holds the lock of this store directory."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class StoreClosed(StoreError):
    """The store has been shut down."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class UnusableDirectory(StoreError):
    """What lies in the store directory cannot be opened with these settings; nothing was changed."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class FileSizeMismatch(UnusableDirectory):
    """A file has another size than the settings say."""


class ForeignFile(UnusableDirectory):
    """A file lies in the directory that no store puts there."""
