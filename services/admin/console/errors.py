"""What the console refuses by itself, and gRPC's codes as HTTP statuses.

::

    ConsoleError
    ├── ConsolePortTaken     the console cannot listen where the settings say
    ├── HandlerFailed        a handler ended its call with an error
    └── Refusal              a request is refused before it is a call
        ├── UnreadableRequest no JSON, or not the message that the method takes
        ├── NoSuchPath       nothing is at that path
        ├── WrongType        the body is no application/json
        ├── TooLarge         the body is too large
        ├── ForeignPage      a page of another site may have sent it
        ├── WrongHost        the console has no such name
        ├── TooManyStreams   so many streams are open already
        └── Stopping         the console is about to end
"""

from typing import ClassVar

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.serving.grpc_status import Relayed, status_of

HTTP_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""By the name of a `grpc.StatusCode`, as google.rpc.Code has them; 500 for the others."""


class ConsoleError(TandemError):
    """The console cannot start, or refuses a request."""


class ConsolePortTaken(ConsoleError):
    """The console cannot listen where the settings say."""

    kind = Kind.AWAY
    remedy = "does another server listen there? consolePort says where the console is, consoleEnable=false turns it off"


class RequestRefusal(ConsoleError):
    """A request is refused before it is a call."""

    kind = Kind.INVALID
    http_status: ClassVar[int] = 400


class UnreadableRequest(RequestRefusal):
    """No JSON, or not the message that the method takes."""


class NoSuchPath(RequestRefusal):
    """Nothing is at that path, or not with that HTTP method."""

    kind = Kind.NOT_FOUND
    http_status = 404


class WrongType(RequestRefusal):
    """The body is no application/json."""

    http_status = 415
    remedy = "send the header `content-type: application/json`, and no content-encoding"


class TooLarge(RequestRefusal):
    """The body is too large."""

    kind = Kind.EXHAUSTED
    http_status = 413


class ForeignPage(RequestRefusal):
    """A page of another site may have sent it, in the name of somebody who is signed in here."""

    kind = Kind.NOT_PERMITTED
    http_status = 403
    remedy = "behind a reverse proxy, consoleNames must have the name (and the port) that the browser shows"


class WrongHost(RequestRefusal):
    """The request asks for a name that the console does not have."""

    kind = Kind.NOT_PERMITTED
    http_status = 421
    remedy = "add the name to consoleNames, or use the address"


class TooManyStreams(RequestRefusal):
    """So many streams are open already."""

    kind = Kind.EXHAUSTED
    http_status = 429
    remedy = "close pages of the console that follow a topic"


class ConsoleStopping(RequestRefusal):
    """The console is about to end."""

    kind = Kind.AWAY
    http_status = 503


class HandlerFailed(ConsoleError, Relayed):
    """A handler ended its call with an error."""


def describe(error: TandemError) -> tuple[int, dict[str, str]]:
    """An error as HTTP status and JSON object."""
    code = status_of(error).code
    status = getattr(error, "http_status", None) or HTTP_STATUSES.get(code, 500)
    return status, {"code": code, "message": error.explain()}
