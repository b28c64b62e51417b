"""The records that the units of a queue name, copied out of a log file's mapping and compared with these.

Its Python twins are `behind_topic` and `shows_tags_code`, and the reading of `Puller` where tags are wanted. It reads
what these read of a record; where one does not fit its unit, as far as a glance can tell, nothing is given, and Python
finds out what is wrong.
"""

import cython
from cython.cimports.cpython.buffer import PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int32_t, int64_t
from cython.cimports.libc.string import memchr, memcmp, memcpy
from cython.cimports.tandemmq.store.log.compiled.appender import tandem_get32

from tandemmq.store.format.record_encoder import MAGIC_V1, MAGIC_V2
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6
from tandemmq.store.format.unit import UNIT_SIZE

_UNIT: cython.int = UNIT_SIZE
_BODY_SIZE_AT: cython.int = 84
"""Where BODYLENGTH is, with two IPv4 hosts."""
_HEAD: cython.int = _BODY_SIZE_AT + 4
_V6_MORE: cython.int = 12
"""Bytes that an IPv6 host has more."""
_BORN_V6: cython.int = BORN_HOST_V6
_STORE_V6: cython.int = STORE_HOST_V6
_MAGIC_1: cython.uint = MAGIC_V1
_MAGIC_2: cython.uint = MAGIC_V2
_NAME: cython.int = 5
"""Bytes of TAGS and of the separator behind it."""
_AHEAD: cython.int = 4
"""So many records ahead memory is asked for where one begins, which may be anywhere."""


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def has_it_again(
    properties: cython.p_const_uchar, end: cython.p_const_uchar, code: int64_t, last: cython.pointer(Tags)
) -> cython.int:
    """Whether the tag that was found last is at the same place again, and has the code."""
    if last.text == cython.NULL or code != last.code or last.size > end - properties - last.at:
        return 0
    at: cython.p_const_uchar = properties + last.at
    if memcmp(at, last.text, last.size) != 0:
        return 0
    return (at + last.size == end or at[last.size] == 2) and (last.at == 0 or at[-1] == 2)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def shows_tags(
    properties: cython.p_const_uchar, end: cython.p_const_uchar, code: int64_t, last: cython.pointer(Tags)
) -> cython.int:
    """Whether properties have the tag of a code. `last`: the tag that was found last, and where.

    A tag that is not ASCII is left to Python.
    """
    if has_it_again(properties, end, code, last):
        return 1
    at: cython.p_const_uchar = properties
    stop: cython.p_const_uchar
    found: int32_t = 0
    while at < end:
        stop = cython.cast(cython.p_const_uchar, memchr(at, 2, end - at))
        if stop == cython.NULL:
            stop = end
        if stop - at >= _NAME and memcmp(at, b"TAGS\x01", _NAME) == 0:
            last.code = code
            last.at = at - properties
            last.size = stop - at
            last.text = at
            at += _NAME
            while at < stop and at[0] < 0x80:
                found = cython.cast(int32_t, 31 * cython.cast(cython.uint, found) + at[0])
                at += 1
            if at < stop or found != code:
                last.text = cython.NULL
                return 0
            return 1
        at = stop + 1
    return code == 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_named(at: cython.p_const_uchar, named: cython.pointer(Named), last: cython.pointer(Tags)) -> cython.int:
    """Whether the record is the one that a unit names."""
    magic: cython.uint = tandem_get32(at + 4)
    if tandem_get32(at) != named.size or (magic != _MAGIC_1 and magic != _MAGIC_2):
        return 0
    if tandem_get32(at + 12) != cython.cast(cython.uint, named.queue_id):
        return 0
    if tandem_get64(at + 20) != named.number or tandem_get64(at + 28) != named.physical:
        return 0
    flags: cython.uint = tandem_get32(at + 36)
    end: cython.p_const_uchar = at + named.size
    more: cython.int = (_V6_MORE if flags & _BORN_V6 else 0) + (_V6_MORE if flags & _STORE_V6 else 0)
    left: int64_t = named.size - _HEAD - more
    if left < 0:
        return 0
    body: int64_t = tandem_get32(at + _BODY_SIZE_AT + more)
    length: cython.int = 1 if magic == _MAGIC_1 else 2
    if body + length + named.topic_size + 2 > left:
        return 0
    at += _HEAD + more + body
    if (at[0] if length == 1 else at[0] << 8 | at[1]) != named.topic_size:
        return 0
    at += length
    if memcmp(at, named.topic, named.topic_size) != 0:
        return 0
    return shows_tags(at + named.topic_size + 2, end, named.code, last)


@cython.cfunc
@cython.exceptval(check=False)
def within(
    unit: cython.p_const_uchar, count: cython.Py_ssize_t, span: Span, room: int64_t, total: cython.pointer(int64_t)
) -> cython.Py_ssize_t:
    """Count the units, from the first on, whose records lie in a span of the log, within ``room``; -1 as in `read`."""
    i: cython.Py_ssize_t
    place: int64_t
    size: int64_t
    total[0] = 0
    for i in range(count):
        place = tandem_get64(unit)
        size = cython.cast(int32_t, tandem_get32(unit + 8))
        if size <= _HEAD or size > span.largest:
            return -1
        if total[0] + size > room:
            return i
        if place < span.start or place >= span.stop:
            return i if i else -1
        if size > span.stop - place:
            return -1
        total[0] += size
        unit += _UNIT
    return count


