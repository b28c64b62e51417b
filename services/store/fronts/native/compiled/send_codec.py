"""CompiledSendCodec: from the bytes of a SendRequest to those of its SendResponse. Its Python twin is `direct_send`.

A request is taken in the form that protobuf's encoders write: no field twice but keys and properties, none that is
unknown or seldom used, numbers in as few bytes as they need. All else is left to Python.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memchr, memcmp, memcpy
from cython.cimports.tandemmq.store.broker.compiled.sender import CompiledSender
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import map_entry, number, put_field, put_number, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_among, joined, start

from tandemmq.store.format.properties import KEYS, TAGS

# Fields of Message: number << 3 | wire type.
_TOPIC: cython.int = 1 << 3 | 2
_QUEUE_ID: cython.int = 2 << 3
_BODY: cython.int = 3 << 3 | 2
_TAG: cython.int = 4 << 3 | 2
_KEY: cython.int = 5 << 3 | 2
_PROPERTY: cython.int = 6 << 3 | 2
_FLAG: cython.int = 7 << 3
_SYS_FLAG: cython.int = 8 << 3
_BORN: cython.int = 9 << 3
_REPEATABLE: cython.int = 12 << 3
# Of SendRequest.
_MESSAGE: cython.int = 1 << 3 | 2
_NO_WAIT: cython.int = 2 << 3
# Of SendResponse, and of its SendReceipt.
_RECEIPT: cython.int = 1 << 3 | 2
_STATUS: cython.int = 1 << 3
_MESSAGE_ID: cython.int = 2 << 3 | 2
_UNIQUE_KEY: cython.int = 3 << 3 | 2
_RECEIPT_QUEUE: cython.int = 4 << 3
_QUEUE_OFFSET: cython.int = 5 << 3
_PHYSICAL_OFFSET: cython.int = 6 << 3
_STORE_TIMESTAMP: cython.int = 7 << 3
_PUT_OK: cython.int = 1

_MOST: cython.int = 64
"""Keys, and properties, of a request that is taken."""
_MOST_UNIQUE: cython.int = 1024
_SPACE: cython.int = 0x20
_NAME_SIZE: cython.int = 4
_HEX: bytes = b"0123456789ABCDEF"
_TAGS_NAME: bytes = TAGS.encode()
_KEYS_NAME: bytes = KEYS.encode()


@cython.cclass
class CompiledSendCodec:
    """See the module."""

    def __init__(self, sender: CompiledSender) -> None:
        self._sender = sender
        self._digits = sender.digits

    def answer(self, message: bytes, peer: bytes) -> bytes | None:
        """Store the message of a request, and give the answer with PUT_OK; None: it is not taken, and nothing changed.

        `peer`: the packed address of the caller. `end_offset` is then what to wait for, and `waits` whether the request
        asks for that.
        """
        if not self._read(start(message), PyBytes_GET_SIZE(message), peer):
            return None
        self.taken += 1
        self.end_offset = self._sender.place.physical_offset + self._sender.place.size
        return self._receipt()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read(self, data: cython.p_const_uchar, size: cython.Py_ssize_t, peer: bytes) -> cython.int:
        """Read a request, and send its message: 1, or 0 where it is not taken."""
        sender: CompiledSender = self._sender
        request: cython.pointer(Request) = cython.address(self._request)
        message: Span
        value: uint64_t = 0
        if size < 2 or data[0] != _MESSAGE:
            return 0
        at: cython.Py_ssize_t = span(data, 1, size, cython.address(message))
        if at < 0:
            return 0
        if at < size and (
            data[at] != _NO_WAIT or number(data, at + 1, size, cython.address(value)) != size or value > 1
        ):
            return 0
        end: cython.Py_ssize_t = at
        at = message.at
        request.topic.at = request.body.at = request.tag.at = at
        request.topic.size = request.body.size = request.tag.size = 0
        request.seen = request.keys = request.names = 0
        request.tag_is_property = request.keys_are_property = False
        sender.begin()
        while at < end:
            at = self._field(data, at, end)
            if at < 0:
                return 0
        if sender.unique_size > _MOST_UNIQUE or not self._add_shorthands(data):
            return 0
        sender.plain.body = cython.address(data[request.body.at])
        sender.plain.body_size = request.body.size
        self.waits = sender.waits and value == 0
        return sender.send(cython.address(data[request.topic.at]), request.topic.size, peer)

    @cython.cfunc
    @cython.exceptval(-2, check=False)
    def _field(self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Read a field of the message: the place after it, or -1 where it is not plain."""
        request: cython.pointer(Request) = cython.address(self._request)
        field: cython.int = data[at]
        at += 1
        if field >= 0x80:
            return -1
        if field == _KEY:
            if request.keys == _MOST:
                return -1
            at = span(data, at, end, cython.address(request.key[request.keys]))
            return at if at >= 0 and self._key(data) else -1
        if field == _PROPERTY:
            entry: Span
            at = span(data, at, end, cython.address(entry))
            return at if at >= 0 and self._property(data, entry) else -1
        bit: cython.int = 1 << (field >> 3)
        if request.seen & bit:
            return -1
        request.seen |= bit
        if field == _BODY:
            return span(data, at, end, cython.address(request.body))
        if field == _TOPIC:
            return span(data, at, end, cython.address(request.topic))
        if field == _TAG:
            return span(data, at, end, cython.address(request.tag))
        return self._number(field, data, at, end)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _number(
        self, field: cython.int, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read a field that is a number: the place after it, or -1."""
        value: uint64_t = 0
        at = number(data, at, end, cython.address(value))
        if field == _QUEUE_ID:
            self._sender.plain.queue_id = cython.cast(cython.int, value)
        elif field == _FLAG:
            self._sender.plain.flag = cython.cast(cython.int, value)
        elif field == _SYS_FLAG:
            self._sender.plain.sys_flag = cython.cast(cython.int, value)
        elif field == _BORN and not value >> 63:
            self._sender.plain.born_timestamp = cython.cast(int64_t, value)
        elif field == _REPEATABLE:
            self._sender.repeatable = value != 0
        else:
            return -1
        return at

    @cython.cfunc
    @cython.exceptval(check=False)
    def _key(self, data: cython.p_const_uchar) -> cython.int:
        """One more key was read; whether it is one."""
        request: cython.pointer(Request) = cython.address(self._request)
        key: Span = request.key[request.keys]
        request.keys += 1
        return key.size and memchr(cython.address(data[key.at]), _SPACE, key.size) == cython.NULL

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _property(self, data: cython.p_const_uchar, entry: Span) -> cython.int:
        """Read an entry of the map: 1, or 0 where it is not plain."""
        request: cython.pointer(Request) = cython.address(self._request)
        name: Span
        value: Span
        if request.names == _MOST or not map_entry(data, entry, cython.address(name), cython.address(value)):
            return 0
        if is_among(data, name, request.name, request.names):
            return 0
        text: cython.p_const_uchar = cython.address(data[name.at])
        request.name[request.names] = name
        request.names += 1
        if name.size == _NAME_SIZE:
            request.tag_is_property = request.tag_is_property or not memcmp(text, start(_TAGS_NAME), _NAME_SIZE)
            request.keys_are_property = request.keys_are_property or not memcmp(text, start(_KEYS_NAME), _NAME_SIZE)
        return self._sender.add(text, name.size, cython.address(data[value.at]), value.size)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_shorthands(self, data: cython.p_const_uchar) -> cython.int:
        """Add the properties TAGS and KEYS, if the message has a tag and keys: 1, or 0 where that is not plain."""
        request: cython.pointer(Request) = cython.address(self._request)
        tag: Span = request.tag
        if tag.size:
            if request.tag_is_property:
                return 0
            if not self._sender.add(start(_TAGS_NAME), _NAME_SIZE, cython.address(data[tag.at]), tag.size):
                return 0
        if not request.keys:
            return 1
        if request.keys_are_property:
            return 0
        return self._sender.add_own(_KEYS_NAME, joined(data, request.key, request.keys))

    @cython.cfunc
    def _receipt(self) -> bytes:
        """A SendResponse with the place of the last message."""
        sender: CompiledSender = self._sender
        out: cython.uchar[1280]
        physical: uint64_t = sender.place.physical_offset
        digits: cython.Py_ssize_t = PyBytes_GET_SIZE(self._digits)
        i: cython.int
        # Room for the length of the receipt: two bytes, of which a short one needs one.
        first: cython.p_uchar = cython.address(out[3])
        first[0] = _STATUS
        first[1] = _PUT_OK
        first[2] = _MESSAGE_ID
        first[3] = cython.cast(cython.uchar, digits + 16)
        to: cython.p_uchar = first + 4
        memcpy(to, start(self._digits), digits)
        to += digits
        for i in range(16):
            to[15 - i] = start(_HEX)[(physical >> (4 * i)) & 15]
        to[16] = _UNIQUE_KEY
        to = put_number(to + 17, sender.unique_size)
        memcpy(to, sender.unique, sender.unique_size)
        to += sender.unique_size
        to = put_field(to, _RECEIPT_QUEUE, sender.plain.queue_id)
        to = put_field(to, _QUEUE_OFFSET, sender.place.queue_offset)
        to = put_field(to, _PHYSICAL_OFFSET, physical)
        to = put_field(to, _STORE_TIMESTAMP, sender.place.store_timestamp)
        size: cython.Py_ssize_t = to - first
        begin: cython.Py_ssize_t = 1 if size < 0x80 else 0
        out[begin] = _RECEIPT
        put_number(cython.address(out[begin + 1]), size)
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, cython.address(out[begin])), size + 3 - begin)
