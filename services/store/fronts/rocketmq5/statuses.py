"""What official RocketMQ 5 clients are told of an error: one table from kinds to the protocol's codes.

A refusal travels in the answer, whose gRPC status is OK. What has a code of its own and no kind is a `ProtocolRefusal`.
"""

from collections.abc import Iterable
from types import MappingProxyType

from tandemmq.common.errors import Kind, TandemError
from tandemmq.rocketmq5.v2 import resources_pb2 as pb

CODES = MappingProxyType(
    {
        Kind.INTERNAL: pb.INTERNAL_SERVER_ERROR,
        Kind.UNNAMED: pb.INTERNAL_SERVER_ERROR,
        Kind.INVALID: pb.BAD_REQUEST,
        Kind.MISCONFIGURED: pb.INTERNAL_SERVER_ERROR,
        Kind.UNSUPPORTED: pb.UNSUPPORTED,
        Kind.TOO_LARGE: pb.MESSAGE_BODY_TOO_LARGE,
        Kind.PROPERTIES_TOO_LONG: pb.MESSAGE_PROPERTIES_TOO_LARGE,
        Kind.UNAUTHENTICATED: pb.UNAUTHORIZED,
        Kind.NOT_PERMITTED: pb.FORBIDDEN,
        Kind.UNKNOWN_TOPIC: pb.TOPIC_NOT_FOUND,
        Kind.UNKNOWN_QUEUE: pb.BAD_REQUEST,
        Kind.FORBIDDEN_TOPIC: pb.FORBIDDEN,
        Kind.NO_SUCH_QUEUE: pb.TOPIC_NOT_FOUND,
        Kind.QUEUE_OUT_OF_RANGE: pb.BAD_REQUEST,
        Kind.NOT_READABLE: pb.FORBIDDEN,
        Kind.NO_MESSAGE: pb.NOT_FOUND,  # not MESSAGE_NOT_FOUND: some clients take that for success in any answer
        Kind.UNKNOWN_GROUP: pb.CONSUMER_GROUP_NOT_FOUND,
        Kind.FORBIDDEN_GROUP: pb.FORBIDDEN,
        Kind.BAD_FILTER: pb.ILLEGAL_FILTER_EXPRESSION,
        Kind.BAD_INVISIBLE_TIME: pb.ILLEGAL_INVISIBLE_TIME,
        Kind.BAD_DELAY: pb.ILLEGAL_DELIVERY_TIME,
        Kind.BAD_HANDLE: pb.INVALID_RECEIPT_HANDLE,
        Kind.HANDLE_EXPIRED: pb.INVALID_RECEIPT_HANDLE,
        Kind.UNKNOWN_TRANSACTION: pb.INVALID_TRANSACTION_ID,
        Kind.TRANSACTION_ENDED: pb.INVALID_TRANSACTION_ID,
        Kind.NOT_DELIVERING: pb.HA_NOT_AVAILABLE,
        Kind.NOT_FOUND: pb.NOT_FOUND,
        Kind.NOT_HERE: pb.NOT_FOUND,
        Kind.CONFLICT: pb.BAD_REQUEST,
        Kind.NOT_POSSIBLE: pb.PRECONDITION_FAILED,
        Kind.WRONG_ROLE: pb.HA_NOT_AVAILABLE,
        Kind.IN_USE: pb.INTERNAL_SERVER_ERROR,
        Kind.UNUSABLE: pb.INTERNAL_SERVER_ERROR,
        Kind.STARTING: pb.HA_NOT_AVAILABLE,
        Kind.STOPPING: pb.HA_NOT_AVAILABLE,
        Kind.READ_ONLY: pb.TOO_MANY_REQUESTS,
        Kind.REBUILDING: pb.TOO_MANY_REQUESTS,
        Kind.FEW_REPLICAS: pb.HA_NOT_AVAILABLE,
        Kind.AWAY: pb.HA_NOT_AVAILABLE,
        Kind.EXHAUSTED: pb.TOO_MANY_REQUESTS,
        Kind.DISK_FULL: pb.TOO_MANY_REQUESTS,
        Kind.DISK_FAILED: pb.INTERNAL_SERVER_ERROR,
        Kind.NOT_DURABLE: pb.MASTER_PERSISTENCE_TIMEOUT,
        Kind.DAMAGED: pb.INTERNAL_SERVER_ERROR,
    }
)
"""Every kind of error, as a code."""

MOST_TEXT = 1_000
"""Characters of a status' message."""

OK = pb.Status(code=pb.OK, message="OK")
"""Shared: never change it."""


class ProtocolRefusal(TandemError):
    """A request breaks a rule of the protocol that has a code of its own."""

    kind = Kind.INVALID

    def __init__(self, code: pb.Code.ValueType, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


def code_of(error: TandemError) -> pb.Code.ValueType:
    """What an error is in this protocol."""
    return error.code if isinstance(error, ProtocolRefusal) else CODES[error.kind]


def status_of(error: TandemError) -> pb.Status:
    """An error as it is told. Clients show their users the number of the code and the text: so that names the code."""
    code = code_of(error)
    return pb.Status(code=code, message=f"{pb.Code.Name(code)}: {error.explain()}"[:MOST_TEXT])


def joined(each: Iterable[pb.Status]) -> pb.Status:
    """The status over many items: theirs where they agree, else MULTIPLE_RESULTS."""
    found = list(each)
    if len({one.code for one in found}) == 1:
        return found[0]
    return pb.Status(code=pb.MULTIPLE_RESULTS, message="Each entry has a status of its own.")
