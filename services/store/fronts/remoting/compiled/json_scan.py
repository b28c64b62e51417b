"""CompiledJsonScan: the typed fields of one kind of request, out of a header in JSON. Its Python twin is `HeaderScan`.

Fields may come in any order, others beside them. What has an escape, or is not ASCII, is left to Python, as is a number
that is longer than Java's, a field that comes twice, and one that is demanded and missing.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.cpython.unicode import PyUnicode_DecodeASCII
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.store.fronts.compiled.spans import start

from tandemmq.common.wire.remoting.header_scan import FieldKind

_INT_DIGITS: cython.int = 9
_ONE_WAY: cython.int = 2
_LARGEST: cython.int = 2147483647
_LARGEST_INT: bytes = b"2147483647"
_MIDDLE: bytes = b'},"flag":'
_LANGUAGE: bytes = b',"language":"'
_OPAQUE: bytes = b'","opaque":'
_VERSION: bytes = b',"serializeTypeCurrentRPC":"JSON","version":'


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def behind(
    data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, expected: bytes
) -> cython.Py_ssize_t:
    """The place after what must stand at one, or -1."""
    length: cython.Py_ssize_t = PyBytes_GET_SIZE(expected)
    if at < 0 or length > size - at or memcmp(cython.address(data[at]), PyBytes_AS_STRING(expected), length) != 0:
        return -1
    return at + length


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def quoted_end(data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where a text ends that has begun: at its quote; -1 where it is not plain."""
    while at < size and data[at] != ord('"'):
        if data[at] < 0x20 or data[at] >= 0x80 or data[at] == ord("\\"):
            return -1
        at += 1
    return at if at < size else -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def digits(
    data: cython.p_const_uchar,
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    most: cython.int,
    value: cython.pointer(int64_t),
) -> cython.Py_ssize_t:
    """Read a number of so many digits, with a sign or without: the place after it, or -1."""
    if at < 0:
        return -1
    negative: cython.bint = at < end and data[at] == ord("-")
    first: cython.Py_ssize_t = at + negative
    result: int64_t = 0
    at = first
    while at < end and at - first < most and data[at] >= ord("0") and data[at] <= ord("9"):
        result = result * 10 + (data[at] - ord("0"))
        at += 1
    value[0] = -result if negative else result
    return at if at > first else -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def plain_number(
    data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, value: cython.pointer(int64_t)
) -> cython.Py_ssize_t:
    """Read a number as JSON writes it: the place after it, or -1."""
    end: cython.Py_ssize_t = digits(data, at, size, _INT_DIGITS, value)
    if end < 0:
        return -1
    negative: cython.bint = data[at] == ord("-")
    if data[at + negative] == ord("0") and (end - at > 1):
        return -1
    return end


@cython.cclass
class CompiledJsonScan:
    """See the module."""

    def __init__(self, code: int, fields: tuple) -> None:
        """`fields`: TypedFields, none of which is a message's properties."""
        self._begin = b'{"code":%d,"extFields":{' % code
        self._names = [one.name.encode() for one in fields]
        most = {FieldKind.TEXT: 0, FieldKind.INT: 9, FieldKind.LONG: 18, FieldKind.FLAG: -1}
        self._most_digits = [most[one.kind] for one in fields]
        self._demanded = [one.demanded for one in fields]

    @cython.ccall
    def scan(self, header: bytes) -> object:
        """See `JsonRead`."""
        data: cython.p_const_uchar = start(header)
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(header)
        at: cython.Py_ssize_t = behind(data, 0, size, self._begin)
        end: cython.Py_ssize_t
        stop: cython.Py_ssize_t
        field: cython.Py_ssize_t
        values: list = [None] * len(self._names)
        while True:
            if at < 0 or at >= size or data[at] != ord('"'):
                return None
            end = quoted_end(data, at + 1, size)
            if end < 0 or size - end < 4 or data[end + 1] != ord(":") or data[end + 2] != ord('"'):
                return None
            stop = quoted_end(data, end + 3, size)
            if stop < 0:
                return None
            field = self._find(data + at + 1, end - at - 1)
            if field >= 0:
                value: object = self._value(field, data, end + 3, stop)
                if value is None or values[field] is not None:
                    return None
                values[field] = value
            at = stop + 1
            if at >= size or data[at] != ord(","):
                break
            at += 1
        for field in range(len(values)):
            if self._demanded[field] and (values[field] is None or values[field] == ""):
                return None
        return self._head(data, at, size, tuple(values))

    @cython.cfunc
    def _head(
        self, data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, values: tuple
    ) -> object:
        """What stands behind the fields, with their values; None where it is not plain."""
        flag: int64_t = 0
        opaque: int64_t = 0
        version: int64_t = 0
        at = behind(
            data, plain_number(data, behind(data, at, size, _MIDDLE), size, cython.address(flag)), size, _LANGUAGE
        )
        if at < 0 or (flag != 0 and flag != _ONE_WAY):
            return None
        end: cython.Py_ssize_t = at
        while end < size and (data[end] == ord("_") or ord("A") <= data[end] <= ord("Z")):
            end += 1
        if end == at:
            return None
        language: object = self._text(data, at, end)
        at = plain_number(data, behind(data, end, size, _OPAQUE), size, cython.address(opaque))
        at = plain_number(data, behind(data, at, size, _VERSION), size, cython.address(version))
        if at != size - 1 or data[at] != ord("}"):
            return None
        return values, opaque, flag, language, version

    @cython.cfunc
    def _text(self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
        """A text that is ASCII."""
        return PyUnicode_DecodeASCII(cython.cast(cython.p_const_char, data + at), end - at, cython.NULL)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _find(self, name: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The place of a field, or -1."""
        one: bytes
        at: cython.Py_ssize_t
        for at in range(len(self._names)):
            one = self._names[at]
            if PyBytes_GET_SIZE(one) == size and memcmp(PyBytes_AS_STRING(one), name, size) == 0:
                return at
        return -1

    @cython.cfunc
    def _value(
        self, field: cython.Py_ssize_t, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> object:
        """The value of a field; None where Python has to look at it."""
        most: cython.int = self._most_digits[field]
        if most == 0:
            return self._text(data, at, end)
        if most < 0:
            if behind(data, at, end, b"true") == end:
                return True
            return False if behind(data, at, end, b"false") == end else None
        number: int64_t = 0
        if most == _INT_DIGITS and behind(data, at, end, _LARGEST_INT) == end:
            return _LARGEST
        return number if digits(data, at, end, most, cython.address(number)) == end else None
