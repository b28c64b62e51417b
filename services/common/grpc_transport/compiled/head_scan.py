"""HeadScan: whether a header block is that of a plain call, and of which method; the twin of `headers` and `call_head`.

A block is plain when Python would find it right, and nothing in it changes how a call is served: no table, no
content-length, one of the methods that have a short way. Fields that differ in each call (a deadline, an id, a date)
are read, not compared. What a name, a value or a code may be is asked of Python's own tables, once.
"""

from importlib import import_module

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.string import memcmp

from tandemmq.common.grpc_transport.http2 import request
from tandemmq.common.grpc_transport.http2.headers import FIELD_OVERHEAD, STATIC
from tandemmq.common.grpc_transport.rpc import compression, timeout

# What a field is.
_OTHER: cython.int = 0
_METHOD: cython.int = 1
_SCHEME: cython.int = 2
_PATH: cython.int = 3
_AUTHORITY: cython.int = 4
_LAST_PSEUDO: cython.int = 4
_TE: cython.int = 5
_CONTENT_TYPE: cython.int = 6
_TIMEOUT: cython.int = 7
_ENCODING: cython.int = 8
_NEVER: cython.int = 9

_REGULAR: cython.int = 1 << 10
"""In what was seen: a field that is no pseudo-header field."""
_NEEDED: cython.int = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6
"""Kinds without which a request is no gRPC call."""
_FIELD_COST: cython.int = request.FIELD_COST
_USUAL_HEAD: cython.int = request.USUAL_HEAD
_OVERHEAD: cython.int = FIELD_OVERHEAD
_STATIC_SIZE: cython.int = 61
_LARGEST_BLOCK: cython.int = 2700
"""Bytes; longer ones are never of a usual cost. Five bits are the shortest code: no string decoded is over 4,320."""
_SHORTEST_CODE: cython.int = 5
_LONGEST_CODE: cython.int = 30
_END_OF_STRING: cython.int = 256
_GRPC: bytes = b"application/grpc"
_POST: bytes = b"POST"
_TRAILERS: bytes = b"trailers"

_SPECIAL = {
    b":method": 1,
    b":scheme": 2,
    b":path": 3,
    b":authority": 4,
    b"te": 5,
    b"content-type": 6,
    b"grpc-timeout": 7,
    b"grpc-encoding": 8,
    b":status": 9,
    b"content-length": 9,
    **dict.fromkeys(sorted(request._CONNECTION_SPECIFIC), 9),
}


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def text_of(data: bytes) -> Text:
    """Where bytes lie; whoever asks keeps them."""
    text: Text
    text.at = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(data))
    text.size = PyBytes_GET_SIZE(data)
    return text


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def same(text: Text, data: bytes) -> cython.bint:
    """Whether a text is these bytes."""
    return text.size == PyBytes_GET_SIZE(data) and memcmp(text.at, PyBytes_AS_STRING(data), text.size) == 0


