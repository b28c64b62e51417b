"""What the store's gRPC clients are told of an error: the table at the head of store.proto, by kinds.

The gRPC codes are those of all our services. With them go RocketMQ's names of what happened to a message.
"""

from types import MappingProxyType

from tandemmq.common.errors import Kind
from tandemmq.common.serving import grpc_status
from tandemmq.common.serving.grpc_status import UNAVAILABLE, StatusTable

_ILLEGAL = "MESSAGE_ILLEGAL"
_NO_QUEUE = "NO_MATCHED_LOGIC_QUEUE"

_NAMES = {
    Kind.INVALID: _ILLEGAL,
    Kind.UNSUPPORTED: _ILLEGAL,
    Kind.TOO_LARGE: _ILLEGAL,
    Kind.BAD_DELAY: _ILLEGAL,
    Kind.PROPERTIES_TOO_LONG: "PROPERTIES_SIZE_EXCEEDED",
    Kind.UNKNOWN_TOPIC: _ILLEGAL,
    Kind.UNKNOWN_QUEUE: _ILLEGAL,
    Kind.FORBIDDEN_TOPIC: _ILLEGAL,
    Kind.NO_SUCH_QUEUE: _NO_QUEUE,
    Kind.QUEUE_OUT_OF_RANGE: _NO_QUEUE,
    Kind.NOT_READABLE: _NO_QUEUE,
    Kind.NO_MESSAGE: "MESSAGE_WAS_REMOVING",
    Kind.NOT_FOUND: UNAVAILABLE,
    Kind.CONFLICT: UNAVAILABLE,
    Kind.UNKNOWN_GROUP: "CONSUMER_GROUP_NOT_FOUND",
    Kind.FORBIDDEN_GROUP: "FORBIDDEN",
    Kind.BAD_FILTER: "ILLEGAL_FILTER_EXPRESSION",
    Kind.BAD_INVISIBLE_TIME: "ILLEGAL_INVISIBLE_TIME",
    Kind.BAD_HANDLE: "INVALID_RECEIPT_HANDLE",
    Kind.HANDLE_EXPIRED: "INVALID_RECEIPT_HANDLE",
    Kind.UNKNOWN_TRANSACTION: "INVALID_TRANSACTION_ID",
    Kind.TRANSACTION_ENDED: "INVALID_TRANSACTION_ID",
    Kind.FEW_REPLICAS: "IN_SYNC_REPLICAS_NOT_ENOUGH",
    Kind.EXHAUSTED: "SYSTEM_BUSY",
    Kind.DAMAGED: _ILLEGAL,
}
"""RocketMQ's names, where the store says more than other services: of a message, and the codes of its version 5."""

STATUSES: StatusTable = MappingProxyType(
    {kind: one._replace(rocketmq=_NAMES.get(kind, one.rocketmq)) for kind, one in grpc_status.STATUSES.items()}
)
