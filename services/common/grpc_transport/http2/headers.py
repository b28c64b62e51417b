"""Header blocks (HPACK, RFC 7541): decoded at the price of a dictionary look-up where they repeat.

We announce SETTINGS_HEADER_TABLE_SIZE = 0. Until the client acknowledges it, the `hpack` library decodes with its
dynamic table. From then on no block depends on another one: a block that was seen before, on any connection, is found
in a cache by its bytes, and a new one (a deadline or an id that differs in each call) is scanned without any table::

    1xxxxxxx  indexed field, static table only        01xxxxxx  literal, "with indexing" (into a table of no size)
    001xxxxx  table size update, must be 0, first     0000xxxx  literal without indexing, 0001xxxx never indexed
    string    H 1, length 7+, bytes; H: Huffman, decoded by the `hpack` library and remembered

Blocks that we send are stateless too: literals without indexing, constant bytes for most answers.
"""

from functools import lru_cache

from hpack import Decoder, HPACKError, OversizedHeaderListError

from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode
from tandemmq.common.grpc_transport.http2.huffman import decode_huffman
from tandemmq.common.grpc_transport.http2.request import FIELD_COST, Field, RequestHead, make_head

_STATIC_SIZE = 61
_INDEXED = Decoder().decode(bytes(0x80 | index for index in range(1, _STATIC_SIZE + 1)), raw=True)
STATIC = ((b"", b""), *((bytes(name), bytes(value)) for name, value in _INDEXED))
"""RFC 7541, appendix A; counted from 1."""
BLOCK_FACTOR = 8
"""A block of more bytes than so many times the limit of its fields ends the connection; up to there, only its call."""
_TABLE_BLOCK_FACTOR = 2
"""The same before the acknowledgement: with a table every block must be decoded, at any price."""
FIELD_OVERHEAD = 32
"""What RFC 9113, section 6.5.2, adds to name and value of each field."""
_CACHED_BLOCK_LIMIT = 1024
_CACHED_FIELDS_LIMIT = 64
_CACHE_ENTRIES = 2048
_LARGEST_INTEGER = 1 << 24


def compression_error(reason: str) -> ConnectionFault:
    """The block cannot be decoded: nothing after it can be trusted either."""
    return ConnectionFault(ErrorCode.COMPRESSION_ERROR, reason)


class HeaderListTooLarge(Exception):
    """The decoded fields are more than we said we take; the stream is answered with an error."""


class HeadCache:
    """Heads by the bytes of their stateless blocks; shared by all connections of a server."""

    def __init__(self) -> None:
        self._heads: dict[bytes, RequestHead] = {}
        self.get = self._heads.get

    def put(self, block: bytes, head: RequestHead) -> None:
        """Remember; when full, all is forgotten, as what is hot comes back at once."""
        if len(block) > _CACHED_BLOCK_LIMIT or len(head.fields) > _CACHED_FIELDS_LIMIT:
            return
        if len(self._heads) >= _CACHE_ENTRIES:
            self._heads.clear()
        self._heads[block] = head


class HeaderDecoder:
    """Decodes the blocks of one connection, in the order in which they come."""

    def __init__(self, cache: HeadCache, max_list_size: int) -> None:
        """`max_list_size`: bytes as RFC 9113, section 6.5.2, counts them."""
        self._cache = cache
        self._max_list_size = max_list_size
        self._decoder: Decoder | None = Decoder(max_header_list_size=4 * max_list_size)
        """With a dynamic table; None when the client has given it up."""

    @property
    def stateless(self) -> bool:
        """No block depends on another one any more."""
        return self._decoder is None

    def acknowledged(self) -> None:
        """The client knows that our table has no size."""
        self._decoder = None

    def head(self, block: bytes) -> RequestHead:
        """The request that a block describes. Raises ConnectionFault, StreamFault, HeaderListTooLarge."""
        if self._decoder is None:
            known = self._cache.get(block)
            if known is not None:
                return known
        fields = self.fields(block)
        head = make_head(fields)
        head.cost = FIELD_COST * len(fields) + 3 * len(block)
        if self._decoder is None:
            self._cache.put(block, head)
        else:
            head.cost += 2 * self._max_list_size  # from the table: the block says nothing of what they are
        return head

    def fields(self, block: bytes) -> list[Field]:
        """The fields of a block, whatever they mean. Raises ConnectionFault, HeaderListTooLarge."""
        if self._decoder is not None and len(block) > _TABLE_BLOCK_FACTOR * self._max_list_size:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block far over the limit")
        if self._decoder is None:
            return scan(block, self._max_list_size)
        fields = _decode(self._decoder, block)
        if sum(len(name) + len(value) + FIELD_OVERHEAD for name, value in fields) > self._max_list_size:
            raise HeaderListTooLarge
        return fields


