"""What the metadata service refuses, and how that is told.

::

    TandemError
    └── MetasyncError
        ├── BadTableRequest      a name, number or text breaks a rule
        ├── SystemTopic          only brokers change it
        ├── NotTheMaster         a slave, or a master that was fenced
        ├── DocumentNotSaved     the disk refused the new table
        ├── UnreadableDocument   a table's file and its back-up cannot be read
        ├── DirectoryInUse       another metasync keeps its tables there
        ├── MetasyncStopping     a watch ended by the service's own end
        └── SyncFailed           a slave could not take over a table
            ├── MasterAway       the master cannot be reached, or said something else than expected
            └── StaleMaster      the master's table is older than ours
"""

from tandemmq.common.errors import Kind, TandemError


class MetasyncError(TandemError):
    """Root of the metadata service's errors."""


class BadTableRequest(MetasyncError):
    """A name, number or text of the request breaks a rule; nothing was done."""

    kind = Kind.INVALID


class SystemTopic(MetasyncError):
    """The topic is one that only brokers change or delete."""

    kind = Kind.NOT_PERMITTED


class NotTheMaster(MetasyncError):
    """This node is not the one to be asked for changes."""

    kind = Kind.WRONG_ROLE

    def __init__(self, message: str, master_address: str) -> None:
        """`master_address`: where the master's metasync is; empty where this node's settings do not say it."""
        at = f" at {master_address}" if master_address else ""
        super().__init__(message, remedy=f"Make the change on the master{at}.")
        self.master_address = master_address


class DocumentNotSaved(MetasyncError):
    """The disk refused the new table; the old one stands, in memory too."""

    kind = Kind.DISK_FAILED


class UnreadableDocument(MetasyncError):
    """Neither a table's file nor its back-up can be read. Never treated as an empty table."""

    kind = Kind.NOT_POSSIBLE


class DirectoryInUse(MetasyncError):
    """Another metadata service keeps its tables in this directory."""

    kind = Kind.NOT_POSSIBLE


class MetasyncStopping(MetasyncError):
    """The service stops; whoever watches should go elsewhere or come again."""

    kind = Kind.STOPPING


class SyncFailed(MetasyncError):
    """A slave could not take over a table; its own stands."""

    kind = Kind.AWAY


class MasterAway(SyncFailed):
    """The master cannot be reached, or said something else than expected."""


class StaleMaster(SyncFailed):
    """The master's table is older than ours: taking it would bring back what was changed since."""
