"""CompiledSendFrames: from the frame of a SEND_MESSAGE_V2 to that of its answer. Its Python twin is `sending`.

A header is taken as Java clients write it: its fields in the order of their letters, no escape but those of U+0001 and
U+0002, no number that is longer than Java's, ASCII but in properties. All else is left to Python.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memchr, memcmp
from cython.cimports.tandemmq.store.broker.compiled.sender import CompiledSender
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, start

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.versions import OUR_VERSION, V5_0_0
from tandemmq.store.format.properties import CLUSTER, MSG_REGION, TRACE_ON
from tandemmq.store.format.record_encoder import MAX_PROPERTIES
from tandemmq.store.fronts.remoting.sent_message import REGION

# Fields of the header: the place of their letters. d, k, l, m and n mean nothing to a topic that is there.
_GROUP: cython.int = 0
_TOPIC: cython.int = 1
_QUEUE_ID: cython.int = 4
_SYS_FLAG: cython.int = 5
_BORN: cython.int = 6
_FLAG: cython.int = 7
_PROPERTIES: cython.int = 8
_TIMES: cython.int = 9
_FIELDS: cython.int = 14
_DEMANDED: cython.int = 0b11110011
"""a, b, e, f, g and h."""
_NUMBERS: cython.int = 0b101011111000
"""d to h, j and l."""
_FLAGS: cython.int = 0b1010000000000
"""k and m."""
_INT_DIGITS: cython.int = 9
_LONG_DIGITS: cython.int = 18

_ONE_WAY: cython.int = 2
_HEAD: cython.int = 21
"""Bytes of a binary header before its fields."""
_CODE: cython.int = RequestCode.SEND_MESSAGE_V2
_TRANSACTION_ID_SINCE: cython.int = V5_0_0
_LANGUAGES: cython.int = 14
_BEGIN: bytes = b'{"code":310,"extFields":{'
_MIDDLE: bytes = b'},"flag":'
_LANGUAGE: bytes = b',"language":"'
_OPAQUE: bytes = b'","opaque":'
_VERSION: bytes = b',"serializeTypeCurrentRPC":"JSON","version":'
_ESCAPE: bytes = b"\\u000"
_RETRY: bytes = b"%RETRY%"
_REGION_NAME: bytes = MSG_REGION.encode()
_TRACE_NAME: bytes = TRACE_ON.encode()
_CLUSTER_NAME: bytes = CLUSTER.encode()
_TRUE: bytes = b"true"
_FALSE: bytes = b"false"
_MOST_NAMES: cython.int = 64
_MOST_TEXT: cython.int = MAX_PROPERTIES


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def after(
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
def whole(
    data: cython.p_const_uchar, at: cython.Py_ssize_t, size: cython.Py_ssize_t, value: cython.pointer(int64_t)
) -> cython.Py_ssize_t:
    """Read a number of JSON, which has at most nine digits: the place after it, or -1."""
    if at < 0:
        return -1
    negative: cython.bint = at < size and data[at] == ord("-")
    first: cython.Py_ssize_t = at + negative
    at = first
    result: int64_t = 0
    while at < size and data[at] >= ord("0") and data[at] <= ord("9") and at - first < _INT_DIGITS:
        result = result * 10 + (data[at] - ord("0"))
        at += 1
    if at == first or (data[first] == ord("0") and (at - first > 1 or negative)):
        return -1
    value[0] = -result if negative else result
    return at


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_number(data: cython.p_const_uchar, field: Span, most: cython.int) -> cython.int:
    """Whether a field is a number of so many digits, with a sign or without."""
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t = 1 if field.size and data[field.at] == ord("-") else 0
    if field.size == first or field.size - first > most:
        return 0
    for i in range(first, field.size):
        if data[field.at + i] < ord("0") or data[field.at + i] > ord("9"):
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def value_of(data: cython.p_const_uchar, field: Span) -> int64_t:
    """The value of a field that is a number."""
    i: cython.Py_ssize_t
    negative: cython.bint = data[field.at] == ord("-")
    result: int64_t = 0
    for i in range(1 if negative else 0, field.size):
        result = result * 10 + (data[field.at + i] - ord("0"))
    return -result if negative else result


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_flag(data: cython.p_const_uchar, field: Span) -> cython.int:
    """Whether a field is `true` or `false`."""
    end: cython.Py_ssize_t = field.at + field.size
    return after(data, field.at, end, _TRUE) == end or after(data, field.at, end, _FALSE) == end


@cython.cclass
class CompiledSendFrames:
    """See the module."""

    def __cinit__(self) -> None:
        """Take the room for the text of properties."""
        self._text = cython.cast(cython.p_uchar, malloc(_MOST_TEXT))
        if self._text == cython.NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        """Give it back."""
        free(self._text)

    def __init__(self, sender: CompiledSender, cluster: str) -> None:
        """`cluster`: what each message gets as property."""
        self._sender = sender
        self._digits = sender.digits
        self._cluster = cluster.encode()
        self._region = REGION.encode()
        self._tail = b',"serializeTypeCurrentRPC":"JSON","version":%d}' % OUR_VERSION

    def answer(self, header: bytes, body: bytes, peer: bytes, binary: bool) -> bytes | None:
        """Store the message of a frame, and give the answer with SUCCESS, which is empty where none is wanted.

        None: the frame is not taken, and nothing has changed. `peer`: the packed address of the caller; `binary`: how
        the header is written. `end_offset` is then what to wait for, and `waits` whether the message asks for that.
        """
        data: cython.p_const_uchar = start(header)
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(header)
        head: cython.pointer(Header) = cython.address(self._header)
        i: cython.int
        for i in range(_FIELDS):
            head.field[i].at = -1
            head.field[i].size = 0
        head.binary = binary
        if not (self._read_binary(data, size) if binary else self._read_json(data, size)):
            return None
        if head.flag != 0 and head.flag != _ONE_WAY:
            return None
        sender: CompiledSender = self._sender
        sender.begin()
        if not self._fill(data):
            return None
        sender.plain.body = start(body)
        sender.plain.body_size = PyBytes_GET_SIZE(body)
        topic: Span = head.field[_TOPIC]
        if not sender.send(cython.address(data[topic.at]), topic.size, peer):
            return None
        self.taken += 1
        self.waits = sender.waits
        self.end_offset = sender.place.physical_offset + sender.place.size
        return b"" if head.flag == _ONE_WAY else self._answer()

    # -- reading ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def _read_json(self, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Find the fields of a header in JSON; whether it is one that is taken."""
        head: cython.pointer(Header) = cython.address(self._header)
        at: cython.Py_ssize_t = after(data, 0, size, _BEGIN)
        last: cython.int = -1
        letter: cython.int
        if at < 0:
            return 0
        while at + 6 < size and data[at] == ord('"'):
            letter = data[at + 1] - ord("a")
            if letter <= last or letter >= _FIELDS or memcmp(cython.address(data[at + 2]), b'":"', 3) != 0:
                return 0
            last = letter
            at += 5
            head.field[letter].at = at
            while at < size and data[at] != ord('"'):
                if data[at] < 0x20:
                    return 0
                if data[at] == ord("\\"):
                    if letter != _PROPERTIES or size - at < 6 or memcmp(cython.address(data[at]), start(_ESCAPE), 5):
                        return 0
                    if data[at + 5] != ord("1") and data[at + 5] != ord("2"):
                        return 0
                    at += 5
                elif data[at] >= 0x80 and letter != _PROPERTIES:
                    return 0
                at += 1
            head.field[letter].size = at - head.field[letter].at
            at += 1
            if at >= size or data[at] != ord(","):
                break
            at += 1
            if at < size and data[at] != ord('"'):
                return 0
        at = whole(data, after(data, at, size, _MIDDLE), size, cython.address(head.flag))
        at = after(data, at, size, _LANGUAGE)
        if at < 0:
            return 0
        while at < size and (data[at] == ord("_") or ord("A") <= data[at] <= ord("Z")):
            at += 1
        at = whole(data, after(data, at, size, _OPAQUE), size, cython.address(head.opaque))
        at = whole(data, after(data, at, size, _VERSION), size, cython.address(head.version))
        return at == size - 1 and data[at] == ord("}")

    @cython.cfunc
    @cython.exceptval(check=False)
    def _read_binary(self, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Find the fields of a binary header; whether it is one that is taken."""
        head: cython.pointer(Header) = cython.address(self._header)
        i: cython.Py_ssize_t
        last: cython.int = -1
        letter: cython.int
        if size < _HEAD or big(data, 2) != _CODE or data[2] >= _LANGUAGES or big(cython.address(data[13]), 4) != 0:
            return 0
        head.version = big(cython.address(data[3]), 2)
        head.opaque = cython.cast(cython.int, big(cython.address(data[5]), 4))
        head.flag = big(cython.address(data[9]), 4)
        if head.version > 0x7FFF or _HEAD + big(cython.address(data[17]), 4) != size:
            return 0
        at: cython.Py_ssize_t = _HEAD
        while at < size:
            if size - at < 7 or big(cython.address(data[at]), 2) != 1:
                return 0
            letter = data[at + 2] - ord("a")
            if letter <= last or letter >= _FIELDS:
                return 0
            last = letter
            head.field[letter].at = at + 7
            head.field[letter].size = big(cython.address(data[at + 3]), 4)
            at += 7
            if head.field[letter].size > size - at:
                return 0
            if letter != _PROPERTIES:
                for i in range(head.field[letter].size):
                    if data[at + i] >= 0x80:
                        return 0
            at += head.field[letter].size
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _fill(self, data: cython.p_const_uchar) -> cython.int:
        """Give the fields to the sender: 1, or 0 where they are not plain."""
        head: cython.pointer(Header) = cython.address(self._header)
        sender: CompiledSender = self._sender
        i: cython.int
        field: Span
        for i in range(_FIELDS):
            field = head.field[i]
            if field.at < 0:
                if _DEMANDED >> i & 1:
                    return 0
            elif _NUMBERS >> i & 1:
                if not is_number(data, field, _LONG_DIGITS if i == _BORN else _INT_DIGITS):
                    return 0
            elif _FLAGS >> i & 1 and not is_flag(data, field):
                return 0
        topic: Span = head.field[_TOPIC]
        if not head.field[_GROUP].size or after(cython.address(data[topic.at]), 0, topic.size, _RETRY) > 0:
            return 0
        if head.field[_TIMES].at >= 0 and value_of(data, head.field[_TIMES]) != 0:
            return 0
        queue_id: int64_t = value_of(data, head.field[_QUEUE_ID])
        born: int64_t = value_of(data, head.field[_BORN])
        sender.plain.queue_id = cython.cast(cython.int, queue_id if queue_id > -1 else -1)
        sender.plain.sys_flag = cython.cast(cython.int, value_of(data, head.field[_SYS_FLAG]))
        sender.plain.born_timestamp = born if born > 0 else 0
        sender.plain.flag = cython.cast(cython.int, value_of(data, head.field[_FLAG]))
        return (
            self._add_properties(data)
            and sender.add_own(_REGION_NAME, self._region)
            and sender.add_own(_TRACE_NAME, _TRUE)
            and sender.add_own(_CLUSTER_NAME, self._cluster)
        )

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_properties(self, data: cython.p_const_uchar) -> cython.int:
        """Give the properties to the sender, separator by separator: 1, or 0 where they are not plain."""
        field: Span = self._header.field[_PROPERTIES]
        text: cython.p_uchar = self._text
        size: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t = 0
        if field.size > 2 * _MOST_TEXT:
            return 0
        while i < field.size:
            if size == _MOST_TEXT:
                return 0
            if data[field.at + i] == ord("\\") and not self._header.binary:
                text[size] = data[field.at + i + 5] - ord("0")
                i += 6
            else:
                text[size] = data[field.at + i]
                i += 1
            size += 1
        seen: cython.int = 0
        at: cython.Py_ssize_t = 0
        while at < size:
            end: cython.p_uchar = cython.cast(cython.p_uchar, memchr(text + at, 2, size - at))
            if end == cython.NULL:
                end = text + size
            if seen == _MOST_NAMES or not self._add_pair(text + at, end, seen):
                return 0
            seen += 1
            at = end - text + 1
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_pair(self, begin: cython.p_uchar, end: cython.p_uchar, seen: cython.int) -> cython.int:
        """Give a property to the sender, the one after so many: 1, or 0 where it is not plain."""
        middle: cython.p_uchar = cython.cast(cython.p_uchar, memchr(begin, 1, end - begin))
        if middle == cython.NULL:
            return 0
        size: cython.Py_ssize_t = middle - begin
        earlier: cython.p_uchar = self._text
        _one: cython.int
        for _one in range(seen):
            if earlier[size] == 1 and memcmp(earlier, begin, size) == 0:
                return 0  # it is there twice
            earlier = cython.cast(cython.p_uchar, memchr(earlier, 2, begin - earlier)) + 1
        if is_own(begin, size):
            return 0
        return self._sender.add(begin, size, middle + 1, end - middle - 1)

    # -- writing ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _answer(self) -> bytes:
        """The frame of the answer, with the place of the last message."""
        sender: CompiledSender = self._sender
        place: bytes = self._digits + b"%016X" % sender.place.physical_offset
        queue: bytes = b"%d" % sender.plain.queue_id
        offset: bytes = b"%d" % sender.place.queue_offset
        key: bytes = b""
        if self._header.version >= _TRANSACTION_ID_SINCE:
            key = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, sender.unique), sender.unique_size)
        if self._header.binary:
            return self._binary_answer(place, queue, offset, key)
        return self._json_answer(place, queue, offset, key)

    @cython.cfunc
    def _json_answer(self, place: bytes, queue: bytes, offset: bytes, key: bytes) -> bytes:
        header: bytes = (
            b'{"code":0,"extFields":{"msgId":"' + place + b'","queueId":"' + queue + b'","queueOffset":"' + offset
            + b'","MSG_REGION":"' + self._region + b'","TRACE_ON":"true"'
            + (b',"transactionId":"' + key + b'"' if key else b"")
            + b'},"flag":1,"language":"JAVA","opaque":%d' % self._header.opaque + self._tail
        )  # fmt: skip
        return (len(header) + 4).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header

    @cython.cfunc
    def _binary_answer(self, place: bytes, queue: bytes, offset: bytes, key: bytes) -> bytes:
        fields: bytes = (
            field_of(b"msgId", place) + field_of(b"queueId", queue) + field_of(b"queueOffset", offset)
            + field_of(_REGION_NAME, self._region) + field_of(_TRACE_NAME, _TRUE)
            + (field_of(b"transactionId", key) if key else b"")
        )  # fmt: skip
        header: bytes = (
            b"\0\0\0" + OUR_VERSION.to_bytes(2, "big") + (self._header.opaque & 0xFFFFFFFF).to_bytes(4, "big")
            + b"\0\0\0\1\0\0\0\0" + len(fields).to_bytes(4, "big") + fields
        )  # fmt: skip
        return (len(header) + 4).to_bytes(4, "big") + (1 << 24 | len(header)).to_bytes(4, "big") + header


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def big(data: cython.p_const_uchar, size: cython.int) -> int64_t:
    """A big-endian number without a sign."""
    i: cython.int
    result: uint64_t = 0
    for i in range(size):
        result = result << 8 | data[i]
    return cython.cast(int64_t, result)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_own(name: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
    """Whether it is the name of a property that every message gets here."""
    return (
        (size == PyBytes_GET_SIZE(_REGION_NAME) and memcmp(name, start(_REGION_NAME), size) == 0)
        or (size == PyBytes_GET_SIZE(_TRACE_NAME) and memcmp(name, start(_TRACE_NAME), size) == 0)
        or (size == PyBytes_GET_SIZE(_CLUSTER_NAME) and memcmp(name, start(_CLUSTER_NAME), size) == 0)
    )


@cython.cfunc
def field_of(name: bytes, value: bytes) -> bytes:
    """A field of a binary header."""
    return len(name).to_bytes(2, "big") + name + len(value).to_bytes(4, "big") + value
