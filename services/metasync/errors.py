"""What the metadata service refuses, and how that is told.

::

    TandemError
    └── MetasyncError
        ├── BadRequest           a name, number or text breaks a rule
        ├── SystemTopic          only brokers change it
        ├── NotMaster            a slave, or a master that was fenced
        ├── TableNotSaved        the disk refused the new table
        ├── UnreadableTable      a table's file and its back-up cannot be read
        ├── DirectoryInUse       another metasync keeps its tables there
        ├── MetasyncStopping     a watch ended by the service's own end
        └── SyncFailed           a slave could not take over a table
            ├── MasterAway       the master cannot be reached, or said something else than expected
            ├── HalfTable        a transfer ended before it was complete
            └── StaleMaster      the master's table is older than ours
"""

from typing import ClassVar

from tandemmq.common.errors import TandemError


class MetasyncError(TandemError):
    """Root of the metadata service's errors."""


class BadRequest(MetasyncError):
    """A name, number or text of the request breaks a rule; nothing was done."""

    grpc_code: ClassVar[str] = "INVALID_ARGUMENT"


class SystemTopic(MetasyncError):
    """The topic is one that only brokers change or delete."""

    grpc_code: ClassVar[str] = "PERMISSION_DENIED"


class NotMaster(MetasyncError):
    """This node is not the one to be asked for changes."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class TableNotSaved(MetasyncError):
    """The disk refused the new table; the old one stands, in memory too."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class UnreadableTable(MetasyncError):
    """Neither a table's file nor its back-up can be read. Never treated as an empty table."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"


class DirectoryInUse(MetasyncError):
    """Another metadata service keeps its tables in this directory."""

    grpc_code: ClassVar[str] = "FAILED_PRECONDITION"


class MetasyncStopping(MetasyncError):
    """The service stops; whoever watches should go elsewhere or come again."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"
    rocketmq_status: ClassVar[str] = "SERVICE_NOT_AVAILABLE"


class SyncFailed(MetasyncError):
    """A slave could not take over a table; its own stands."""

    grpc_code: ClassVar[str] = "UNAVAILABLE"


class MasterAway(SyncFailed):
    """The master cannot be reached, or said something else than expected."""


class HalfTable(SyncFailed):
    """A transfer ended before it was complete, or its parts do not fit together."""


class StaleMaster(SyncFailed):
    """The master's table is older than ours: taking it would bring back what was changed since."""
