"""CompiledSendRequest: what a SendMessageRequest says, from its bytes. Its Python twin is `sent_message`.

Taken is one message of type NORMAL, without a namespace, with text that can be printed in ASCII where the protocol has
a field for it, and with a digest that fits, or none. All else is left to Python.
"""

import hashlib
from collections.abc import Callable

import cython
from cython.cimports.cpython.bytes import PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memchr
from cython.cimports.tandemmq.store.broker.compiled.plain_message import CompiledMessage
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import map_entry, number, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_among, is_printable, joined, start, text_of
from isal.isal_zlib import crc32

from tandemmq.store.format.properties import KEYS, TAGS, UNIQ_KEY
from tandemmq.store.format.sysflag import COMPRESSED
from tandemmq.store.fronts.rocketmq5.body_digest import AT_ONCE, CRC_AT_ONCE
from tandemmq.store.fronts.rocketmq5.sent_message import (
    BORN_HOST,
    INTERNAL,
    LONGEST_HOST,
    LONGEST_ID,
    MOST_PROPERTY_BYTES,
    TRACE_CONTEXT,
)

# Fields: number << 3 | wire type. Of SendMessageRequest, and of Message:
_MESSAGES: cython.int = 1 << 3 | 2
_TOPIC: cython.int = 1 << 3 | 2
_PROPERTY: cython.int = 2 << 3 | 2
_SYSTEM: cython.int = 3 << 3 | 2
_BODY: cython.int = 4 << 3 | 2
# Of Resource:
_NAME: cython.int = 2 << 3 | 2
# Of SystemProperties, Digest and Timestamp:
_TAG: cython.int = 1 << 3 | 2
_KEY: cython.int = 2 << 3 | 2
_MESSAGE_ID: cython.int = 3 << 3 | 2
_DIGEST: cython.int = 4 << 3 | 2
_ENCODING: cython.int = 5 << 3
_KIND: cython.int = 6 << 3
_BORN: cython.int = 7 << 3 | 2
_BORN_HOST: cython.int = 8 << 3 | 2
_QUEUE_ID: cython.int = 13 << 3
_TRACE_CONTEXT: cython.int = 18 << 3 | 2
_FIRST_NUMBER: cython.int = 1 << 3
_CHECKSUM: cython.int = 2 << 3 | 2
_NANOS: cython.int = 2 << 3

_NORMAL: cython.int = 1
_GZIP: cython.int = 2
_CRC32: cython.int = 1
_MD5: cython.int = 2
_DIGEST_AT_ONCE: cython.Py_ssize_t = AT_ONCE
_CRC_AT_ONCE: cython.Py_ssize_t = CRC_AT_ONCE
"""Bytes of a body whose digest is compared here; that of a larger one is Python's."""
_MOST: cython.int = 64
"""Keys, and properties, of a request that is taken."""
_MOST_TOPICS: cython.Py_ssize_t = 4096
"""Topics that are remembered."""
_COMPRESSED: cython.int = COMPRESSED
_LONGEST_ID: cython.int = LONGEST_ID
_LONGEST_HOST: cython.int = LONGEST_HOST
_MOST_BYTES: cython.int = MOST_PROPERTY_BYTES
_LATEST: cython.longlong = 1 << 40
"""Seconds; a time that is later is Python's."""
_MIDDLE_OF_TIME: cython.longlong = 1 << 31
_UNIQUE_NAME: bytes = UNIQ_KEY.encode()
_TAGS_NAME: bytes = TAGS.encode()
_KEYS_NAME: bytes = KEYS.encode()
_TRACE_NAME: bytes = TRACE_CONTEXT.encode()
_HOST_NAME: bytes = BORN_HOST.encode()


