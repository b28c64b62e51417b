"""Facts of the journal as bytes and back: messages that were given out or are dealt with, and cursors that moved.

The Python twin is `journal.journal_format`, which has the layout.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.libc.stdint import uint64_t

from tandemmq.store.broker.send import new_tuple

_GIVEN: cython.int = 1
_DEALT: cython.int = 3
_MOVED: cython.int = 4
_MOST_BYTES: cython.int = 41
"""Of one fact: its kind, and four numbers."""
_ROOM: cython.int = 8192
_MOST: cython.longlong = 1 << 62
_MOST_GIVEN: cython.longlong = 1 << 20


@cython.cfunc
@cython.exceptval(check=False)
def put(to: cython.p_uchar, number: uint64_t) -> cython.p_uchar:
    """Write a number as LEB128: the place after it."""
    while number > 0x7F:
        to[0] = cython.cast(cython.uchar, number & 0x7F | 0x80)
        number >>= 7
        to += 1
    to[0] = cython.cast(cython.uchar, number)
    return to + 1


@cython.cfunc
@cython.exceptval(-2, check=False)
def natural(number: object, more: cython.int) -> cython.longlong:
    """A number and a few more; -1: it is negative then, or too large."""
    overflow: cython.int = 0
    value: cython.longlong = PyLong_AsLongLongAndOverflow(number, cython.address(overflow))
    return value + more if not overflow and -more <= value <= _MOST else -1


def encode_run(
    facts: list, first: cython.Py_ssize_t, given: type, dealt: type, places: dict, room: cython.Py_ssize_t
) -> tuple[int, bytes]:
    """Facts from the `first` on, up to one that is neither given nor dealt, or of a place without a number.

    `places`: their numbers; `room`: bytes that there may be. How many facts, and their bytes.
    """
    if room < _MOST_BYTES:
        return 0, b""
    data: cython.uchar[8192]
    to: cython.p_uchar = data
    end: cython.p_uchar = data + (room if room < _ROOM else _ROOM) - _MOST_BYTES
    at: cython.Py_ssize_t = first
    known: object = None
    place: uint64_t = 0
    kind: cython.int
    i: cython.int
    numbers: cython.longlong[3]
    while at < len(facts) and to <= end:
        fact: object = facts[at]
        if type(fact) is dealt:
            kind = _DEALT
        elif type(fact) is given:
            kind = _GIVEN
        else:
            break
        fields: tuple = cython.cast(tuple, fact)
        if fields[0] is not known:
            found: object = places.get(fields[0])
            if found is None:
                break
            known, place = fields[0], found
        numbers[0] = natural(fields[1], 0)
        numbers[1] = natural(fields[2], 0)
        numbers[2] = natural(fields[3], kind == _DEALT)
        if numbers[0] < 0 or numbers[1] < 0 or numbers[2] < 0:
            break
        to[0] = cython.cast(cython.uchar, kind)
        to = put(to + 1, place)
        for i in range(3):
            to = put(to, numbers[i])
        at += 1
    return at - first, PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data), to - data)


@cython.cfunc
@cython.exceptval(check=False)
def get(at: cython.p_const_uchar, end: cython.p_const_uchar, number: cython.pointer(uint64_t)) -> cython.p_const_uchar:
    """Read a number of at most nine bytes, so below 2^63: the place after it; NULL: there is none."""
    value: uint64_t = 0
    shift: cython.int = 0
    while at < end and shift < 63:
        value |= cython.cast(uint64_t, at[0] & 0x7F) << shift
        if at[0] < 0x80:
            number[0] = value
            return at + 1
        at += 1
        shift += 7
    return cython.NULL


def decode_places(body: bytes, at: cython.Py_ssize_t, most: cython.Py_ssize_t, names: list, place: type) -> tuple:
    """Places from the byte `at` on, at `most` so many, up to what cannot be read: the byte after them, and they."""
    data: cython.p_const_uchar = body
    end: cython.p_const_uchar = data + len(body)
    known: cython.Py_ssize_t = len(names)
    read: list = []
    numbers: uint64_t[3]
    i: cython.int
    while at < len(body) and len(read) < most:
        to: cython.p_const_uchar = data + at
        for i in range(3):
            to = get(to, end, cython.address(numbers[i]))
            if to == cython.NULL:
                return at, read
        if numbers[0] >= cython.cast(uint64_t, known) or numbers[1] >= cython.cast(uint64_t, known):
            break
        group: object = names[cython.cast(cython.Py_ssize_t, numbers[0])]
        topic: object = names[cython.cast(cython.Py_ssize_t, numbers[1])]
        read.append(new_tuple(place, (group, topic, numbers[2])))
        at = to - data
    return at, read


def decode_run(
    body: bytes, at: cython.Py_ssize_t, most: cython.Py_ssize_t, places: list, given: type, dealt: type, moved: type
) -> tuple:
    """Facts from the byte `at` on, at `most` so many, up to one of another kind, or that cannot be read.

    The byte after them, and they.
    """
    data: cython.p_const_uchar = body
    end: cython.p_const_uchar = data + len(body)
    known: cython.Py_ssize_t = len(places)
    read: list = []
    numbers: uint64_t[4]
    i: cython.int
    kind: cython.int
    fields: cython.int
    while at < len(body) and len(read) < most:
        kind = data[at]
        if kind not in (_GIVEN, _DEALT, _MOVED):
            break
        fields = 3 if kind == _MOVED else 4
        to: cython.p_const_uchar = data + at + 1
        for i in range(fields):
            to = get(to, end, cython.address(numbers[i]))
            if to == cython.NULL:
                return at, read
        if numbers[0] >= cython.cast(uint64_t, known):
            break
        place: object = places[cython.cast(cython.Py_ssize_t, numbers[0])]
        if kind == _MOVED:
            read.append(new_tuple(moved, (place, numbers[1], numbers[2])))
        elif kind == _DEALT:
            read.append(new_tuple(dealt, (place, numbers[1], numbers[2], cython.cast(cython.longlong, numbers[3]) - 1)))
        elif numbers[2] > cython.cast(uint64_t, _MOST_GIVEN):
            break
        else:
            read.append(new_tuple(given, (place, numbers[1], numbers[2], numbers[3])))
        at = to - data
    return at, read
