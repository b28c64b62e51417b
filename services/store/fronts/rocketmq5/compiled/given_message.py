"""CompiledGivenMessage: from the bytes of a record to those of the answer that gives it out.

Its Python twin is `given_message`. Taken are records whose properties have no meaning but those that almost all have,
with a body that clients can read as it is, and that is not so large that its digest is made in a thread.
"""

import hashlib

import cython
from cython.cimports.cpython.buffer import PyBUF_READ
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.memoryview import PyMemoryView_FromMemory
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memchr, memcmp, memcpy
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import put_number
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_among, start, text_of

from tandemmq.store.format import properties as names
from tandemmq.store.format.host import V4_SIZE, V6_SIZE, Host
from tandemmq.store.format.record_encoder import MAGIC_V1, MAGIC_V2, MAX_TOPIC
from tandemmq.store.format.sysflag import BORN_HOST_V6, COMPRESSED, STORE_HOST_V6
from tandemmq.store.fronts.rocketmq5.body_digest import AT_ONCE
from tandemmq.store.fronts.rocketmq5.sent_message import BORN_HOST, INTERNAL, TRACE_CONTEXT

_MAGIC_V1: cython.int = MAGIC_V1 - (1 << 32)
_MAGIC_V2: cython.int = MAGIC_V2 - (1 << 32)
_BORN_V6: cython.int = BORN_HOST_V6
_STORE_V6: cython.int = STORE_HOST_V6
_COMPRESSED: cython.int = COMPRESSED
_FIXED: cython.int = 72
"""Bytes from TOTALSIZE to BODYLENGTH without the two hosts."""
_V4: cython.int = V4_SIZE
_V6: cython.int = V6_SIZE
_LONGEST_TOPIC: cython.int = MAX_TOPIC
_AT_ONCE: cython.Py_ssize_t = AT_ONCE
_MOST_PROPERTIES: cython.Py_ssize_t = 8 << 10
"""Bytes of properties of a record that is taken: those of a message's system properties fit their buffer then."""
_MOST: cython.int = 64
"""Properties of the user's of a record that is taken."""
_LONGEST_HANDLE: cython.Py_ssize_t = 512
_LATEST: int64_t = 1 << 50
"""Milliseconds; a time that is later is Python's."""
_MOST_HOSTS: cython.Py_ssize_t = 4096

# Of `MessageType`, `DigestType` and `Encoding`:
_NORMAL: cython.int = 1
_FIFO: cython.int = 2
_TRANSACTION_KIND: cython.int = 4
_MD5: cython.int = 2
_IDENTITY: cython.int = 1
_GZIP: cython.int = 2

# What properties mean, and places in `_special`:
_TAG: cython.int = 0
_KEYS: cython.int = 1
_ID: cython.int = 2
_GROUP: cython.int = 3
_TRACE: cython.int = 4
_HOST: cython.int = 5
_TRANSACTION: cython.int = 6
_HALF: cython.int = 7
_PLACES: cython.int = 8
_OTHER: cython.int = 8
"""It is the broker's, and no consumer gets it."""
_PYTHON: cython.int = 9
"""Python writes the message."""