@cython.cclass
class CompiledSendRequest:
    """See the module."""

    def __init__(self, built: CompiledMessage, topics: object, takes_normal: Callable[..., bool]) -> None:
        """`built`: gets what a record has of the message. `topics.get` finds a topic by its name, or gives None.

        `look_up_again` must be called when it may give something else. `takes_normal`: whether a topic takes messages
        of type NORMAL.
        """
        self._built = built
        self._table = topics
        self._takes_normal = takes_normal
        self._taken_topics = set()
        self._internal = frozenset(name.encode() for name in INTERNAL)

    def look_up_again(self) -> None:
        """The topics have changed: what is known of them may be so no more."""
        self._taken_topics.clear()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(self, message: bytes) -> cython.int:
        """Whether a request is taken: then the message has been built, and `sent` says where its parts lie."""
        data: cython.p_const_uchar = start(message)
        sent: cython.pointer(Sent) = cython.address(self.sent)
        built: CompiledMessage = self._built
        if not self._read(data, PyBytes_GET_SIZE(message)) or not self._fits(data) or not self._takes(data):
            return 0
        built.begin()
        built.repeatable = True
        if not self._fill(data) or not self._digest(data):
            return 0
        built.plain.body = cython.address(data[sent.body.at])
        built.plain.body_size = sent.body.size
        built.plain.sys_flag = _COMPRESSED if sent.encoding == _GZIP else 0
        built.plain.born_timestamp = sent.born_ms
        return 1

    # -- reading ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read(self, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Find the parts of a request: 1, or 0 where they are not plain."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        message: Span
        if size < 2 or data[0] != _MESSAGES or span(data, 1, size, cython.address(message)) != size:
            return 0
        sent.topic.at = sent.body.at = sent.system.at = -1
        sent.tag.at = sent.message_id.at = sent.digest.at = sent.born_host.at = sent.trace_context.at = -1
        sent.born.at = -1
        sent.tag.size = sent.message_id.size = sent.digest.size = sent.born_host.size = sent.trace_context.size = 0
        sent.encoding = sent.kind = sent.digest_kind = sent.born_ms = -1
        sent.keys = sent.names = 0
        sent.size = 0
        return self._message(data, message.at, size) and self._system(data) and self._times(data)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _message(self, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Find the fields of a Message."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        field: cython.int
        part: Span
        while at < end:
            field = data[at]
            at = span(data, at + 1, end, cython.address(part))
            if at < 0:
                return 0
            if field == _PROPERTY:
                if not self._property(data, part):
                    return 0
            elif field == _SYSTEM and sent.system.at < 0:
                sent.system = part
            elif field == _BODY and sent.body.at < 0:
                sent.body = part
            elif field == _TOPIC and sent.topic.at < 0:
                if not part.size or data[part.at] != _NAME:
                    return 0
                if span(data, part.at + 1, at, cython.address(sent.topic)) != at:
                    return 0
            else:
                return 0
        return sent.system.at >= 0 and sent.topic.size > 0 and sent.topic.at >= 0 and sent.body.at >= 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _property(self, data: cython.p_const_uchar, entry: Span) -> cython.int:
        """Keep a property of the user's: 1, or 0 where it is not plain."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        name: Span
        value: Span
        if sent.names == _MOST or not map_entry(data, entry, cython.address(name), cython.address(value)):
            return 0
        if not is_printable(data, name, 0x21) or is_among(data, name, sent.name, sent.names):
            return 0
        if text_of(data, name) in self._internal:
            return 0
        sent.name[sent.names] = name
        sent.value[sent.names] = value
        sent.size += name.size + value.size
        sent.names += 1
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _system(self, data: cython.p_const_uchar) -> cython.int:
        """Find the fields of SystemProperties."""
        at: cython.Py_ssize_t = self.sent.system.at
        end: cython.Py_ssize_t = at + self.sent.system.size
        field: uint64_t = 0
        while at < end:
            at = number(data, at, end, cython.address(field))
            if at < 0 or field > 0xFF:
                return 0
            at = self._system_field(cython.cast(cython.int, field), data, at, end)
            if at < 0:
                return 0
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _system_field(
        self, field: cython.int, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read a field of SystemProperties: the place after it, or -1."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        value: uint64_t = 0
        if field == _KEY:
            sent.keys += 1
            return span(data, at, end, cython.address(sent.key[sent.keys - 1])) if sent.keys <= _MOST else -1
        if field == _MESSAGE_ID and sent.message_id.at < 0:
            return span(data, at, end, cython.address(sent.message_id))
        if field == _TAG and sent.tag.at < 0:
            return span(data, at, end, cython.address(sent.tag))
        if field == _DIGEST and sent.digest.at < 0:
            return span(data, at, end, cython.address(sent.digest))
        if field == _BORN and sent.born.at < 0:
            return span(data, at, end, cython.address(sent.born))
        if field == _BORN_HOST and sent.born_host.at < 0:
            return span(data, at, end, cython.address(sent.born_host))
        if field == _TRACE_CONTEXT and sent.trace_context.at < 0:
            return span(data, at, end, cython.address(sent.trace_context))
        at = number(data, at, end, cython.address(value))
        if value > 0x7FFFFFFF:
            return -1
        if field == _ENCODING and sent.encoding < 0:
            sent.encoding = cython.cast(int64_t, value)
        elif field == _KIND and sent.kind < 0:
            sent.kind = cython.cast(int64_t, value)
        elif field != _QUEUE_ID:  # the broker chooses
            return -1
        return at

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _times(self, data: cython.p_const_uchar) -> cython.int:
        """Read when the message was made: 1, or 0."""
        born: Span = self.sent.born
        end: cython.Py_ssize_t = born.at + born.size
        at: cython.Py_ssize_t = born.at
        seconds: uint64_t = 0
        nanos: uint64_t = 0
        self.sent.born_ms = 0
        if born.at < 0:
            return 1
        if at < end and data[at] == _FIRST_NUMBER:
            at = number(data, at + 1, end, cython.address(seconds))
        if 0 <= at < end and data[at] == _NANOS:
            at = number(data, at + 1, end, cython.address(nanos))
        if at != end or seconds > cython.cast(uint64_t, _LATEST) or nanos >= cython.cast(uint64_t, _MIDDLE_OF_TIME):
            return 0
        self.sent.born_ms = cython.cast(int64_t, seconds * 1000 + nanos // 1000000)
        return 1

    # -- checks -----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _fits(self, data: cython.p_const_uchar) -> cython.int:
        """Whether what the protocol has fields for is plain."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        i: cython.int
        if sent.kind != _NORMAL or sent.encoding > _GZIP or not sent.body.size:
            return 0
        if not 0 < sent.message_id.size <= _LONGEST_ID or not is_printable(data, sent.message_id, 0x21):
            return 0
        if sent.tag.size:
            if not is_printable(data, sent.tag, 0x21):
                return 0
            if memchr(cython.address(data[sent.tag.at]), ord("|"), sent.tag.size) != cython.NULL:
                return 0
        if sent.born_host.size > _LONGEST_HOST or not is_printable(data, sent.born_host, 0x21):
            return 0
        sent.size += sent.tag.size + (sent.keys - 1 if sent.keys else 0)
        for i in range(sent.keys):
            if not sent.key[i].size or not is_printable(data, sent.key[i], 0x21):
                return 0
            sent.size += sent.key[i].size
        return sent.size <= _MOST_BYTES

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _takes(self, data: cython.p_const_uchar) -> cython.int:
        """Whether the topic is there and takes such messages."""
        topic: Span = self.sent.topic
        name: bytes = text_of(data, topic)
        if name in self._taken_topics:
            return 1
        if data[topic.at] == ord("%") or not is_printable(data, topic, 0x21):
            return 0
        config: object = self._table.get(name.decode())
        if config is None or not self._takes_normal(config):
            return 0
        if len(self._taken_topics) >= _MOST_TOPICS:
            self._taken_topics.clear()
        self._taken_topics.add(name)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _digest(self, data: cython.p_const_uchar) -> cython.int:
        """Whether the digest fits the body, or there is none."""
        digest: Span = self.sent.digest
        end: cython.Py_ssize_t = digest.at + digest.size
        at: cython.Py_ssize_t = digest.at
        kind: uint64_t = 0
        checksum: Span
        checksum.size = 0
        if at < 0:
            return 1
        if at < end and data[at] == _FIRST_NUMBER:
            at = number(data, at + 1, end, cython.address(kind))
        if 0 <= at < end and data[at] == _CHECKSUM:
            at = span(data, at + 1, end, cython.address(checksum))
        if at != end:
            return 0
        if kind == 0 and checksum.size == 0:
            return 1
        if checksum.size == 0 or not is_printable(data, checksum, 0x21):
            return 0
        if self.sent.body.size > (_CRC_AT_ONCE if kind == _CRC32 else _DIGEST_AT_ONCE):
            return 0
        given: bytes = text_of(data, checksum).upper()
        body: bytes = text_of(data, self.sent.body)
        if kind == _CRC32:
            made: object = crc32(body)
            return given in (b"%08X" % made, b"%X" % made, b"%d" % made)
        return kind == _MD5 and given == hashlib.md5(body, usedforsecurity=False).hexdigest().upper().encode()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _fill(self, data: cython.p_const_uchar) -> cython.int:
        """Give the properties to the message, in the order of the Python way."""
        sent: cython.pointer(Sent) = cython.address(self.sent)
        built: CompiledMessage = self._built
        i: cython.int
        if not put(built, _UNIQUE_NAME, data, sent.message_id):
            return 0
        if sent.tag.size and not put(built, _TAGS_NAME, data, sent.tag):
            return 0
        if sent.keys and not built.add_own(_KEYS_NAME, joined(data, sent.key, sent.keys)):
            return 0
        if sent.trace_context.size and not put(built, _TRACE_NAME, data, sent.trace_context):
            return 0
        if sent.born_host.size and not put(built, _HOST_NAME, data, sent.born_host):
            return 0
        for i in range(sent.names):
            if not built.add(
                cython.address(data[sent.name[i].at]), sent.name[i].size,
                cython.address(data[sent.value[i].at]), sent.value[i].size,
            ):  # fmt: skip
                return 0
        return 1


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def put(built: CompiledMessage, name: bytes, data: cython.p_const_uchar, value: Span) -> cython.int:
    """Give a property to the message."""
    return built.add(start(name), PyBytes_GET_SIZE(name), cython.address(data[value.at]), value.size)
