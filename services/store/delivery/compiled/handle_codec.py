"""The texts of receipt handles, written and read. The Python twin, which has the layout, is `receiving.handles`.

A handle's first nine bytes, and so the first twelve characters of its text, are the same for all of a group and topic.
The caller has them, and their CRC.
"""

import cython
from cython.cimports.cpython.dict import PyDict_GetItem
from cython.cimports.cpython.long import PyLong_AsUnsignedLongLongMask
from cython.cimports.cpython.object import PyObject
from cython.cimports.cpython.unicode import (
    PyUnicode_1BYTE_DATA,
    PyUnicode_GET_LENGTH,
    PyUnicode_New,
)
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcmp, memcpy

from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.ledger.progress import MOST_NUMBER

_NUMBER: uint64_t = MOST_NUMBER
"""The bits of an OpenEntry that are its number."""
_PREFIX: cython.int = 12
"""Characters of the text that are the same for all of a group and topic."""
_LONGEST: cython.int = 200
_NUMBERS: cython.int = 5
_MOST_BYTES: cython.int = 9
"""Bytes of the longest number that is read."""
_CHECK: cython.int = 4


def _make_tables() -> None:
    i: cython.int
    check: cython.uint
    digits: bytes = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for i in range(256):
        check = i
        for _ in range(8):
            check = (check >> 1) ^ (0xEDB88320 if check & 1 else 0)
        _CRC[i] = check
        _VALUES[i] = -1
    for i in range(64):
        _DIGITS[i] = digits[i]
        _VALUES[digits[i]] = i


_make_tables()


@cython.cfunc
@cython.exceptval(check=False)
def check_of(before: cython.uint, data: cython.p_const_uchar, size: cython.int) -> cython.uint:
    """The CRC-32 of bytes that follow some whose CRC is `before`."""
    check: cython.uint = before ^ 0xFFFFFFFF
    i: cython.int
    for i in range(size):
        check = (check >> 8) ^ _CRC[(check ^ data[i]) & 0xFF]
    return check ^ 0xFFFFFFFF


@cython.cfunc
@cython.exceptval(check=False)
def put_text(to: cython.p_uchar, data: cython.p_const_uchar, size: cython.int) -> cython.p_uchar:
    """Write bytes as base64 for URLs, without padding: the place after it."""
    i: cython.int = 0
    group: cython.uint
    while i + 2 < size:
        group = cython.cast(cython.uint, data[i]) << 16 | cython.cast(cython.uint, data[i + 1]) << 8 | data[i + 2]
        to[0] = _DIGITS[group >> 18]
        to[1] = _DIGITS[group >> 12 & 63]
        to[2] = _DIGITS[group >> 6 & 63]
        to[3] = _DIGITS[group & 63]
        to += 4
        i += 3
    if i < size:
        group = cython.cast(cython.uint, data[i]) << 16
        if i + 1 < size:
            group |= cython.cast(cython.uint, data[i + 1]) << 8
        to[0] = _DIGITS[group >> 18]
        to[1] = _DIGITS[group >> 12 & 63]
        to += 2
        if i + 1 < size:
            to[0] = _DIGITS[group >> 6 & 63]
            to += 1
    return to


@cython.cfunc
@cython.exceptval(check=False)
def bytes_of(text: cython.p_const_uchar, size: cython.int, to: cython.p_uchar) -> cython.int:
    """Read base64 for URLs: how many bytes, or -1 where it is none, or has bits after the last byte."""
    i: cython.int
    bits: cython.int = 0
    count: cython.int = 0
    value: cython.int
    group: cython.uint = 0
    if size % 4 == 1:
        return -1
    for i in range(size):
        value = _VALUES[text[i]]
        if value < 0:
            return -1
        group = group << 6 | cython.cast(cython.uint, value)
        bits += 6
        if bits >= 8:
            bits -= 8
            to[count] = cython.cast(cython.uchar, group >> bits)
            group &= (cython.cast(cython.uint, 1) << bits) - 1
            count += 1
    return -1 if group else count


