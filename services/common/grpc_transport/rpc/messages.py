"""MessageReader: messages cut out of a request's DATA, however the frames divide them.

Before each message::

    0            1                       5
    +------------+-----------------------+----------- ...
    | compressed | length, big-endian    | message
    +------------+-----------------------+----------- ...
      0 or 1       32 bits
"""

from collections.abc import Sequence
from struct import Struct

from tandemmq.common.grpc_transport.rpc.compression import decompress
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

PREFIX_SIZE = 5
PART_OVERHEAD = 64
"""What keeping a piece of bytes costs besides the bytes; counted, so that tiny pieces cannot hide what they cost."""
_PREFIX = Struct(">BI")
pack_prefix = _PREFIX.pack
"""`pack_prefix(compressed, length)`."""


def _unpack(prefix: bytes) -> tuple[int, int]:
    return prefix[0], int.from_bytes(prefix[1:], "big")


class Compressed(bytes):
    """A message as it came: it is decompressed when it is wanted, and until then takes no more than its sender paid."""


class MessageReader:
    """The messages of one request."""

    __slots__ = ("_compressed", "_encoding", "_left", "_limit", "_parts", "size")

    def __init__(self, encoding: bytes, limit: int) -> None:
        """`encoding`: grpc-encoding of the call; `limit`: longest message, bytes, compressed and not."""
        self._encoding = encoding
        self._limit = limit
        self._parts: list[bytes] = []
        self._left = 0
        """Bytes that the message lacks; 0: its prefix is not complete."""
        self._compressed = False
        self.size = 0
        """Memory that is held by a prefix or message that is not complete, bytes."""

    def go_on_after(self, parts: list[bytes], left: int) -> None:
        """Take up a message that is not compressed, and of which somebody else has read the beginning."""
        self._parts, self._left = parts, left
        self.size = sum(map(len, parts)) + PART_OVERHEAD * len(parts)

    def feed(self, buffer: bytes, start: int, stop: int) -> list[bytes]:
        """The messages that `buffer[start:stop]` completes, some of them Compressed. Raises CallFailure."""
        messages: list[bytes] = []
        while start < stop:
            if self._left:
                end = min(stop, start + self._left)
                self._parts.append(buffer[start:end])
                self._left -= end - start
                self.size += end - start + PART_OVERHEAD
                start = end
                if not self._left:
                    messages.append(self._complete())
                continue
            start = self._prefix(buffer, start, stop, messages)
        return messages

    @property
    def incomplete(self) -> bool:
        """The request broke off inside a message."""
        return self.size > 0 or self._left > 0

    def _prefix(self, buffer: bytes, start: int, stop: int, messages: list[bytes]) -> int:
        """Reads a prefix, and the message after it when all of it is there; gives the position after it."""
        end = min(stop, start + PREFIX_SIZE - self.size)
        if self.size or end - start < PREFIX_SIZE:
            self._parts.append(buffer[start:end])
            self.size += end - start
            if self.size < PREFIX_SIZE:
                return end
            flag, length = _unpack(b"".join(self._parts))
        else:
            flag, length = _unpack(buffer[start:end])
        self._parts, self.size = [], 0
        if flag > 1:
            raise CallFailure(Status.INTERNAL, "a message with an unknown flag before it")
        if length > self._limit:
            details = f"Received message larger than max ({length} vs. {self._limit})"
            raise CallFailure(Status.RESOURCE_EXHAUSTED, details)
        self._compressed = bool(flag)
        if end + length <= stop:
            messages.append(self._marked(buffer[end : end + length]))
            return end + length
        self._left = length
        return end

    def _complete(self) -> bytes:
        message = b"".join(self._parts)
        self._parts, self.size = [], 0
        return self._marked(message)

    def _marked(self, message: bytes) -> bytes:
        return Compressed(message) if self._compressed else message

    def plain(self, message: bytes) -> bytes:
        """A message as its sender wrote it. Raises CallFailure."""
        return decompress(self._encoding, message, self._limit) if type(message) is Compressed else message


def framed(messages: Sequence[bytes]) -> bytes:
    """Messages of a stream in one piece, each with the prefix that says how long it is."""
    return b"".join([part for one in messages for part in (pack_prefix(0, len(one)), one)])