@cython.cclass
class HeadScan:
    """See the module."""

    def __init__(self, methods: dict, largest_list: int) -> None:
        """`methods`: what has a short way, by paths; it may grow. `largest_list`: `Limits.max_header_list_size`."""
        self._methods = methods
        self._largest_list = largest_list
        self._units = bytes(ord(unit) for unit in timeout._UNITS)
        self._encodings = (compression.IDENTITY, *compression._WINDOW_BITS)
        self._names = tuple(_SPECIAL)
        assert len(self._names) <= 32
        i: cython.int
        for i in range(256):
            self._in_name[i] = request._NAME(bytes((i,))) is not None
            self._illegal[i] = request._ILLEGAL_IN_VALUE(bytes((97, i, 97))) is not None
            self._at_end[i] = request._ILLEGAL_IN_VALUE(bytes((i,))) is None
        self._specials = len(self._names)
        for i in range(self._specials):
            self._special_name[i] = text_of(self._names[i])
            self._special_kind[i] = _SPECIAL[self._names[i]]
        for i in range(1, _STATIC_SIZE + 1):
            self._static_name[i] = text_of(STATIC[i][0])
            self._static_value[i] = text_of(STATIC[i][1])
            self._kinds[i] = self._kind_of(self._static_name[i])
        try:
            code = import_module("hpack.huffman_constants")
            self._prepare_huffman(list(code.REQUEST_CODES), list(code.REQUEST_CODES_LENGTH))
        except (ImportError, AttributeError, TypeError, OverflowError):
            self._huffman = False

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _prepare_huffman(self, codes: list, lengths: list) -> cython.int:
        """The code of RFC 7541, appendix B: codes of one length follow each other, in the order of their symbols."""
        at: cython.int = 0
        length: cython.int
        right: cython.bint = True
        if len(codes) != 257 or len(lengths) != 257:  # our own tables have room for as many
            return 0
        for length in range(_SHORTEST_CODE, _LONGEST_CODE + 1):
            symbols = [symbol for symbol, its in enumerate(lengths) if its == length]
            self._first[length] = codes[symbols[0]] if symbols else 0
            self._count[length] = len(symbols)
            self._symbols_at[length] = at
            for symbol in symbols:
                right = right and codes[symbol] == self._first[length] + at - self._symbols_at[length]
                self._symbols[at] = symbol
                at += 1
        self._huffman = right and at == 257
        return 0

    def method(self, block: bytes) -> object:
        """The method of a block; None: it is not plain."""
        return self.find(text_of(block).at, PyBytes_GET_SIZE(block))

    @cython.cfunc
    def find(self, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> object:
        """The same, of bytes in place."""
        at: cython.Py_ssize_t = 0
        fields: cython.int = 0
        list_size: cython.Py_ssize_t = 0
        if size > _LARGEST_BLOCK:
            return None
        self._seen = 0
        self._used = 0
        self._found = None
        while at < size:
            at = self._field(data, at, size)
            if at < 0 or not self._take():
                return None
            fields += 1
            list_size += self._name.size + self._value.size + _OVERHEAD
        if self._seen & _NEEDED != _NEEDED or list_size > self._largest_list:
            return None
        if _FIELD_COST * fields + 3 * size > _USUAL_HEAD:
            return None
        return self._found

    @cython.cfunc
    @cython.exceptval(check=False)
    def _field(self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a field: the place after it, or -1 where it is not plain."""
        first: cython.int = data[at]
        index: cython.int
        at += 1
        if first & 0x80:
            index = first & 0x7F
            if not 0 < index <= _STATIC_SIZE:
                return -1
            self._name = self._static_name[index]
            self._value = self._static_value[index]
            self._kind = self._kinds[index]
            return at
        if first & 0xE0 == 0x20:
            return -1
        mask: cython.int = 0x3F if first & 0x40 else 0x0F
        index = first & mask
        if index == mask:
            if at == end or data[at] & 0x80:
                return -1
            index += data[at]
            at += 1
        if index > _STATIC_SIZE:
            return -1
        self._used = 0
        if index:
            self._name = self._static_name[index]
            self._kind = self._kinds[index]
        else:
            at = self._string(data, at, end, cython.address(self._name))
            if at < 0:
                return -1
            self._kind = self._kind_of(self._name)
        return self._string(data, at, end, cython.address(self._value))

    @cython.cfunc
    @cython.exceptval(check=False)
    def _string(
        self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t, text: cython.pointer(Text)
    ) -> cython.Py_ssize_t:
        """Read a string: the place after it, or -1."""
        if at >= end:
            return -1
        first: cython.int = data[at]
        size: cython.Py_ssize_t = first & 0x7F
        at += 1
        if size == 0x7F:
            if at == end:
                return -1
            size += data[at] & 0x7F
            if data[at] & 0x80:
                at += 1
                if at == end or data[at] & 0x80:
                    return -1
                size += cython.cast(cython.Py_ssize_t, data[at]) << 7
            at += 1
        if size > end - at or size > self._largest_list:
            return -1
        text.at = data + at
        text.size = size
        if first & 0x80 and not self._decode(text.at, size, text):
            return -1
        return at + size

    @cython.cfunc
    @cython.exceptval(check=False)
    def _decode(self, raw: cython.p_const_uchar, size: cython.Py_ssize_t, text: cython.pointer(Text)) -> cython.int:
        """Undo Huffman's code, into room of our own; whether it is right."""
        bits: uint64_t = 0
        have: cython.int = 0
        at: cython.Py_ssize_t = 0
        length: cython.int
        code: cython.uint = 0
        symbol: cython.int
        to: cython.p_uchar = cython.address(self._decoded[self._used])
        text.at = to
        text.size = 0
        if not self._huffman:
            return 0
        while True:
            while have <= 56 and at < size:
                bits = bits << 8 | raw[at]
                have += 8
                at += 1
            length = _SHORTEST_CODE
            while length <= _LONGEST_CODE and length <= have:
                code = cython.cast(cython.uint, bits >> (have - length)) & ((cython.cast(cython.uint, 1) << length) - 1)
                if code >= self._first[length] and code - self._first[length] < self._count[length]:
                    break
                length += 1
            if length > _LONGEST_CODE or length > have:
                break
            symbol = self._symbols[self._symbols_at[length] + cython.cast(cython.int, code - self._first[length])]
            if symbol == _END_OF_STRING:
                return 0
            to[text.size] = cython.cast(cython.uchar, symbol)
            text.size += 1
            have -= length
        self._used += text.size
        # What is left is the beginning of the code for the end of a string: ones, and fewer than eight.
        return have < 8 and bits & ((cython.cast(uint64_t, 1) << have) - 1) == (cython.cast(uint64_t, 1) << have) - 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _kind_of(self, name: Text) -> cython.int:
        """What a field of that name is."""
        i: cython.int
        for i in range(self._specials):
            if self._special_name[i].size == name.size and not memcmp(self._special_name[i].at, name.at, name.size):
                return self._special_kind[i]
        if not name.size:
            return _NEVER
        for i in range(name.size):
            if not self._in_name[name.at[i]]:
                return _NEVER
        return _OTHER

    @cython.cfunc
    @cython.exceptval(check=False)
    def _legal(self, value: Text) -> cython.bint:
        """Whether a value may stand in a field."""
        i: cython.Py_ssize_t
        illegal: cython.int = 0
        for i in range(value.size):
            illegal |= self._illegal[value.at[i]]
        if illegal or not value.size:
            return not illegal
        return self._at_end[value.at[0]] and self._at_end[value.at[value.size - 1]]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(self) -> cython.int:
        """Take note of the field at hand; whether it may stand where it does, in a plain call."""
        kind: cython.int = self._kind
        value: Text = self._value
        if kind == _NEVER or not self._legal(value):
            return False
        if 0 < kind <= _LAST_PSEUDO:
            return self._take_pseudo(1 << kind)
        self._seen |= _REGULAR | 1 << kind
        if kind == _TE:
            return same(value, _TRAILERS)
        if kind == _CONTENT_TYPE:
            if value.size < 16 or memcmp(value.at, PyBytes_AS_STRING(_GRPC), 16):
                return False
            return value.size == 16 or value.at[16] == 0x2B or value.at[16] == 0x3B
        if kind == _TIMEOUT:
            return self._is_timeout(value)
        if kind == _ENCODING:
            return self._is_encoding(value)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take_pseudo(self, bit: cython.int) -> cython.int:
        """A pseudo-header field: once, and before all others."""
        value: Text = self._value
        if self._seen & (bit | _REGULAR):
            return False
        self._seen |= bit
        if bit == 1 << _METHOD:
            return same(value, _POST)
        if bit == 1 << _SCHEME:
            return value.size > 0
        if bit == 1 << _PATH:
            path: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, value.at), value.size)
            self._found = self._methods.get(path)
            return self._found is not None
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _is_encoding(self, value: Text) -> cython.int:
        """One that we know."""
        encoding: bytes
        for encoding in self._encodings:
            if same(value, encoding):
                return 1
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_timeout(self, value: Text) -> cython.bint:
        """One to eight digits and a unit."""
        i: cython.Py_ssize_t
        if not 2 <= value.size <= 9:
            return False
        for i in range(value.size - 1):
            if not 0x30 <= value.at[i] <= 0x39:
                return False
        for i in range(PyBytes_GET_SIZE(self._units)):
            if value.at[value.size - 1] == cython.cast(cython.uchar, PyBytes_AS_STRING(self._units)[i]):
                return True
        return False
