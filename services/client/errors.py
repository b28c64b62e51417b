"""What a client raises.

::

    TandemError
    ├── ClientError
    │   ├── RequestFailed       the store refused, and says why
    │   │   ├── NoLongerHeld    the message was given to somebody else meanwhile, or is dealt with
    │   │   ├── GroupRefused    the consumer group does not exist, or may not consume
    │   │   ├── FilterRefused   the filter cannot be understood; the message says where
    │   │   └── TransactionOver the transaction has ended the other way, or nobody knows it
    │   ├── StoreUnreachable    there is no answer
    │   ├── DamagedMessage      the answer came, and its bytes are not what was stored
    │   └── ClientFault         the client itself has failed; `__cause__` says at what
    └── UnusableFile            a certificate or a key cannot be read: nothing was sent
"""

from collections.abc import Iterable
from typing import Any, cast

import grpc

from tandemmq.common.errors import Kind, TandemError

STATUS_KEY = "rocketmq-status"
"""Trailing metadata of a failed call: RocketMQ's name of the failure."""


class ClientError(TandemError):
    """Root of the client's errors. `code`: name of the gRPC status; `status`: RocketMQ's, empty where there is none."""

    def __init__(self, message: str, code: str, status: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later, or at another store of the broker."""
        if self.code == "UNAVAILABLE":
            return True
        return bool(self.status) and (self.code == "RESOURCE_EXHAUSTED" or self.status == _ELSEWHERE)


class RequestFailed(ClientError):
    """The store refused the request; nothing was changed."""


class NoLongerHeld(RequestFailed):
    """The message is not the caller's any more: its time was over and others got it, or it is dealt with."""


class GroupRefused(RequestFailed):
    """The consumer group does not exist and is not created by using it, or it may not consume."""


class FilterRefused(RequestFailed):
    """The filter cannot be understood."""


class TransactionOver(RequestFailed):
    """The transaction has ended the other way, or is not known."""


class StoreUnreachable(ClientError):
    """No store answers, or not in time. What was sent may be stored or not: send it again with the same UNIQ_KEY."""

    @property
    def retriable(self) -> bool:
        """See ClientError."""
        return True


class DamagedMessage(ClientError):
    """Bytes came that are not whole, intact messages: their checksum does not fit."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The answer has a message that is damaged: {reason}.", "DATA_LOSS")


class ClientFault(ClientError):
    """Something failed that nobody foresaw, in the background; `__cause__` is what it was."""

    def __init__(self, doing: str, cause: BaseException) -> None:
        super().__init__(f"{doing} has failed: {type(cause).__name__}: {cause}", "INTERNAL")
        self.__cause__ = cause


class UnusableFile(TandemError):
    """A file for TLS cannot be read."""

    kind = Kind.MISCONFIGURED


def from_rpc(error: grpc.RpcError) -> ClientError:
    """The error of a failed call."""
    call = cast(Any, error)
    code = call.code().name
    pairs = cast(Iterable[tuple[str, str | bytes]], call.trailing_metadata() or ())
    status = next((str(value) for key, value in pairs if key == STATUS_KEY), "")
    if not status and code in _NO_ANSWER:
        return StoreUnreachable(call.details() or code, code)
    return refused(call.details() or code, code, status)


def refused(message: str, code: str, status: str) -> RequestFailed:
    """The error of a refusal, by what it was told with."""
    return _KINDS.get(status, RequestFailed)(message, code, status)


_ELSEWHERE = "SERVICE_NOT_AVAILABLE"
"""What a store says that is not the master."""

_NO_ANSWER = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
"""Codes that gRPC itself gives where no store said anything."""

_KINDS: dict[str, type[RequestFailed]] = {
    "INVALID_RECEIPT_HANDLE": NoLongerHeld,
    "CONSUMER_GROUP_NOT_FOUND": GroupRefused,
    "FORBIDDEN": GroupRefused,
    "ILLEGAL_FILTER_EXPRESSION": FilterRefused,
    "INVALID_TRANSACTION_ID": TransactionOver,
}
"""By RocketMQ's name of the failure."""
