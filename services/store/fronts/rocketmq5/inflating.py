"""Bodies that a classic producer has compressed with zlib, for clients that know no zlib.

A few kilobytes may become as much as a body may have: the first part is inflated on the loop, the rest in a thread. A
body that would be larger than that is given as it is stored.
"""

import zlib
from typing import Protocol

from tandemmq.common.processes.started_pool import COMPUTING
from tandemmq.rocketmq5.v2 import message_pb2
from tandemmq.store.format import sysflag
from tandemmq.store.format.record import Record

AT_ONCE = 64 << 10
"""Bytes that are inflated on the loop: less than a millisecond."""

_GZIP = b"\x1f\x8b"

Body = tuple[bytes, message_pb2.Encoding.ValueType]
"""A body, and what the client is told of its encoding."""


async def readable_body(record: Record, most: int) -> Body:
    """The body as a client can read it, of up to `most` bytes where it is inflated."""
    if not _is_zlib(record):
        return _as_stored(record)
    inflating = _Inflating(bytes(record.body), most)
    inflating.go_on(AT_ONCE)
    if inflating.may_have_more:
        await COMPUTING.do(inflating.go_on, most)
    return inflating.body, message_pb2.IDENTITY


def _is_zlib(record: Record) -> bool:
    flag = record.sys_flag
    if not flag & sysflag.COMPRESSED or bytes(record.body[:2]) == _GZIP:
        return False
    return flag & sysflag.COMPRESSION_MASK in (0, sysflag.COMPRESSION_ZLIB)


def _as_stored(record: Record) -> Body:
    body = bytes(record.body)
    gzip = record.sys_flag & sysflag.COMPRESSED and body.startswith(_GZIP)
    return body, message_pb2.GZIP if gzip else message_pb2.IDENTITY


class _Inflater(Protocol):
    """What `zlib.decompressobj` makes."""

    @property
    def eof(self) -> bool: ...

    @property
    def unconsumed_tail(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


class _Inflating:
    """One body on its way."""

    def __init__(self, stored: bytes, most: int) -> None:
        self._stored = self._rest = stored
        self._inflater: _Inflater = zlib.decompressobj()
        self._parts: list[bytes] = []
        self._size = 0
        self._most = most
        self._broken = False

    @property
    def may_have_more(self) -> bool:
        """Whether it has not come to its end, as far as one can tell."""
        return not self._broken and not self._inflater.eof and bool(self._rest)

    def go_on(self, until: int) -> None:
        """Inflate until there are more than `until` bytes in all, or more than there may be, or the end is reached."""
        if not self.may_have_more:
            return
        try:
            part = self._inflater.decompress(self._rest, min(until, self._most) + 1 - self._size)
        except zlib.error:
            self._broken = True
            return
        self._parts.append(part)
        self._size += len(part)
        self._rest = self._inflater.unconsumed_tail
        self._broken = self._size > self._most

    @property
    def body(self) -> bytes:
        """All of it; as it was stored where it does not end, is too large, or is no zlib."""
        return b"".join(self._parts) if self._inflater.eof and not self._broken else self._stored
