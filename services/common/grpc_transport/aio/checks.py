"""What handlers say of their calls, found to be something that can be sent."""

from collections.abc import Iterable

import grpc

from tandemmq.common.grpc_transport.rpc.metadata import encode_metadata
from tandemmq.common.grpc_transport.rpc.status import Status

Metadata = Iterable[tuple[str, str | bytes]]

CODES: "dict[int | None, grpc.StatusCode]" = {code.value[0]: code for code in grpc.StatusCode}
"""grpcio's statuses by their numbers."""


def checked(metadata: Metadata) -> tuple[tuple[str, str | bytes], ...]:
    """Metadata as it can be sent. Raises TypeError, ValueError where the handler said it, not when the call ends."""
    pairs = tuple(metadata)
    encode_metadata(pairs)
    return pairs


def text(details: str) -> str:
    """The text beside a status. Raises TypeError."""
    if not isinstance(details, str):
        raise TypeError(f"details must be a str, not {type(details).__name__}")
    return details


def number(code: object) -> int:
    """A status as its number; UNKNOWN for what is none."""
    number = code.value[0] if isinstance(code, grpc.StatusCode) else code
    return number if type(number) is int and number in CODES else Status.UNKNOWN.value
