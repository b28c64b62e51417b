"""The bytes of a ReceiveResponse with records, and of AcknowledgeRequest and its answer where all is well.

Its Python twins are `delivery_answers.received`, and `direct_delivery` with `delivery_requests`.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.cpython.unicode import PyUnicode_AsUTF8AndSize, PyUnicode_DecodeASCII
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import number_size, put_field, put_number, put_text, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_printable, start

# Fields: number << 3 | wire type. Of ReceiveResponse and ReceivedMessage:
_MESSAGES: cython.int = 1 << 3 | 2
_TOPIC: cython.int = 1 << 3 | 2
_NUMBER: cython.int = 2 << 3
_HANDLE: cython.int = 3 << 3 | 2
_INVISIBLE: cython.int = 4 << 3
_RECORD: cython.int = 5 << 3 | 2
# Of AcknowledgeRequest:
_ASKED_GROUP: cython.int = 1 << 3 | 2
_ASKED_TOPIC: cython.int = 2 << 3 | 2
_ASKED_HANDLE: cython.int = 3 << 3 | 2

_LONGEST_HANDLE: cython.Py_ssize_t = 200
_MOST_NUMBER: cython.longlong = (1 << 31) - 1
_MOST_MS: cython.longlong = 1 << 62
_DONE: bytes = b"\x0a\x00"
"""An AcknowledgeResponse with one outcome: it is dealt with."""


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=False)
def natural(value: object, most: cython.longlong) -> cython.longlong:
    """A number that is no more than `most`; 0 where it is negative, -1 where it is more."""
    overflow: cython.int = 0
    found: cython.longlong = PyLong_AsLongLongAndOverflow(value, cython.address(overflow))
    if overflow or found > most:
        return -1
    return found if found > 0 else 0


@cython.cclass
class CompiledReceived:
    """Writes the answers to receives that want records."""

    def __init__(self, otherwise: object) -> None:
        """`otherwise` writes what is not plain."""
        self._otherwise = otherwise

    def answer(self, batch: object) -> bytes:
        """The bytes of the answer that gives a batch out."""
        messages: object = batch.messages
        if type(messages) is list:
            written: object = encoded(messages)
            if written is not None:
                return written
        return self._otherwise(batch)


@cython.cfunc
def encoded(messages: list) -> bytes:
    """The answer with some messages; None where one of them is not plain."""
    size: cython.Py_ssize_t = 0
    topic_size: cython.Py_ssize_t = 0
    handle_size: cython.Py_ssize_t = 0
    one_size: cython.Py_ssize_t
    record: bytes
    fields: tuple
    for message in messages:
        one_size = size_of(message, cython.address(topic_size), cython.address(handle_size))
        if one_size < 0:
            return None
        size += 1 + number_size(one_size) + one_size
    whole: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
    to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(whole))
    for message in messages:
        fields = cython.cast(tuple, message)
        one_size = size_of(fields, cython.address(topic_size), cython.address(handle_size))
        to[0] = cython.cast(cython.uchar, _MESSAGES)
        to = put_number(to + 1, one_size)
        if topic_size:
            to = put_text(to, _TOPIC, text_at(fields[0]), topic_size)
        to = put_field(to, _NUMBER, natural(fields[2], _MOST_NUMBER))
        if handle_size:
            to = put_text(to, _HANDLE, text_at(fields[3]), handle_size)
        to = put_field(to, _INVISIBLE, natural(fields[4], _MOST_MS))
        record = cython.cast(bytes, fields[1])
        to = put_text(to, _RECORD, start(record), PyBytes_GET_SIZE(record))
    return whole


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def text_at(text: object) -> cython.p_const_uchar:
    """The UTF-8 of a text that has some."""
    size: cython.Py_ssize_t = 0
    return cython.cast(cython.p_const_uchar, PyUnicode_AsUTF8AndSize(text, cython.address(size)))


@cython.cfunc
@cython.exceptval(-2, check=False)
def size_of(
    message: object, topic_size: cython.pointer(cython.Py_ssize_t), handle_size: cython.pointer(cython.Py_ssize_t)
) -> cython.Py_ssize_t:
    """The bytes of a GivenMessage as a ReceivedMessage; -1 where it is not plain."""
    fields: tuple = cython.cast(tuple, message)
    if type(fields[1]) is not bytes or type(fields[0]) is not str or type(fields[3]) is not str:
        return -1
    record: bytes = cython.cast(bytes, fields[1])
    length: cython.Py_ssize_t = PyBytes_GET_SIZE(record)
    number: cython.longlong = natural(fields[2], _MOST_NUMBER)
    invisible_ms: cython.longlong = natural(fields[4], _MOST_MS)
    if not length or number < 1 or invisible_ms < 0:
        return -1
    try:
        PyUnicode_AsUTF8AndSize(fields[0], topic_size)
        PyUnicode_AsUTF8AndSize(fields[3], handle_size)
    except UnicodeEncodeError:  # a half of a surrogate pair: protobuf says what is wrong
        return -1
    size: cython.Py_ssize_t = 1 + number_size(number) + 1 + number_size(length) + length
    if topic_size[0]:
        size += 1 + number_size(topic_size[0]) + topic_size[0]
    if handle_size[0]:
        size += 1 + number_size(handle_size[0]) + handle_size[0]
    if invisible_ms:
        size += 1 + number_size(invisible_ms)
    return size


@cython.cclass
class CompiledHandles:
    """The handles of a request: see `acknowledgements_of_turn.GivenBack`."""

    def answered(self, outcomes: list) -> tuple:
        """See `GivenBack`."""
        for outcome in outcomes:
            if cython.cast(tuple, outcome)[1] is not None:
                return self._otherwise(self.handles).answered(outcomes)
        return (_DONE if len(outcomes) == 1 else _DONE * len(outcomes)), "SUCCESS"


@cython.cfunc
def handles_of(message: bytes, head: cython.pointer(cython.Py_ssize_t), otherwise: object) -> CompiledHandles:
    """The handles of a request, and how long its beginning is, with group and topic; None where it is not plain.

    `otherwise` makes the Python twin of the handles.
    """
    data: cython.p_const_uchar = start(message)
    size: cython.Py_ssize_t = PyBytes_GET_SIZE(message)
    part: Span
    at: cython.Py_ssize_t = 0
    if size == 0 or data[0] != _ASKED_GROUP:
        return None
    at = span(data, 1, size, cython.address(part))
    if not 0 < at < size or data[at] != _ASKED_TOPIC:
        return None
    at = span(data, at + 1, size, cython.address(part))
    if not 0 < at < size:
        return None
    head[0] = at
    handles: list = []
    while at < size:
        if data[at] != _ASKED_HANDLE:
            return None
        at = span(data, at + 1, size, cython.address(part))
        if at < 0 or not 0 < part.size <= _LONGEST_HANDLE or not is_printable(data, part, 0x20):
            return None
        handles.append(PyUnicode_DecodeASCII(cython.cast(cython.p_const_char, data + part.at), part.size, cython.NULL))
    given: CompiledHandles = CompiledHandles()
    given.handles, given._otherwise = handles, otherwise
    return given
