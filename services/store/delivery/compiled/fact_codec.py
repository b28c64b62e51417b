"""Facts of the journal as bytes: messages that were given out, or are dealt with.

The Python twin is `journal.journal_format`, which has the layout.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.libc.stdint import uint64_t

_GIVEN: cython.int = 1
_DEALT: cython.int = 3
_MOST_BYTES: cython.int = 41
"""Of one fact: its kind, and four numbers."""
_ROOM: cython.int = 8192
_MOST: cython.longlong = 1 << 62


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