def encode(
    prefix: str,
    check: cython.uint,
    shown: cython.int,
    queue: uint64_t,
    offset: uint64_t,
    number: uint64_t,
    resets: uint64_t,
    start: uint64_t,
) -> str:
    """The text of a handle. `prefix`, `check`: the text of its first nine bytes, and their CRC-32."""
    data: cython.uchar[64]
    at: cython.int = 1
    i: cython.int
    rest: uint64_t
    numbers: uint64_t[5]
    numbers[0] = queue
    numbers[1] = offset
    numbers[2] = number
    numbers[3] = resets
    numbers[4] = start
    data[0] = cython.cast(cython.uchar, shown)
    for i in range(5):
        rest = numbers[i]
        while rest > 0x7F:
            data[at] = cython.cast(cython.uchar, rest & 0x7F | 0x80)
            rest >>= 7
            at += 1
        data[at] = cython.cast(cython.uchar, rest)
        at += 1
    check = check_of(check, data, at)
    for i in range(4):
        data[at + i] = cython.cast(cython.uchar, check >> (24 - 8 * i) & 0xFF)
    at += 4
    text: str = PyUnicode_New(_PREFIX + (at * 4 + 2) // 3, 127)
    to: cython.p_uchar = cython.cast(cython.p_uchar, PyUnicode_1BYTE_DATA(text))
    memcpy(to, PyUnicode_1BYTE_DATA(prefix), _PREFIX)
    put_text(to + _PREFIX, data, at)
    return text


def encode_run(
    prefix: str, check: cython.uint, queue: uint64_t, offsets: list, number: uint64_t, resets: uint64_t, start: uint64_t
) -> list[str]:
    """The texts of handles of the topic that was asked for, which differ in their offsets only."""
    return [encode(prefix, check, 0, queue, offset, number, resets, start) for offset in offsets]


def give_run(
    prefix: str,
    check: cython.uint,
    place: object,
    numbers: tuple,
    records: list,
    said: tuple,
    messages: list,
    shares: list,
    kinds: tuple,
) -> cython.Py_ssize_t:
    """Put messages of a place into an answer, all given for the first time; see `Receiver`: the bytes of their records.

    `numbers`: resets and start. `said`: topic and invisible time of each. `kinds`: GivenMessage and Share.
    """
    given, share = kinds
    topic, invisible_ms = said
    resets: object = numbers[0]
    queue: uint64_t = cython.cast(tuple, place)[2]
    of_resets: uint64_t = resets
    start: uint64_t = numbers[1]
    at: uint64_t
    size: cython.Py_ssize_t = 0
    for offset, record in records:
        at = offset
        text: str = encode(prefix, check, 0, queue, at, 1, of_resets, start)
        messages.append(new_tuple(given, (topic, record, 1, text, invisible_ms)))
        shares.append(new_tuple(share, (place, offset, 1, resets)))
        size += len(cython.cast(bytes, record))
    return size


@cython.cfunc
@cython.exceptval(-1, check=False)
def numbers_of(text: str, prefix: str, check: cython.uint, numbers: cython.pointer(uint64_t)) -> cython.int:
    """Read queue, offset, number, resets and start of a handle: 1, or 0 where it is another one, or none."""
    if not text.isascii():
        return 0
    size: cython.Py_ssize_t = PyUnicode_GET_LENGTH(text)
    chars: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyUnicode_1BYTE_DATA(text))
    data: cython.uchar[160]
    i: cython.int
    at: cython.int = 1
    end: cython.int
    shift: cython.int
    if not _PREFIX < size <= _LONGEST or memcmp(chars, PyUnicode_1BYTE_DATA(prefix), _PREFIX):
        return 0
    end = bytes_of(chars + _PREFIX, cython.cast(cython.int, size - _PREFIX), data) - _CHECK
    if end < 1 + _NUMBERS or data[0]:
        return 0
    check = check_of(check, data, end)
    for i in range(4):
        if data[end + i] != check >> (24 - 8 * i) & 0xFF:
            return 0
    for i in range(5):
        numbers[i] = 0
        shift = 0
        while True:
            if at == end or shift == 7 * _MOST_BYTES:
                return 0
            numbers[i] |= cython.cast(uint64_t, data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
    return at == end


def decode(text: str, prefix: str, check: cython.uint) -> tuple[int, int, int, int, int] | None:
    """Queue, offset, number, resets and start of a handle of the topic that was asked for.

    None: it is another one, or none; its Python twin says which.
    """
    numbers: uint64_t[5]
    if not numbers_of(text, prefix, check, numbers):
        return None
    return numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]


def take(
    texts: object,
    prefix: str,
    check: cython.uint,
    start: int64_t,
    done: dict,
    state_of: object,
    refusal: object,
    outcome: object,
) -> list:
    """What becomes of handles that are given back, whatever the time; see `Acknowledger`.

    The offsets of messages that are dealt with are put into `done`, by place. `state_of` gives place, reset count and
    entries of a queue, or None; `refusal` decides about a handle that is not one of this start, or does not count.
    """
    numbers: uint64_t[5]
    outcomes: list = []
    known: int64_t = -1
    entries: dict = None
    resets: uint64_t = 0
    place: object = None
    entry: cython.pointer(PyObject)
    for text in texts:
        error: object = None
        if start >= 0 and numbers_of(text, prefix, check, numbers) and numbers[4] == cython.cast(uint64_t, start):
            if cython.cast(int64_t, numbers[0]) != known:
                known = cython.cast(int64_t, numbers[0])
                place, resets, entries = state_of(numbers[0])
            offset: object = numbers[1]
            entry = cython.NULL
            if entries is not None and resets == numbers[3]:
                entry = PyDict_GetItem(entries, offset)
            if (
                entry == cython.NULL
                or PyLong_AsUnsignedLongLongMask(cython.cast(object, entry)) & _NUMBER != numbers[2]
            ):
                error = refusal(text)
            else:
                offsets: object = done.get(place)
                if offsets is None:
                    done[place] = {offset}
                else:
                    offsets.add(offset)
        else:
            error = refusal(text)
        outcomes.append(new_tuple(outcome, (text, error)))
    return outcomes
