"""RequestHead: the header section of a request, found to be well-formed (RFC 9113, sections 8.2 and 8.3)."""

import re
from collections.abc import Iterable
from typing import Any

from tandemmq.common.grpc_transport.http2.errors import ErrorCode, StreamFault

Field = tuple[bytes, bytes]

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
"""Tokens without capitals (RFC 9113, section 8.2.1; RFC 9110, section 5.1)."""
_ILLEGAL_IN_VALUE = re.compile(rb"[\0\r\n]|\A[ \t]|[ \t]\Z").search
"""Line breaks and NUL anywhere, white space at an end (RFC 9113, section 8.2.1)."""
_PSEUDO = frozenset((b":method", b":scheme", b":path", b":authority"))
_CONNECTION_SPECIFIC = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))
_checked_names: set[bytes] = set()
"""Names found good before; bounded, as names come from the peer."""
_CHECKED_NAMES_LIMIT = 1000
USUAL_HEAD = 8 << 10
"""Bytes that a head may cost before it is counted by itself."""
FIELD_COST = 256
"""What keeping a field costs besides its bytes, in both layers."""


class RequestHead:
    """Method, path and fields of a request. Shared by all requests with the same header block: never changed."""

    __slots__ = ("authority", "content_length", "cost", "fields", "method", "path", "scheme", "view")

    def __init__(self, pseudo: dict[bytes, bytes], fields: list[Field], content_length: int) -> None:
        self.method = pseudo[b":method"]
        self.scheme = pseudo[b":scheme"]
        self.path = pseudo[b":path"]
        self.authority = pseudo.get(b":authority", b"")
        self.fields = fields
        """The other fields, in order."""
        self.content_length = content_length
        """-1: not told."""
        self.cost = 0
        """Bytes that keeping it takes, about."""
        self.view: Any = None
        """What the layer above makes of the head, once for all requests that share it."""


def malformed(reason: str) -> StreamFault:
    """A request that is not well-formed is a stream error (RFC 9113, section 8.1.1)."""
    return StreamFault(ErrorCode.PROTOCOL_ERROR, reason)


def make_head(fields: Iterable[Field]) -> RequestHead:
    """The head of a request from its decoded fields. Raises StreamFault."""
    pseudo: dict[bytes, bytes] = {}
    regular: list[Field] = []
    content_length = -1
    for name, value in fields:
        if name[:1] == b":":
            if regular or name in pseudo or name not in _PSEUDO:
                raise malformed("a pseudo-header field is unknown, given twice, or after other fields")
            pseudo[name] = value
            if _ILLEGAL_IN_VALUE(value):
                raise malformed("a pseudo-header field with an illegal value")
            continue
        check_field(name, value)
        if name == b"content-length":
            content_length = content_length_of(value, content_length)
        regular.append((name, value))
    method, path = pseudo.get(b":method"), pseudo.get(b":path")
    if not method or not path or not pseudo.get(b":scheme"):
        raise malformed(":method, :scheme and :path are required")
    if path[:1] != b"/" and not (method == b"OPTIONS" and path == b"*"):
        raise malformed(":path must begin with a slash")
    return RequestHead(pseudo, regular, content_length)


def check_trailers(fields: Iterable[Field]) -> None:
    """Trailers have no pseudo-header fields (RFC 9113, section 8.1). Raises StreamFault."""
    for name, value in fields:
        if name[:1] == b":":
            raise malformed("a pseudo-header field in trailers")
        check_field(name, value)


def check_field(name: bytes, value: bytes) -> None:
    """Name and value are legal in HTTP/2 (RFC 9113, sections 8.2.1 and 8.2.2). Raises StreamFault."""
    if name not in _checked_names:
        if not _NAME(name):
            raise malformed("a field name with capitals or illegal characters")
        if name in _CONNECTION_SPECIFIC:
            raise malformed("a connection-specific field")
        if len(_checked_names) < _CHECKED_NAMES_LIMIT and len(name) <= 64:
            _checked_names.add(name)
    if _ILLEGAL_IN_VALUE(value):
        raise malformed("a field value with a line break, NUL, or white space at an end")
    if name == b"te" and value != b"trailers":
        raise malformed("te may only be trailers")


def content_length_of(value: bytes, known: int) -> int:
    """The number that content-length says; `known`: what it said before, or -1. Raises StreamFault."""
    if not value.isdigit() or len(value) > 18 or (known >= 0 and int(value) != known):
        raise malformed("content-length is no number, or told twice")
    return int(value)
