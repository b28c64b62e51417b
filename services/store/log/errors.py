"""Errors of the log layer.

::

    TandemError
    └── StoreError
        ├── NotWritable             the store refuses to append: why, in words
        │   ├── DiskFull            no room for the next file
        │   └── DiskFailed          the disk refused what the store needs in order to open, or to go on
        ├── QueueNotReady           this queue's next offset is not known yet (a rebuild is under way)
        │   └── QueueInDoubt        a part of it does not fit the log, and is being put right
        ├── RecordTooLarge          the record could never fit (trap T3)
        ├── FlushFailed             fdatasync failed: the store is read-only from here on
        ├── StoreLocked             another process owns the directory
        ├── StoreClosed             the store has been shut down
        ├── WrongRole               a master's or slave's business, asked of the other
        ├── NothingMissing          a loss was to be accepted, but there is none
        ├── ForkedLog               replica bytes that do not continue this log
        ├── CorruptReplica          replica bytes that are no records
        ├── AdoptionRefused         rebuilt files cannot be taken over at present
        │   ├── BadStagingName      the name is none of a staging directory
        │   ├── NoStaging           there is no such directory
        │   └── UnusableStaging     what lies in it is not what this store could go on with
        ├── RepairRefused           bytes of a peer that do not mend the log, or no damage where they should go
        └── UnusableDirectory       what lies in the directory is not what the settings say
            ├── LogFilesMissing     the log ends before the place where it is known to have been
            ├── FileSizeMismatch
            └── ForeignFile
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.files.os_errors import cure_of


class StoreError(TandemError):
    """Root of the log layer's errors."""


class NotWritable(StoreError):
    """The store takes no messages at present; reads go on."""

    kind = Kind.READ_ONLY


class DiskFull(NotWritable):
    """No room is left for the next file."""

    kind = Kind.DISK_FULL


class DiskFailed(NotWritable):
    """The disk refused to open, create or map a file; what was asked for has not happened."""

    kind = Kind.DISK_FAILED


def disk_error(error: OSError, what: str) -> NotWritable:
    """The error of ours that says what an ``OSError`` means for the store."""
    where = f" ({error.filename2 or error.filename})" if error.filename else ""
    reason = f"{what}: {error.strerror or error}{where}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "Free disk space, or lower fileReservedTime; the store goes on by itself when there is room."
        return DiskFull(reason, remedy=remedy)
    cure = cure_of(error) or "look at the machine's log for what is wrong with the disk"
    return DiskFailed(reason, remedy=f"{cure[0].upper()}{cure[1:]}.")


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Let an ``OSError`` in the block be the error of ours that says what it means; see `disk_error`."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, what) from error


class QueueNotReady(StoreError):
    """The next offset of this queue is not known yet, because its consume queue is being rebuilt."""

    kind = Kind.REBUILDING


class QueueInDoubt(QueueNotReady):
    """What a queue says at an offset does not fit the log, and is being put right."""


class RecordTooLarge(StoreError):
    """The record, or the batch, is larger than a log file or the configured maximum can hold."""

    kind = Kind.TOO_LARGE


class FlushFailed(StoreError):
    """The disk refused to make written bytes durable. Never retried: the kernel may have dropped the pages."""

    kind = Kind.NOT_DURABLE


class StoreLocked(StoreError):
    """Another process holds the lock of this store directory."""

    kind = Kind.IN_USE


class StoreClosed(StoreError):
    """The store has been shut down."""

    kind = Kind.STOPPING


class WrongRole(StoreError):
    """The store is a master where a slave is needed, or a slave where a master is, or of an older epoch."""

    kind = Kind.WRONG_ROLE


class ForkedLog(StoreError):
    """Bytes from a master that do not begin where this log ends; none of them was taken."""

    kind = Kind.UNUSABLE


class CorruptReplica(StoreError):
    """Bytes from a master that are no whole, right records: changed on the way, or damaged at the master."""

    kind = Kind.DAMAGED

    def __init__(self, message: str, *, whole: int, remedy: str) -> None:
        """``whole``: position in the log file after the last good record."""
        super().__init__(message, remedy=remedy)
        self.whole = whole


class AdoptionRefused(StoreError):
    """Rebuilt files are not taken over: another rebuild is under way. The present files stay in use."""

    kind = Kind.IN_USE


class BadStagingName(AdoptionRefused):
    """The name is not that of a staging directory."""

    kind = Kind.INVALID


class NoStaging(AdoptionRefused):
    """There is no directory of that name in the store's."""

    kind = Kind.NOT_FOUND


class UnusableStaging(AdoptionRefused):
    """The files of a staging directory are not whole, or do not belong to this store's log and settings."""

    kind = Kind.UNUSABLE


class RepairRefused(StoreError):
    """A damaged stretch of the log is not repaired, with these bytes or at present; it counts as damaged still."""

    kind = Kind.UNUSABLE


class UnusableDirectory(StoreError):
    """What lies in the store directory cannot be opened with these settings; nothing was changed."""

    kind = Kind.UNUSABLE


class LogFilesMissing(UnusableDirectory):
    """The newest files of the commit log are gone: to go on would give their queue offsets out again."""


class NothingMissing(StoreError):
    """A loss was to be accepted, but there is none; nothing was changed."""

    kind = Kind.NOT_POSSIBLE


class FileSizeMismatch(UnusableDirectory):
    """A file has another size than the settings say."""


class ForeignFile(UnusableDirectory):
    """A file lies in the directory that no store puts there."""


class MisplacedDirectory(ForeignFile):
    """A directory has the name of a file of the store, which can be neither read nor made."""
