"""CallHead: what a request's header list says to gRPC; computed once for all requests with the same header block."""

from typing import Any

from tandemmq.common.grpc_transport.http2.request import RequestHead
from tandemmq.common.grpc_transport.rpc import compression
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum, decode_metadata
from tandemmq.common.grpc_transport.rpc.status import Refusal, Status
from tandemmq.common.grpc_transport.rpc.timeout import parse_timeout

OK = 200
METHOD_NOT_ALLOWED = 405
UNSUPPORTED_MEDIA_TYPE = 415


class CallHead:
    """A request to a method, or `http_status` and `refusal` that say why it is none."""

    __slots__ = (
        "_head",
        "_metadata",
        "accepted",
        "encoding",
        "http_status",
        "method",
        "path",
        "refusal",
        "timeout",
        "wants_no_body",
    )

    def __init__(self, head: RequestHead) -> None:
        self._head = head
        self._metadata: tuple[Metadatum, ...] | None = None
        self.path = head.path.decode("utf-8", "replace")
        """`/package.Service/Method`"""
        self.timeout: float | None = None
        """Seconds; None: the caller waits for ever."""
        self.encoding = compression.IDENTITY
        """grpc-encoding: what compressed messages are compressed with."""
        self.accepted: frozenset[bytes] = frozenset()
        """Encodings that the caller can read, besides identity."""
        self.http_status = UNSUPPORTED_MEDIA_TYPE
        """200, or why this is no gRPC call."""
        self.wants_no_body = head.method == b"HEAD"
        """Whatever the answer is, it ends with its header section."""
        self.refusal: Refusal | None = None
        """A gRPC call that cannot be taken."""
        self.method: Any = None
        """What the layer above found for `path`, once for all."""
        for name, value in head.fields:
            if name[:5] == b"grpc-":
                self._take_own(name, value)
            elif name == b"content-type" and is_grpc(value):
                self.http_status = OK if head.method == b"POST" else METHOD_NOT_ALLOWED

    def _take_own(self, name: bytes, value: bytes) -> None:
        if name == b"grpc-timeout":
            self.timeout = parse_timeout(value)
            if self.timeout is None:
                self.refusal = Refusal(Status.INTERNAL, "grpc-timeout is not of the form that gRPC defines")
        elif name == b"grpc-encoding":
            self.encoding = value
            if not compression.known(value):
                self.refusal = Refusal(Status.UNIMPLEMENTED, "grpc-encoding is none of identity, deflate, gzip")
        elif name == b"grpc-accept-encoding":
            self.accepted = frozenset(part.strip() for part in value.split(b","))

    @property
    def metadata(self) -> tuple[Metadatum, ...]:
        """What the application sees. Raises CallFailure."""
        if self._metadata is None:
            self._metadata = decode_metadata(self._head.fields)
        return self._metadata


def is_grpc(content_type: bytes) -> bool:
    """`application/grpc`, alone or with `+proto`, `+json`, parameters …; not `application/grpc-web`."""
    return content_type[:16] == b"application/grpc" and content_type[16:17] in (b"", b"+", b";")
