"""What an answer says to gRPC: its head, and how the call ended (PROTOCOL-HTTP2, "Responses")."""

from urllib.parse import unquote_to_bytes

from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.response import ResponseHead
from tandemmq.common.grpc_transport.rpc import compression
from tandemmq.common.grpc_transport.rpc.call_head import is_grpc
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum, decode_metadata
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Refusal, Status

_OF_HTTP = {
    400: Status.INTERNAL,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.UNIMPLEMENTED,
    429: Status.UNAVAILABLE,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.UNAVAILABLE,
}
"""grpc/doc/http-grpc-status-mapping.md; all others: UNKNOWN."""
_OF_RESETS = {
    ErrorCode.REFUSED_STREAM: Status.UNAVAILABLE,
    ErrorCode.CANCEL: Status.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: Status.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: Status.PERMISSION_DENIED,
}
"""PROTOCOL-HTTP2, "Errors"; all others: INTERNAL."""


class AnswerHead:
    """The head of an answer that goes on. Computed once for all answers with the same header block."""

    __slots__ = ("encoding", "metadata", "refusal")

    def __init__(self, head: ResponseHead) -> None:
        self.metadata: tuple[Metadatum, ...] = ()
        """What the application sees."""
        self.encoding = compression.IDENTITY
        """grpc-encoding: what compressed messages are compressed with."""
        self.refusal = _not_grpc(head)
        """Why the call is over already."""
        for name, value in head.fields:
            if name == b"grpc-encoding":
                self.encoding = value
                if not compression.known(value):
                    self.refusal = Refusal(Status.INTERNAL, "grpc-encoding of the answer is unknown")
        try:
            self.metadata = decode_metadata(head.fields, answer=True)
        except CallFailure as failure:
            self.refusal = Refusal(failure.status, failure.details)


class CallOutcome:
    """How a call ended. Computed once for all calls with the same trailers."""

    __slots__ = ("details", "metadata", "status")

    def __init__(self, end: ResponseHead) -> None:
        """`end`: trailers, or a head that is the whole answer."""
        self.metadata: tuple[Metadatum, ...] = ()
        """Trailing metadata."""
        self.details = ""
        status: bytes | None = None
        for name, value in end.fields:
            if name == b"grpc-status":
                status = value
            elif name == b"grpc-message":
                self.details = percent_decoded(value)
        if status is None:
            refusal = _not_grpc(end) if end.status else None
            self.status, self.details = refusal or Refusal(Status.UNKNOWN, "the server ended the call without a status")
        else:
            self.status = _status(status)
        try:
            self.metadata = decode_metadata(end.fields, answer=True)
        except CallFailure as failure:
            self.status, self.details = failure.status, failure.details


def percent_decoded(value: bytes) -> str:
    """grpc-message as text; what is not decodable stays, or becomes a replacement character."""
    return unquote_to_bytes(value).decode("utf-8", "replace")


def of_reset(code: int) -> Refusal:
    """The status of a call that ended by RST_STREAM."""
    status = _OF_RESETS.get(ErrorCode(code), Status.INTERNAL) if code in _CODES else Status.INTERNAL
    name = ErrorCode(code).name if code in _CODES else str(code)
    return Refusal(status, f"the stream was reset ({name})")


_CODES = frozenset(ErrorCode)


def _status(value: bytes) -> Status:
    number = int(value) if value.isdigit() and len(value) <= 2 else -1
    return Status(number) if 0 <= number <= Status.UNAUTHENTICATED else Status.UNKNOWN


def _not_grpc(head: ResponseHead) -> Refusal | None:
    if head.status != 200:
        return Refusal(_OF_HTTP.get(head.status, Status.UNKNOWN), f"the server answered with HTTP status {head.status}")
    kinds = [value for name, value in head.fields if name == b"content-type"]
    if not kinds or not is_grpc(kinds[0]):
        return Refusal(Status.UNKNOWN, "the server answered with another content-type than application/grpc")
    return None