_MEANINGS: dict[str, int] = {
    names.TAGS: _TAG, names.KEYS: _KEYS, names.UNIQ_KEY: _ID, names.SHARDING_KEY: _GROUP, TRACE_CONTEXT: _TRACE,
    BORN_HOST: _HOST, names.TRANSACTION_ID: _TRANSACTION, names.TRAN_MSG: _HALF, names.TIMER_DELIVER_MS: _PYTHON,
    names.PRIORITY: _PYTHON, names.DLQ_ORIGIN_TOPIC: _PYTHON,
}  # fmt: skip


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def four(at: cython.p_const_uchar) -> cython.int:
    """An int of a record."""
    return cython.cast(
        cython.int,
        cython.cast(cython.uint, at[0]) << 24
        | cython.cast(cython.uint, at[1]) << 16
        | cython.cast(cython.uint, at[2]) << 8
        | at[3],
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def eight(at: cython.p_const_uchar) -> int64_t:
    """A long of a record."""
    high: int64_t = four(at)
    return (high << 32) | cython.cast(cython.uint, four(at + 4))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def digits(value: int64_t) -> cython.int:
    """Bytes of a number in protobuf."""
    count: cython.int = 1
    while value >= 0x80:
        value >>= 7
        count += 1
    return count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_bytes(to: cython.p_uchar, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.p_uchar:
    """Write a length and so many bytes: the place after them."""
    to = put_number(to, size)
    memcpy(to, data, size)
    return to + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_milliseconds(to: cython.p_uchar, value: int64_t) -> cython.p_uchar:
    """Write a Timestamp or a Duration, with its length: the place after it."""
    begin: cython.p_uchar = to
    to += 1
    if value >= 1000:
        to[0] = 1 << 3
        to = put_number(to + 1, value // 1000)
    if value % 1000:
        to[0] = 2 << 3
        to = put_number(to + 1, value % 1000 * 1000000)
    begin[0] = cython.cast(cython.uchar, to - begin - 1)
    return to


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_keys(to: cython.p_uchar, data: cython.p_const_uchar, keys: Span) -> cython.p_uchar:
    """Write the keys between the blanks of a value: the place after them."""
    at: cython.Py_ssize_t = keys.at
    end: cython.Py_ssize_t = keys.at + keys.size
    blank: cython.p_const_uchar
    key_end: cython.Py_ssize_t
    while keys.size and at < end:
        blank = cython.cast(cython.p_const_uchar, memchr(data + at, 0x20, end - at))
        key_end = end if blank == cython.NULL else blank - data
        if key_end > at:
            to[0] = 2 << 3 | 2
            to = put_bytes(to + 1, data + at, key_end - at)
        at = key_end + 1
    return to


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def entry_size(name: Span, value: Span) -> cython.Py_ssize_t:
    """Bytes of an entry of a map."""
    return 2 + digits(name.size) + name.size + digits(value.size) + value.size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def hexadecimal(digit: cython.int) -> cython.uchar:
    """A digit as text."""
    return cython.cast(cython.uchar, digit + (0x30 if digit < 10 else 0x37))


@cython.cfunc
@cython.exceptval(-1, check=False)
def is_text(data: cython.p_const_uchar, part: Span) -> cython.int:
    """Whether bytes are UTF-8 as protobuf takes it."""
    at: cython.Py_ssize_t
    for at in range(part.at, part.at + part.size):
        if data[at] >= 0x80:
            break
    else:
        return 1
    try:
        text_of(data, part).decode()
    except UnicodeDecodeError:
        return 0
    return 1


@cython.cclass
class CompiledGivenMessage:
    """See the module."""

    def __init__(self) -> None:
        self._meanings = {name.encode(): _OTHER for name in INTERNAL}
        self._meanings.update({name.encode(): meaning for name, meaning in _MEANINGS.items()})
        self._hosts = {}

    def part(self, record: bytes, handle: str, number: int64_t, invisible_ms: int64_t, topic: bytes) -> bytes | None:
        """A ReceiveMessageResponse with the message of a record. None: it is not taken.

        `number`: of the delivery; `topic`: the field of the message as it is to stand in it.
        """
        data: cython.p_const_uchar = start(record)
        if not self._read(data, PyBytes_GET_SIZE(record)) or not self._sort(data):
            return None
        if not 0 < number <= 0x7FFFFFFF or not 0 < invisible_ms < _LATEST:
            return None
        text: bytes = handle.encode()
        if PyBytes_GET_SIZE(text) > _LONGEST_HANDLE:
            return None
        described: cython.Py_ssize_t = self._describe(data, text, number, invisible_ms)
        self.taken += 1
        return self._whole(data, described, topic)

    # -- reading ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def _read(self, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Find the fields of a record: 1, or 0 where they do not fit or are not plain."""
        stored: cython.pointer(Stored) = cython.address(self._stored)
        at: cython.Py_ssize_t
        if size < _FIXED + 2 * _V4 or four(data) != size:
            return 0
        magic: cython.int = four(data + 4)
        flag: cython.int = four(data + 36)
        if magic != _MAGIC_V1 and magic != _MAGIC_V2:
            return 0
        stored.queue_id = four(data + 12)
        stored.queue_offset = eight(data + 20)
        stored.born = eight(data + 40)
        stored.born_host.at = 48
        stored.born_host.size = _V6 if flag & _BORN_V6 else _V4
        at = 48 + stored.born_host.size
        stored.store_host.at = at + 8
        stored.store_host.size = _V6 if flag & _STORE_V6 else _V4
        stored.body.at = _FIXED + stored.born_host.size + stored.store_host.size
        if stored.body.at + 4 > size:
            return 0
        stored.stored = eight(data + at)
        stored.body.size = four(data + stored.body.at - 4)
        if not 0 <= stored.body.size <= _AT_ONCE or stored.body.size > size - stored.body.at - 4:
            return 0
        at = stored.body.at + stored.body.size
        topic: cython.int = data[at] if magic == _MAGIC_V1 else data[at] << 8 | data[at + 1]
        at += topic + (1 if magic == _MAGIC_V1 else 2)
        if topic > _LONGEST_TOPIC or at + 2 > size:
            return 0
        stored.properties.at = at + 2
        stored.properties.size = data[at] << 8 | data[at + 1]
        if at + 2 + stored.properties.size != size or stored.properties.size > _MOST_PROPERTIES:
            return 0
        if stored.queue_id < 0 or stored.queue_offset < 0:
            return 0
        if not 0 <= stored.born < _LATEST or not 0 <= stored.stored < _LATEST:
            return 0
        stored.encoding = _IDENTITY
        if flag & _COMPRESSED:
            if stored.body.size < 2 or data[stored.body.at] != 0x1F or data[stored.body.at + 1] != 0x8B:
                return 0
            stored.encoding = _GZIP
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _sort(self, data: cython.p_const_uchar) -> cython.int:
        """Sort the properties by what they mean: 1, or 0 where one of them is Python's."""
        properties: Span = self._stored.properties
        end: cython.Py_ssize_t = properties.at + properties.size
        at: cython.Py_ssize_t = properties.at
        found: cython.p_const_uchar
        pair_end: cython.Py_ssize_t
        name: Span
        value: Span
        place: cython.int
        self._own = 0
        for place in range(_PLACES):
            self._special[place].size = 0
        if not is_text(data, properties):
            return 0
        while at < end:
            found = cython.cast(cython.p_const_uchar, memchr(data + at, 2, end - at))
            pair_end = end if found == cython.NULL else found - data
            found = cython.cast(cython.p_const_uchar, memchr(data + at, 1, pair_end - at))
            if found != cython.NULL:
                name.at = at
                name.size = found - data - at
                value.at = name.at + name.size + 1
                value.size = pair_end - value.at
                if name.size and value.size and not self._add(data, name, value):
                    return 0
            at = pair_end + 1
        half: Span = self._special[_HALF]
        if half.size and (half.size != 4 or memcmp(data + half.at, b"true", 4) != 0):
            return 0
        return self._special[_ID].size > 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add(self, data: cython.p_const_uchar, name: Span, value: Span) -> cython.int:
        """Keep a property: 1, or 0 where Python has to decide. Of equal names the last one counts: that is Python's."""
        meaning: object = self._meanings.get(text_of(data, name))
        if meaning is None:
            if self._own == _MOST or is_among(data, name, self._name, self._own):
                return 0
            self._name[self._own] = name
            self._value[self._own] = value
            self._own += 1
            return 1
        place: cython.int = meaning
        if place == _OTHER:
            return 1
        if place == _PYTHON or self._special[place].size:
            return 0
        self._special[place] = value
        return 1

    # -- writing ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(check=False)
    def _kind(self) -> cython.int:
        """The MessageType."""
        if self._special[_TRANSACTION].size or self._special[_HALF].size:
            return _TRANSACTION_KIND
        return _FIFO if self._special[_GROUP].size else _NORMAL

    @cython.cfunc
    def _host(self, data: cython.p_const_uchar, packed: Span) -> bytes:
        """A host as text."""
        key: bytes = text_of(data, packed)
        known: object = self._hosts.get(key)
        if known is None:
            if len(self._hosts) >= _MOST_HOSTS:
                self._hosts.clear()
            known = self._hosts[key] = str(Host.unpack(key)).encode()
        return known

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _digest(self, to: cython.p_uchar, data: cython.p_const_uchar) -> cython.int:
        """Write the digest of the body: how many bytes it has."""
        body: Span = self._stored.body
        view: object = PyMemoryView_FromMemory(
            cython.cast(cython.p_char, cython.cast(cython.p_const_char, data + body.at)), body.size, PyBUF_READ
        )
        made: bytes = hashlib.md5(view, usedforsecurity=False).digest()
        sums: cython.p_const_uchar = start(made)
        i: cython.int
        to[0] = 4 << 3 | 2
        to[1] = 36
        to[2] = 1 << 3
        to[3] = _MD5
        to[4] = 2 << 3 | 2
        to[5] = 32
        to += 6
        for i in range(16):
            to[2 * i] = hexadecimal(sums[i] >> 4)
            to[2 * i + 1] = hexadecimal(sums[i] & 15)
        return 38

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _describe(
        self, data: cython.p_const_uchar, handle: bytes, number: int64_t, invisible_ms: int64_t
    ) -> cython.Py_ssize_t:
        """Write the SystemProperties, in the order of their numbers: how many bytes they have."""
        stored: cython.pointer(Stored) = cython.address(self._stored)
        special: cython.pointer(Span) = self._special
        begin: cython.p_uchar = self._system
        to: cython.p_uchar = begin
        host: bytes
        if special[_TAG].size:
            to[0] = 1 << 3 | 2
            to = put_bytes(to + 1, data + special[_TAG].at, special[_TAG].size)
        to = put_keys(to, data, special[_KEYS])
        to[0] = 3 << 3 | 2
        to = put_bytes(to + 1, data + special[_ID].at, special[_ID].size)
        to += self._digest(to, data)
        to[0] = 5 << 3
        to[1] = cython.cast(cython.uchar, stored.encoding)
        to[2] = 6 << 3
        to[3] = cython.cast(cython.uchar, self._kind())
        to[4] = 7 << 3 | 2
        to = put_milliseconds(to + 5, stored.born)
        to[0] = 8 << 3 | 2
        if special[_HOST].size:
            to = put_bytes(to + 1, data + special[_HOST].at, special[_HOST].size)
        else:
            host = self._host(data, stored.born_host)
            to = put_bytes(to + 1, start(host), PyBytes_GET_SIZE(host))
        to[0] = 9 << 3 | 2
        to = put_milliseconds(to + 1, stored.stored)
        to[0] = 10 << 3 | 2
        host = self._host(data, stored.store_host)
        to = put_bytes(to + 1, start(host), PyBytes_GET_SIZE(host))
        to[0] = 12 << 3 | 2
        to = put_bytes(to + 1, start(handle), PyBytes_GET_SIZE(handle))
        if stored.queue_id:
            to[0] = 13 << 3
            to = put_number(to + 1, stored.queue_id)
        to[0] = 14 << 3
        to = put_number(to + 1, stored.queue_offset)
        to[0] = 15 << 3 | 2
        to = put_milliseconds(to + 1, invisible_ms)
        to = put_number(put_number(to, 16 << 3), number)
        if special[_GROUP].size:
            to = put_bytes(put_number(to, 17 << 3 | 2), data + special[_GROUP].at, special[_GROUP].size)
        if special[_TRACE].size:
            to = put_bytes(put_number(to, 18 << 3 | 2), data + special[_TRACE].at, special[_TRACE].size)
        return to - begin

    @cython.cfunc
    def _whole(self, data: cython.p_const_uchar, described: cython.Py_ssize_t, topic: bytes) -> bytes:
        """Put the message together: topic, the user's properties, those of the system, and the body."""
        body: Span = self._stored.body
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(topic) + 1 + digits(described) + described
        entry: cython.Py_ssize_t
        i: cython.int
        for i in range(self._own):
            entry = entry_size(self._name[i], self._value[i])
            size += 1 + digits(entry) + entry
        if body.size:
            size += 1 + digits(body.size) + body.size
        whole: bytes = PyBytes_FromStringAndSize(cython.NULL, 1 + digits(size) + size)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(whole))
        to[0] = 2 << 3 | 2
        to = put_number(to + 1, size)
        memcpy(to, start(topic), PyBytes_GET_SIZE(topic))
        to += PyBytes_GET_SIZE(topic)
        for i in range(self._own):
            to[0] = 2 << 3 | 2
            to = put_number(to + 1, entry_size(self._name[i], self._value[i]))
            to[0] = 1 << 3 | 2
            to = put_bytes(to + 1, data + self._name[i].at, self._name[i].size)
            to[0] = 2 << 3 | 2
            to = put_bytes(to + 1, data + self._value[i].at, self._value[i].size)
        to[0] = 3 << 3 | 2
        to = put_bytes(to + 1, self._system, described)
        if body.size:
            to[0] = 4 << 3 | 2
            put_bytes(to + 1, data + body.at, body.size)
        return whole