def _decode(decoder: Decoder, block: bytes) -> list[Field]:
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
    except OversizedHeaderListError:
        raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header list far over the limit") from None
    except (HPACKError, ValueError, IndexError) as error:
        raise compression_error("the header block cannot be decoded") from error


def scan(block: bytes, max_list_size: int) -> list[Field]:
    """The fields of a block that uses no dynamic table. Raises ConnectionFault, HeaderListTooLarge."""
    fields: list[Field] = []
    size = 0
    position, end = 0, len(block)
    try:
        while position < end:
            first = block[position]
            position += 1
            if first & 0x80:
                index = first & 0x7F
                if index == 0x7F:
                    index, position = _more_of_integer(block, position, index)
                if not 0 < index <= _STATIC_SIZE:
                    raise compression_error("a table index that does not exist")
                fields.append(STATIC[index])
                size += FIELD_OVERHEAD
                if size > max_list_size:
                    raise HeaderListTooLarge
                continue
            if first & 0xE0 == 0x20:
                if first & 0x1F or fields or position > 2:
                    raise compression_error("a table size update that was not allowed")
                continue
            mask = 0x3F if first & 0x40 else 0x0F
            index = first & mask
            if index == mask:
                index, position = _more_of_integer(block, position, index)
            if index > _STATIC_SIZE:
                raise compression_error("a table index that does not exist")
            if index:
                name = STATIC[index][0]
            else:
                name, position = _string(block, position, max_list_size)
            value, position = _string(block, position, max_list_size)
            fields.append((name, value))
            size += len(name) + len(value) + FIELD_OVERHEAD
            if size > max_list_size:
                raise HeaderListTooLarge
    except IndexError:
        raise compression_error("a header block that ends in the middle of a field") from None
    return fields


def _more_of_integer(block: bytes, position: int, value: int) -> tuple[int, int]:
    """An integer that did not fit its prefix (RFC 7541, section 5.1), and the position after it."""
    shift = 0
    while True:
        byte = block[position]
        position += 1
        value += (byte & 0x7F) << shift
        if value > _LARGEST_INTEGER or shift > 28:
            raise compression_error("an integer that is too large")
        if not byte & 0x80:
            return value, position
        shift += 7


def _string(block: bytes, position: int, longest: int) -> tuple[bytes, int]:
    first = block[position]
    length = first & 0x7F
    position += 1
    if length == 0x7F:
        length, position = _more_of_integer(block, position, length)
    stop = position + length
    if stop > len(block):
        raise compression_error("a header block that ends in the middle of a string")
    if length > longest:
        raise HeaderListTooLarge
    raw = block[position:stop]
    if first & 0x80:
        return (_huffman(raw) if length <= 256 else _huffman_long(raw)), stop
    return raw, stop


def _huffman_long(raw: bytes) -> bytes:
    try:
        return bytes(decode_huffman(raw))
    except HPACKError as error:
        raise compression_error("a string whose Huffman code is wrong") from error


_huffman = lru_cache(maxsize=4096)(_huffman_long)


def literal(name: bytes, value: bytes) -> bytes:
    """A field as a literal without indexing: it reads the same whatever came before (RFC 7541, section 6.2.2)."""
    return b"\0" + _length(len(name)) + name + _length(len(value)) + value


def _length(length: int) -> bytes:
    if length < 0x7F:
        return bytes((length,))
    length -= 0x7F
    encoded = bytearray((0x7F,))
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


def status(code: int) -> bytes:
    """`:status` as the first field of an answer."""
    return b"\x88" if code == 200 else b"\x08\x03" + str(code).encode()
