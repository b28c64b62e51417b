"""An AckMessageRequest, read from its bytes, and the answer to it where all is well. Its Python twin is `acks`.

Taken are requests of a group, a topic, and entries that have a handle, an id or none, and no more, in printable ASCII.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.unicode import PyUnicode_DecodeASCII
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import put_number, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_printable, start, text_of

# Fields: number << 3 | wire type. Of AckMessageRequest, AckMessageEntry and AckMessageResponse:
_GROUP: cython.int = 1 << 3 | 2
_TOPIC: cython.int = 2 << 3 | 2
_ENTRIES: cython.int = 3 << 3 | 2
_ID: cython.int = 1 << 3 | 2
_HANDLE: cython.int = 2 << 3 | 2
_ANSWERED: cython.int = 2 << 3 | 2

_LONGEST: cython.Py_ssize_t = 8 << 10
"""Bytes of an entry that is taken."""
_OK: bytes = b"\x0a\x08\x08\xa0\x9c\x01\x12\x02OK"
"""The field 1, a Status with code OK."""
_OK_OF_ENTRY: bytes = b"\x1a" + _OK[1:]
"""The same as field 3."""
_STATUS_SIZE: cython.int = 10


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def entry_of(data: cython.p_const_uchar, entry: Span, handle: cython.pointer(Span)) -> cython.int:
    """Find the handle of an entry: 1, or 0 where it is not plain."""
    end: cython.Py_ssize_t = entry.at + entry.size
    at: cython.Py_ssize_t = entry.at
    identity: Span
    if not 0 < entry.size <= _LONGEST:
        return 0
    if data[at] == _ID:
        at = span(data, at + 1, end, cython.address(identity))
        if at < 0 or not identity.size or not is_printable(data, identity, 0x20):
            return 0
    if at >= end or data[at] != _HANDLE or span(data, at + 1, end, handle) != end:
        return 0
    return handle.size and is_printable(data, handle[0], 0x20)


def read(message: bytes) -> tuple[bytes, bytes, list[str], bytes] | None:
    """Group and topic as bytes of a Resource, all handles, and the answer where each is well. None: it is not taken."""
    data: cython.p_const_uchar = start(message)
    size: cython.Py_ssize_t = PyBytes_GET_SIZE(message)
    at: cython.Py_ssize_t = 0
    group: Span
    topic: Span
    entry: Span
    handle: Span
    group.at = topic.at = -1
    handles: list = []
    count: cython.Py_ssize_t = 0
    field: cython.int
    while at < size:
        field = data[at]
        at = span(data, at + 1, size, cython.address(entry))
        if at < 0:
            return None
        if field == _ENTRIES:
            if not entry_of(data, entry, cython.address(handle)):
                return None
            handles.append(
                PyUnicode_DecodeASCII(cython.cast(cython.p_const_char, data + handle.at), handle.size, cython.NULL)
            )
            count += 1
        elif field == _GROUP and group.at < 0:
            group = entry
        elif field == _TOPIC and topic.at < 0:
            topic = entry
        else:
            return None
    if group.at < 0 or topic.at < 0 or not count:
        return None
    return text_of(data, group), text_of(data, topic), handles, answered(data, size, count)


@cython.cfunc
def answered(data: cython.p_const_uchar, size: cython.Py_ssize_t, count: cython.Py_ssize_t) -> bytes:
    """The AckMessageResponse with OK for each of the entries that were read: the entry as it came, and its status."""
    room: bytes = PyBytes_FromStringAndSize(cython.NULL, _STATUS_SIZE + size + count * (_STATUS_SIZE + 2))
    begin: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(room))
    to: cython.p_uchar = begin
    at: cython.Py_ssize_t = 0
    entry: Span
    entry.at = entry.size = 0
    field: cython.int
    memcpy(to, start(_OK), _STATUS_SIZE)
    to += _STATUS_SIZE
    while at < size:
        field = data[at]
        at = span(data, at + 1, size, cython.address(entry))
        if field != _ENTRIES:
            continue
        to[0] = cython.cast(cython.uchar, _ANSWERED)
        to = put_number(to + 1, entry.size + _STATUS_SIZE)
        memcpy(to, data + entry.at, entry.size)
        to += entry.size
        memcpy(to, start(_OK_OF_ENTRY), _STATUS_SIZE)
        to += _STATUS_SIZE
    return room[: to - begin]
