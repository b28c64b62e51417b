"""CompiledSendFrames: from the frames of SEND_MESSAGE_V2 to those of their answers. Its Python twin is `sending`.

A header is taken as Java clients write it: its fields in the order of their letters, no escape but those of U+0001 and
U+0002, no number that is longer than Java's, ASCII but in properties. All else is left to Python.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.stdlib import free, malloc, realloc
from cython.cimports.libc.string import memchr, memcmp, memcpy
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
_OUR_VERSION: cython.int = OUR_VERSION
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
_ID_NAME: bytes = b"msgId"
_QUEUE_NAME: bytes = b"queueId"
_OFFSET_NAME: bytes = b"queueOffset"
_TRANSACTION_NAME: bytes = b"transactionId"
_TRUE: bytes = b"true"
_FALSE: bytes = b"false"
_PREFIX: cython.int = 8
"""Bytes of a frame before its header."""
_HEADER_SIZE: cython.int = 0xFFFFFF
_MOST_ANSWER: cython.int = 512
"""Bytes of an answer without its texts that vary."""
_ANSWER_ID: bytes = b'{"code":0,"extFields":{"msgId":"'
_ANSWER_QUEUE: bytes = b'","queueId":"'
_ANSWER_OFFSET: bytes = b'","queueOffset":"'
_ANSWER_REGION: bytes = b'","MSG_REGION":"'
_ANSWER_KEY: bytes = b'","TRACE_ON":"true","transactionId":"'
_ANSWER_NO_KEY: bytes = b'","TRACE_ON":"true'
_ANSWER_OPAQUE: bytes = b'"},"flag":1,"language":"JAVA","opaque":'
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
        self._output = cython.NULL
        if self._text == cython.NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        """Give it back."""
        free(self._text)
        free(self._output)

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
        self._output_size = 0
        if not self._take(start(header), PyBytes_GET_SIZE(header), start(body), PyBytes_GET_SIZE(body), peer, binary):
            return None
        return self._answers()

    def answer_all(self, data: bytes, at: cython.Py_ssize_t, peer: bytes, most: cython.int) -> bytes:
        """The same with the whole frames that begin at a place of bytes as they came, at most so many: their answers.

        `answered` is how many were taken, `position` the place after them; also where it raises, at the next one, and
        `written` gives their answers.
        """
        begin: cython.p_const_uchar = start(data)
        end: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        self._output_size = 0
        self.answered = 0
        self.position = at
        while self.answered < most and end - at >= _PREFIX:
            length: int64_t = big(cython.address(begin[at]), 4)
            word: int64_t = big(cython.address(begin[at + 4]), 4)
            header: cython.Py_ssize_t = word & _HEADER_SIZE
            if length > end - at - 4 or header + 4 > length or word >> 24 > 1:
                break
            first: cython.p_const_uchar = cython.address(begin[at + _PREFIX])
            if not self._take(first, header, first + header, length - 4 - header, peer, word >> 24):
                break
            at += 4 + length
            self.answered += 1
            self.position = at
        return self._answers()

    def written(self) -> bytes:
        """The answers of `answer_all` so far."""
        return self._answers()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(
        self,
        data: cython.p_const_uchar,
        size: cython.Py_ssize_t,
        body: cython.p_const_uchar,
        body_size: cython.Py_ssize_t,
        peer: bytes,
        binary: cython.bint,
    ) -> cython.int:
        """Store a message, and write its answer: 1, or 0 where the frame is not taken. `data`: the header."""
        head: cython.pointer(Header) = cython.address(self._header)
        i: cython.int
        for i in range(_FIELDS):
            head.field[i].at = -1
            head.field[i].size = 0
        head.binary = binary
        if not (self._read_binary(data, size) if binary else self._read_json(data, size)):
            return 0
        if head.flag != 0 and head.flag != _ONE_WAY:
            return 0
        sender: CompiledSender = self._sender
        sender.begin()
        if not self._fill(data):
            return 0
        sender.plain.body = body
        sender.plain.body_size = body_size
        topic: Span = head.field[_TOPIC]
        if not sender.send(cython.address(data[topic.at]), topic.size, peer):
            return 0
        self.taken += 1
        self.waits = sender.waits
        self.end_offset = sender.place.physical_offset + sender.place.size
        if head.flag != _ONE_WAY:
            self._write_answer()
        return 1

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
    def _answers(self) -> bytes:
        """What was written."""
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, self._output), self._output_size)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _write_answer(self) -> cython.int:
        """Append the frame of the answer, with the place of the last message."""
        sender: CompiledSender = self._sender
        key: cython.Py_ssize_t = sender.unique_size if self._header.version >= _TRANSACTION_ID_SINCE else 0
        most: cython.Py_ssize_t = _MOST_ANSWER + key
        most += PyBytes_GET_SIZE(self._digits) + PyBytes_GET_SIZE(self._region) + PyBytes_GET_SIZE(self._tail)
        if self._output_room - self._output_size < most:
            self._grow(most)
        frame: cython.p_uchar = self._output + self._output_size
        begin: cython.p_uchar = frame + _PREFIX
        end: cython.p_uchar = self._binary_answer(begin, key) if self._header.binary else self._json_answer(begin, key)
        put_big(frame, end - begin + 4, 4)
        put_big(frame + 4, (end - begin) | (1 << 24 if self._header.binary else 0), 4)
        self._output_size = end - self._output
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _grow(self, most: cython.Py_ssize_t) -> cython.int:
        """Make room for so many bytes more."""
        room: cython.Py_ssize_t = 2 * self._output_size + most
        grown: cython.p_uchar = cython.cast(cython.p_uchar, realloc(self._output, room))
        if grown == cython.NULL:
            raise MemoryError
        self._output = grown
        self._output_room = room
        return 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _json_answer(self, to: cython.p_uchar, key: cython.Py_ssize_t) -> cython.p_uchar:
        """Write the header in JSON, with so many bytes of the key: the place after it."""
        sender: CompiledSender = self._sender
        to = put_hex(put(put(to, _ANSWER_ID), self._digits), sender.place.physical_offset)
        to = put_decimal(put(to, _ANSWER_QUEUE), sender.plain.queue_id)
        to = put_decimal(put(to, _ANSWER_OFFSET), sender.place.queue_offset)
        to = put(put(to, _ANSWER_REGION), self._region)
        to = put(to, _ANSWER_KEY if key else _ANSWER_NO_KEY)
        memcpy(to, sender.unique, key)
        return put(put_decimal(put(to + key, _ANSWER_OPAQUE), self._header.opaque), self._tail)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _binary_answer(self, to: cython.p_uchar, key: cython.Py_ssize_t) -> cython.p_uchar:
        """Write the binary header, with so many bytes of the key: the place after it."""
        sender: CompiledSender = self._sender
        head: cython.p_uchar = to
        put_big(to, 0, 3)  # code and language
        put_big(to + 3, _OUR_VERSION, 2)
        put_big(to + 5, self._header.opaque & 0xFFFFFFFF, 4)
        put_big(to + 9, 1, 4)
        put_big(to + 13, 0, 4)  # no remark
        value: cython.p_uchar = put_name(to + _HEAD, _ID_NAME)
        to = ended(value, put_hex(put(value, self._digits), sender.place.physical_offset))
        value = put_name(to, _QUEUE_NAME)
        to = ended(value, put_decimal(value, sender.plain.queue_id))
        value = put_name(to, _OFFSET_NAME)
        to = ended(value, put_decimal(value, sender.place.queue_offset))
        value = put_name(to, _REGION_NAME)
        to = ended(value, put(value, self._region))
        value = put_name(to, _TRACE_NAME)
        to = ended(value, put(value, _TRUE))
        if key:
            value = put_name(to, _TRANSACTION_NAME)
            memcpy(value, sender.unique, key)
            to = ended(value, value + key)
        put_big(head + 17, to - head - _HEAD, 4)
        return to


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
@cython.inline
@cython.exceptval(check=False)
def put(to: cython.p_uchar, text: bytes) -> cython.p_uchar:
    """Write a text: the place after it."""
    memcpy(to, start(text), PyBytes_GET_SIZE(text))
    return to + PyBytes_GET_SIZE(text)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_big(to: cython.p_uchar, value: int64_t, size: cython.int) -> cython.void:
    """Write a big-endian number."""
    i: cython.int
    for i in range(size):
        to[size - 1 - i] = value >> 8 * i & 0xFF


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_hex(to: cython.p_uchar, value: int64_t) -> cython.p_uchar:
    """Write 16 hexadecimal digits: the place after them."""
    i: cython.int
    for i in range(16):
        digit: cython.int = value >> 4 * (15 - i) & 15
        to[i] = digit + (ord("0") if digit < 10 else ord("A") - 10)
    return to + 16


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_decimal(to: cython.p_uchar, value: int64_t) -> cython.p_uchar:
    """Write a number: the place after it."""
    rest: int64_t = value
    if value < 0:
        to[0] = ord("-")
        to += 1
        rest = -value
    digits: cython.int = 1
    ahead: int64_t = rest
    while ahead >= 10:
        ahead //= 10
        digits += 1
    i: cython.int
    for i in range(digits):
        to[digits - 1 - i] = ord("0") + rest % 10
        rest //= 10
    return to + digits


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_name(to: cython.p_uchar, name: bytes) -> cython.p_uchar:
    """Begin a field of a binary header: the place of its value."""
    put_big(to, PyBytes_GET_SIZE(name), 2)
    return put(to + 2, name) + 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def ended(value: cython.p_uchar, end: cython.p_uchar) -> cython.p_uchar:
    """End a field of a binary header, whose value lies between these places: the place after it."""
    put_big(value - 4, end - value, 4)
    return end
