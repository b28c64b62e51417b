"""What can go wrong in the admin service.

::

    AdminError
    ├── BadAdminRequest     a name, number or combination breaks a rule
    ├── NotFound            no such broker, topic, group, message or job
    │   └── NoSuchNode      no such node
    ├── AlreadyExists       `create_only`, and it exists
    ├── NotPossible         there is no master to take it, or the files of a job are not seen
    │   └── CannotRecord    the log of actions cannot be written, so it was not done
    ├── ServiceAway         a service that is needed does not answer
    ├── NotAnswering        nothing that could answer does
    ├── Stopping            admin is being stopped
    └── CallRefused         a service refused a call, with its own code
"""

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.serving.grpc_status import Relayed


class AdminError(TandemError):
    """A call cannot be answered."""


class BadAdminRequest(AdminError):
    """A name, number or combination breaks a rule."""

    kind = Kind.INVALID


class NotFound(AdminError):
    """No such broker, topic, group, message or job."""

    kind = Kind.NOT_FOUND


class NoSuchNode(NotFound):
    """No such node."""


class AlreadyExists(AdminError):
    """It exists, and the caller wanted to create it."""

    kind = Kind.CONFLICT


class NotPossible(AdminError):
    """Not in the state that the cluster is in."""

    kind = Kind.NOT_POSSIBLE


class CannotRecord(NotPossible):
    """The log of actions cannot be written: what would have to be in it was not done."""


class ServiceAway(AdminError):
    """A service that is needed does not answer."""

    kind = Kind.AWAY

    def __init__(self, service: str, node: str, address: str, reason: str) -> None:
        super().__init__(
            f"the {service} of node {node} at {address} does not answer: {reason}",
            remedy="is it running? `tandem cluster show` says how all services are",
        )
        self.service = service
        self.reason = reason


class NotAnswering(AdminError):
    """Nothing that could answer does."""

    kind = Kind.AWAY
    remedy = "do the services run? `tandem cluster show` says how they are"


class AdminStopping(AdminError):
    """Admin is being stopped."""

    kind = Kind.AWAY


class CallRefused(AdminError, Relayed):
    """A service refused a call: its code and words go on to the caller."""
