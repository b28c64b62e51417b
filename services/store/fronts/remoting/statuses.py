"""What classic clients are told of an error: one table from kinds to response codes.

ConnectedClients act on few of them: a synchronous send is tried again on 1, 14, 16 and 17, a pull on all of them.
"""

from types import MappingProxyType

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.common.wire.remoting.errors import BadField
from tandemmq.common.wire.remoting.versions import V5_0_0

CODES = MappingProxyType(
    {
        Kind.INTERNAL: ResponseCode.SYSTEM_ERROR,
        Kind.UNNAMED: ResponseCode.SYSTEM_ERROR,
        Kind.INVALID: ResponseCode.INVALID_PARAMETER,
        Kind.MISCONFIGURED: ResponseCode.SYSTEM_ERROR,
        Kind.UNSUPPORTED: ResponseCode.INVALID_PARAMETER,
        Kind.TOO_LARGE: ResponseCode.MESSAGE_ILLEGAL,
        Kind.PROPERTIES_TOO_LONG: ResponseCode.MESSAGE_ILLEGAL,
        Kind.UNAUTHENTICATED: ResponseCode.NO_PERMISSION,
        Kind.NOT_PERMITTED: ResponseCode.NO_PERMISSION,
        Kind.UNKNOWN_TOPIC: ResponseCode.TOPIC_NOT_EXIST,
        Kind.UNKNOWN_QUEUE: ResponseCode.INVALID_PARAMETER,
        Kind.FORBIDDEN_TOPIC: ResponseCode.NO_PERMISSION,
        Kind.NO_SUCH_QUEUE: ResponseCode.TOPIC_NOT_EXIST,
        Kind.QUEUE_OUT_OF_RANGE: ResponseCode.INVALID_PARAMETER,
        Kind.NOT_READABLE: ResponseCode.NO_PERMISSION,
        Kind.NO_MESSAGE: ResponseCode.SYSTEM_ERROR,
        Kind.UNKNOWN_GROUP: ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        Kind.FORBIDDEN_GROUP: ResponseCode.NO_PERMISSION,
        Kind.BAD_FILTER: ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        Kind.BAD_INVISIBLE_TIME: ResponseCode.INVALID_PARAMETER,
        Kind.BAD_DELAY: ResponseCode.MESSAGE_ILLEGAL,
        Kind.BAD_HANDLE: ResponseCode.MESSAGE_ILLEGAL,
        Kind.HANDLE_EXPIRED: ResponseCode.MESSAGE_ILLEGAL,
        Kind.UNKNOWN_TRANSACTION: ResponseCode.SYSTEM_ERROR,
        Kind.TRANSACTION_ENDED: ResponseCode.SYSTEM_ERROR,
        Kind.NOT_DELIVERING: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.NOT_FOUND: ResponseCode.SYSTEM_ERROR,
        Kind.NOT_HERE: ResponseCode.SYSTEM_ERROR,
        Kind.CONFLICT: ResponseCode.SYSTEM_ERROR,
        Kind.NOT_POSSIBLE: ResponseCode.SYSTEM_ERROR,
        Kind.WRONG_ROLE: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.IN_USE: ResponseCode.SYSTEM_ERROR,
        Kind.UNUSABLE: ResponseCode.SYSTEM_ERROR,
        Kind.STARTING: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.STOPPING: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.READ_ONLY: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.REBUILDING: ResponseCode.SYSTEM_BUSY,
        Kind.FEW_REPLICAS: ResponseCode.SYSTEM_ERROR,
        Kind.AWAY: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.EXHAUSTED: ResponseCode.SYSTEM_BUSY,
        Kind.DISK_FULL: ResponseCode.SERVICE_NOT_AVAILABLE,
        Kind.DISK_FAILED: ResponseCode.SYSTEM_ERROR,
        Kind.NOT_DURABLE: ResponseCode.SYSTEM_ERROR,
        Kind.DAMAGED: ResponseCode.SYSTEM_ERROR,
    }
)
"""Every kind of error, as a code."""

MOST_REMARK = 1_000
"""Characters of a remark of ours."""


class RemotingRefusal(TandemError):
    """A request breaks a rule of the protocol that has a code of its own."""

    kind = Kind.INVALID

    def __init__(self, code: ResponseCode, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


def code_of(error: TandemError, version: int) -> ResponseCode:
    """What an error is to a client of a version. ConnectedClients before 5.0 know no INVALID_PARAMETER."""
    if isinstance(error, RemotingRefusal):
        return error.code
    if isinstance(error, BadField):
        return ResponseCode.SYSTEM_ERROR
    code = CODES[error.kind]
    if code is ResponseCode.INVALID_PARAMETER and version < V5_0_0:
        return ResponseCode.SYSTEM_ERROR
    return code


def remark_of(error: TandemError) -> str:
    """An error as it is told."""
    return error.explain()[:MOST_REMARK]
