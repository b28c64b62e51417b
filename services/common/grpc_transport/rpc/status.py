"""Status codes of gRPC, and the failures that are found before or after a handler."""

from enum import IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """grpc-status; the numbers of `grpc.StatusCode`."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Refusal(NamedTuple):
    """Why a call is not taken. No exception: those may not be kept, as they remember every frame that raised them."""

    status: Status
    details: str


class CallFailure(Exception):
    """The call ends with this status; `details` is for the caller and holds nothing internal."""

    def __init__(self, status: Status, details: str) -> None:
        super().__init__(details)
        self.status = status
        self.details = details
