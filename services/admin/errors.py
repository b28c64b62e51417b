"""What can go wrong in the admin service.

::

    AdminError
    ├── BadRequest          a name, number or combination breaks a rule
    ├── NotFound            no such broker, topic, group, message or job
    │   └── NoSuchNode      no such node
    ├── AlreadyExists       `create_only`, and it exists
    ├── NotPossible         there is no master to take it, or the files of a job are not seen
    │   └── CannotRecord    the log of actions cannot be written, so it was not done
    ├── ServiceAway         a service that is needed does not answer
    ├── NotAnswering        nothing that could answer does
    ├── Stopping            admin is being stopped
    └── Refused             a service refused a call, with its own code
"""

import grpc

from tandemmq.common.errors import TandemError


class AdminError(TandemError):
    """A call cannot be answered."""


class BadRequest(AdminError):
    """A name, number or combination breaks a rule."""

    grpc_code = "INVALID_ARGUMENT"


class NotFound(AdminError):
    """No such broker, topic, group, message or job."""

    grpc_code = "NOT_FOUND"


class NoSuchNode(NotFound):
    """No such node."""


class AlreadyExists(AdminError):
    """It exists, and the caller wanted to create it."""

    grpc_code = "ALREADY_EXISTS"


class NotPossible(AdminError):
    """Not in the state that the cluster is in."""

    grpc_code = "FAILED_PRECONDITION"


class CannotRecord(NotPossible):
    """The log of actions cannot be written: what would have to be in it was not done."""


class ServiceAway(AdminError):
    """A service that is needed does not answer."""

    grpc_code = "UNAVAILABLE"

    def __init__(self, service: str, node: str, address: str, reason: str) -> None:
        super().__init__(
            f"the {service} of node {node} at {address} does not answer: {reason}",
            remedy="is it running? `tandem cluster show` says how all services are",
        )
        self.service = service
        self.reason = reason


class NotAnswering(AdminError):
    """Nothing that could answer does."""

    grpc_code = "UNAVAILABLE"
    remedy = "do the services run? `tandem cluster show` says how they are"


class Stopping(AdminError):
    """Admin is being stopped."""

    grpc_code = "UNAVAILABLE"


class Refused(AdminError):
    """A service refused a call: its code and words go on to the caller."""

    grpc_code = "UNKNOWN"

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.grpc_code = code.name  # type: ignore[misc]  # of this one error
