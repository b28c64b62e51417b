"""ResponseHead: the header section of a response, or its trailers, found to be well-formed (RFC 9113, section 8.3)."""

from collections.abc import Sequence
from typing import Any

from tandemmq.common.grpc_transport.http2.headers import HeadCache, HeaderDecoder
from tandemmq.common.grpc_transport.http2.request import (
    Field,
    check_field,
    content_length_of,
    malformed,
)

_CACHED_BLOCK_LIMIT = 1024
_CACHE_ENTRIES = 1024


class ResponseHead:
    """Status and fields of a response. Shared by all responses with the same header block: never changed."""

    __slots__ = ("content_length", "fields", "status", "view")

    def __init__(self, status: int, fields: Sequence[Field], content_length: int = -1) -> None:
        self.status = status
        """`:status`; 0 for trailers."""
        self.fields = fields
        """The other fields, in order."""
        self.content_length = content_length
        """-1: not told."""
        self.view: Any = None
        """What the layer above makes of the head, once for all responses that share it."""


class ResponseCache:
    """Heads and trailers by the bytes of their stateless blocks; shared by all connections of a channel."""

    def __init__(self) -> None:
        self.heads: dict[bytes, ResponseHead] = {}
        self.trailers: dict[bytes, ResponseHead] = {}


class ResponseDecoder(HeaderDecoder):
    """Decodes the blocks of one connection, in the order in which they come."""

    def __init__(self, cache: ResponseCache, max_list_size: int) -> None:
        """See HeaderDecoder."""
        super().__init__(HeadCache(), max_list_size)
        self._responses = cache

    def response(self, block: bytes) -> ResponseHead:
        """The head of a response. Raises ConnectionFault, StreamFault, HeaderListTooLarge."""
        if self.stateless:
            known = self._responses.heads.get(block)
            if known is not None:
                return known
        head = make_response(self.fields(block))
        if self.stateless:
            _remember(self._responses.heads, block, head)
        return head

    def trailers(self, block: bytes) -> ResponseHead:
        """The trailers of a response. Raises ConnectionFault, StreamFault, HeaderListTooLarge."""
        if self.stateless:
            known = self._responses.trailers.get(block)
            if known is not None:
                return known
        fields = self.fields(block)
        for name, value in fields:
            _check(name, value)
        found = ResponseHead(0, fields)
        if self.stateless:
            _remember(self._responses.trailers, block, found)
        return found


def _remember(heads: dict[bytes, ResponseHead], block: bytes, head: ResponseHead) -> None:
    if len(block) > _CACHED_BLOCK_LIMIT:
        return
    if len(heads) >= _CACHE_ENTRIES:
        heads.clear()
    heads[block] = head


def make_response(fields: Sequence[Field]) -> ResponseHead:
    """The head of a response from its decoded fields. Raises StreamFault."""
    if not fields or fields[0][0] != b":status":
        raise malformed("a response must begin with :status")
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit() or status < b"100":
        raise malformed(":status is not of three digits")
    content_length = -1
    for name, value in fields[1:]:
        _check(name, value)
        if name == b"content-length":
            content_length = content_length_of(value, content_length)
    return ResponseHead(int(status), fields[1:], content_length)


def _check(name: bytes, value: bytes) -> None:
    """White space at an end is let pass: grpcio's server sends grpc-message with it."""
    if name[:1] == b":":
        raise malformed("a pseudo-header field is given twice, after other fields, or in trailers")
    check_field(name, value.strip(b" \t"))
