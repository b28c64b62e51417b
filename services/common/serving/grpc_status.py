"""Errors as gRPC statuses: one table for all services of ours but the store, which has its own.

With the gRPC code goes a RocketMQ status, as trailing metadata `rocketmq-status`. RocketMQ's names are for messages:
here it is UNKNOWN_ERROR but where the service, or its disk, is not available.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tandemmq.common.errors import Kind, TandemError


class GrpcStatus(NamedTuple):
    """How an error is told over gRPC, by names."""

    code: str
    """Of a `grpc.StatusCode`."""
    rocketmq: str = "UNKNOWN_ERROR"
    """Of a RocketMQ `PutMessageStatus` or `GetMessageStatus`."""


StatusTable = Mapping[Kind, GrpcStatus]

UNAVAILABLE = "SERVICE_NOT_AVAILABLE"

STATUSES: StatusTable = MappingProxyType(
    {
        Kind.INTERNAL: GrpcStatus("INTERNAL"),
        Kind.UNNAMED: GrpcStatus("UNKNOWN"),
        Kind.INVALID: GrpcStatus("INVALID_ARGUMENT"),
        Kind.MISCONFIGURED: GrpcStatus("INVALID_ARGUMENT"),
        Kind.UNSUPPORTED: GrpcStatus("UNIMPLEMENTED"),
        Kind.TOO_LARGE: GrpcStatus("INVALID_ARGUMENT"),
        Kind.PROPERTIES_TOO_LONG: GrpcStatus("INVALID_ARGUMENT"),
        Kind.UNAUTHENTICATED: GrpcStatus("UNAUTHENTICATED"),
        Kind.NOT_PERMITTED: GrpcStatus("PERMISSION_DENIED"),
        Kind.UNKNOWN_TOPIC: GrpcStatus("NOT_FOUND"),
        Kind.UNKNOWN_QUEUE: GrpcStatus("OUT_OF_RANGE"),
        Kind.FORBIDDEN_TOPIC: GrpcStatus("PERMISSION_DENIED"),
        Kind.NO_SUCH_QUEUE: GrpcStatus("NOT_FOUND"),
        Kind.QUEUE_OUT_OF_RANGE: GrpcStatus("OUT_OF_RANGE"),
        Kind.NOT_READABLE: GrpcStatus("PERMISSION_DENIED"),
        Kind.NO_MESSAGE: GrpcStatus("NOT_FOUND"),
        Kind.UNKNOWN_GROUP: GrpcStatus("NOT_FOUND"),
        Kind.FORBIDDEN_GROUP: GrpcStatus("PERMISSION_DENIED"),
        Kind.BAD_FILTER: GrpcStatus("INVALID_ARGUMENT"),
        Kind.BAD_INVISIBLE_TIME: GrpcStatus("INVALID_ARGUMENT"),
        Kind.BAD_DELAY: GrpcStatus("INVALID_ARGUMENT"),
        Kind.BAD_HANDLE: GrpcStatus("INVALID_ARGUMENT"),
        Kind.HANDLE_EXPIRED: GrpcStatus("FAILED_PRECONDITION"),
        Kind.UNKNOWN_TRANSACTION: GrpcStatus("NOT_FOUND"),
        Kind.TRANSACTION_ENDED: GrpcStatus("FAILED_PRECONDITION"),
        Kind.NOT_DELIVERING: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.NOT_FOUND: GrpcStatus("NOT_FOUND"),
        Kind.NOT_HERE: GrpcStatus("OUT_OF_RANGE"),
        Kind.CONFLICT: GrpcStatus("ALREADY_EXISTS"),
        Kind.NOT_POSSIBLE: GrpcStatus("FAILED_PRECONDITION"),
        Kind.WRONG_ROLE: GrpcStatus("FAILED_PRECONDITION", UNAVAILABLE),
        Kind.IN_USE: GrpcStatus("FAILED_PRECONDITION", UNAVAILABLE),
        Kind.UNUSABLE: GrpcStatus("FAILED_PRECONDITION", UNAVAILABLE),
        Kind.STARTING: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.STOPPING: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.READ_ONLY: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.REBUILDING: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.FEW_REPLICAS: GrpcStatus("UNAVAILABLE"),
        Kind.AWAY: GrpcStatus("UNAVAILABLE"),
        Kind.EXHAUSTED: GrpcStatus("RESOURCE_EXHAUSTED"),
        Kind.DISK_FULL: GrpcStatus("RESOURCE_EXHAUSTED", UNAVAILABLE),
        Kind.DISK_FAILED: GrpcStatus("UNAVAILABLE", UNAVAILABLE),
        Kind.NOT_DURABLE: GrpcStatus("DATA_LOSS", "FLUSH_DISK_TIMEOUT"),
        Kind.DAMAGED: GrpcStatus("DATA_LOSS"),
    }
)


class Relayed(TandemError):
    """A refusal of another service, which goes on to our caller with its own gRPC code."""

    kind = Kind.UNNAMED

    def __init__(self, message: str, code: str) -> None:
        """`code`: name of a `grpc.StatusCode`."""
        super().__init__(message)
        self.code = code


def status_of(error: TandemError, table: StatusTable = STATUSES) -> GrpcStatus:
    """How an error is told."""
    return GrpcStatus(error.code) if isinstance(error, Relayed) else table[error.kind]