def read(
    units: bytes, log: object, start: int64_t, stop: int64_t, topic: bytes, queue_id: cython.int, first: int64_t,
    room: int64_t,
) -> tuple[int, bytes]:  # fmt: skip
    """The records of a file that units name, from the first one on, within ``room`` bytes: how many, and their bytes.

    ``log`` is the file's mapping, which has the log bytes [``start``, ``stop``); ``first`` is the number of the first
    unit. It ends before a record that lies elsewhere. The number is -1 where a record is not the one that its unit
    names, or the first one lies elsewhere.
    """
    view: Py_buffer
    unit: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(units))
    total: int64_t = 0
    last: Tags
    last.text = cython.NULL
    last.code = last.at = last.size = 0
    named: Named
    named.topic = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(topic))
    named.topic_size = PyBytes_GET_SIZE(topic)
    named.queue_id = queue_id
    named.number = first
    PyObject_GetBuffer(log, cython.address(view), PyBUF_SIMPLE)
    data: cython.p_const_uchar = cython.cast(cython.p_const_uchar, view.buf)
    span: Span
    span.start = start
    span.stop = min(stop, start + view.len)
    span.largest = view.len
    count: cython.Py_ssize_t = within(unit, PyBytes_GET_SIZE(units) // _UNIT, span, room, cython.address(total))
    records: bytes = b""
    if count > 0:
        records = PyBytes_FromStringAndSize(cython.NULL, total)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(records))
        end: cython.p_const_uchar = unit + count * _UNIT
        while unit < end:
            if unit + _AHEAD * _UNIT < end:
                tandem_prefetch(data + (tandem_get64(unit + _AHEAD * _UNIT) - start))
            named.physical = tandem_get64(unit)
            named.size = tandem_get32(unit + 8)
            named.code = tandem_get64(unit + 12)
            memcpy(to, data + (named.physical - start), named.size)
            if not is_named(to, cython.address(named), cython.address(last)):
                count = -1
                break
            to += named.size
            unit += _UNIT
            named.number += 1
    PyBuffer_Release(cython.address(view))
    return count, records if count > 0 else b""


@cython.cfunc
@cython.exceptval(-1, check=False)
def is_wanted(wanted: dict, last: cython.pointer(Tags)) -> cython.int:
    """Whether the tag that was found last is wanted: others may have its hash."""
    tag: bytes = wanted.get(last.code)
    if tag is None or last.text == cython.NULL or last.size != _NAME + PyBytes_GET_SIZE(tag):
        return 0
    return memcmp(last.text + _NAME, PyBytes_AS_STRING(tag), PyBytes_GET_SIZE(tag)) == 0


def read_tagged(
    units: bytes, log: object, start: int64_t, stop: int64_t, topic: bytes, queue_id: cython.int, first: int64_t,
    wanted: dict, most: int64_t, room: int64_t, anyway: cython.bint,
) -> tuple[int, int, bool, bytes]:  # fmt: skip
    """The records whose tags are wanted: units that were passed, records, whether there is enough, and their bytes.

    As `read`; ``wanted`` has the tags by their codes, none of which is 0. At most ``most`` records are given, the first
    of them ``anyway``, whether there is ``room`` or not. It ends before one that is wanted and lies elsewhere. -1 units
    where one is no unit of a tag, its record is not the one that it names, or lies elsewhere at the beginning.
    """
    view: Py_buffer
    unit: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(units))
    last: Tags
    last.text = cython.NULL
    last.code = last.at = last.size = 0
    named: Named
    named.topic = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(topic))
    named.topic_size = PyBytes_GET_SIZE(topic)
    named.queue_id = queue_id
    named.number = first
    PyObject_GetBuffer(log, cython.address(view), PyBUF_SIMPLE)
    data: cython.p_const_uchar = cython.cast(cython.p_const_uchar, view.buf)
    stop = min(stop, start + view.len)
    pieces: list = []
    count: int64_t = 0
    total: int64_t = 0
    begin: int64_t = 0
    end: int64_t = 0  # of neighbours in the log that are not copied yet
    full: cython.bint = False
    passed: cython.Py_ssize_t = 0
    number: cython.Py_ssize_t = PyBytes_GET_SIZE(units) // _UNIT
    try:
        while passed < number:
            named.physical = tandem_get64(unit)
            named.size = cython.cast(int32_t, tandem_get32(unit + 8))
            named.code = tandem_get64(unit + 12)
            if named.size <= _HEAD or named.size > view.len or named.code != cython.cast(int32_t, named.code):
                passed = -1
                break
            if named.code in wanted:
                if named.physical < start or named.physical >= stop:
                    passed = passed if passed else -1
                    break
                if named.size > stop - named.physical or not is_named(
                    data + (named.physical - start), cython.address(named), cython.address(last)
                ):
                    passed = -1
                    break
                if is_wanted(wanted, cython.address(last)):
                    if count >= most or (total + named.size > room and (count or not anyway)):
                        full = True
                        break
                    if named.physical != end:
                        if end > begin:
                            pieces.append(
                                PyBytes_FromStringAndSize(
                                    cython.cast(cython.p_const_char, data + (begin - start)), end - begin
                                )
                            )
                        begin = named.physical
                    end = named.physical + named.size
                    count += 1
                    total += named.size
            unit += _UNIT
            passed += 1
            named.number += 1
        if end > begin:
            pieces.append(
                PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data + (begin - start)), end - begin)
            )
    finally:
        PyBuffer_Release(cython.address(view))
    return passed, count, full, b"".join(pieces)
