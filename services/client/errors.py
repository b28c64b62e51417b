"""What a client raises.

::

    TandemError
    ├── ClientError
    │   ├── RequestFailed       the store refused, and says why
    │   └── StoreUnreachable    there is no answer
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


class RequestFailed(ClientError):
    """The store refused the request; nothing was changed."""


class StoreUnreachable(ClientError):
    """No store answers, or not in time. What was sent may be stored or not: send it again with the same UNIQ_KEY."""


class UnusableFile(TandemError):
    """A file for TLS cannot be read."""

    kind = Kind.MISCONFIGURED


def from_rpc(error: grpc.RpcError) -> ClientError:
    """The error of a failed call."""
    call = cast(Any, error)
    code = call.code().name
    pairs = cast(Iterable[tuple[str, str | bytes]], call.trailing_metadata() or ())
    status = next((str(value) for key, value in pairs if key == STATUS_KEY), "")
    kind = StoreUnreachable if not status and code in ("UNAVAILABLE", "DEADLINE_EXCEEDED") else RequestFailed
    return kind(call.details() or code, code, status)
