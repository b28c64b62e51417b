"""CompiledLinkSends: from the messages of a LinkRequest to their answers. Its Python twin is `gateway_link`.

Taken are plain messages, each in the form that protobuf's encoders write: no field twice, none that is unknown, numbers
in as few bytes as they need. All other questions are left to Python, as they are.
"""

from collections.abc import Callable

import cython
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.string import memchr, memcpy
from cython.cimports.tandemmq.store.broker.compiled.sender import CompiledSender
from cython.cimports.tandemmq.store.fronts.compiled.link_fields import (
    ANSWER,
    ANSWER_ID,
    BODY,
    BORN,
    BORN_HOST,
    MESSAGE_ID,
    OFFSET,
    PROPERTIES,
    QUESTION,
    QUESTION_ID,
    SEND,
    STATUS,
    STORED,
    SYS_FLAG,
    TOPIC,
    TRANSACTION_ID,
    USER,
)
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import number, put_number, put_text, span
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, is_among, is_printable, start, text_of

_MOST: cython.int = 64
"""Properties of a message that is taken."""
_MOST_HOSTS: cython.int = 4096
"""Hosts that are remembered."""
_LONGEST_KEY: cython.Py_ssize_t = 1024
"""Bytes of a UNIQ_KEY that is taken."""
_OK: bytes = b"PUT_OK"


@cython.cclass
class CompiledLinkSends:
    """See the module."""

    def __init__(self, sender: CompiledSender, packed_host: Callable[[str], bytes]) -> None:
        """`packed_host`: the bytes of a host, from its text."""
        self._sender = sender
        self._packed_host = packed_host
        self._hosts = {}

    def answer(self, request: bytes) -> tuple[bytes, bytes]:
        """Store the plain messages of a LinkRequest: a LinkResponse with PUT_OK for each, and a request with the rest.

        Both may be empty. `end_offset` is then what to wait for, if there are answers.
        """
        data: cython.p_const_uchar = start(request)
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(request)
        at: cython.Py_ssize_t = 0
        begin: cython.Py_ssize_t
        question: Span
        answers: list = []
        rest: list = []
        while at < size:
            begin = at
            if data[at] == QUESTION:
                at = span(data, at + 1, size, cython.address(question))
            else:
                at = -1
            if at >= 0 and self._store(data, question):
                answers.append(self._answer())
                continue
            question.at = begin
            question.size = (size if at < 0 else at) - begin
            rest.append(text_of(data, question))
            if at < 0:
                break
        if answers:
            self.taken += len(answers)
            self.end_offset = self._sender.place.physical_offset + self._sender.place.size
        return b"".join(answers), b"".join(rest) if answers else request

    # -- reading ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _store(self, data: cython.p_const_uchar, question: Span) -> cython.int:
        """Store the message of a question: 1; or 0 where there is none, or it is not plain."""
        sent: cython.pointer(Sent) = cython.address(self._sent)
        sender: CompiledSender = self._sender
        message: Span
        if not self._question(data, question, cython.address(message)):
            return 0
        sender.begin()
        sender.repeatable = True
        if not self._message(data, message) or not self._properties(data):
            return 0
        if not sender.waits or sender.unique_size > _LONGEST_KEY:
            return 0
        host: bytes = self._host(data)
        if host is None:
            return 0
        sender.plain.body = cython.address(data[sent.body.at])
        sender.plain.body_size = sent.body.size
        return sender.send(cython.address(data[sent.topic.at]), sent.topic.size, host)

    @cython.cfunc
    @cython.exceptval(check=False)
    def _question(self, data: cython.p_const_uchar, question: Span, message: cython.pointer(Span)) -> cython.int:
        """Whether a question has a number and a message, and perhaps for whom it is asked."""
        at: cython.Py_ssize_t = question.at
        end: cython.Py_ssize_t = question.at + question.size
        user: Span
        if at == end or data[at] != QUESTION_ID:
            return 0
        at = number(data, at + 1, end, cython.address(self._sent.id))
        if 0 <= at < end and data[at] == USER:
            at = span(data, at + 1, end, cython.address(user))
            if at < 0 or not is_printable(data, user, 0x20):
                return 0
        return 0 <= at < end and data[at] == SEND and span(data, at + 1, end, message) == end

    @cython.cfunc
    @cython.exceptval(check=False)
    def _message(self, data: cython.p_const_uchar, message: Span) -> cython.int:
        """Find the fields of a Message: 1, or 0 where they are not plain."""
        sent: cython.pointer(Sent) = cython.address(self._sent)
        at: cython.Py_ssize_t = message.at
        end: cython.Py_ssize_t = message.at + message.size
        field: cython.int
        last: cython.int = 0
        sent.topic.at = sent.born_host.at = sent.body.at = sent.properties.at = message.at
        sent.topic.size = sent.born_host.size = sent.body.size = sent.properties.size = 0
        while at < end:
            field = data[at]
            if field >= 0x80 or field <= last:
                return 0
            last = field
            at += 1
            if field == TOPIC:
                at = span(data, at, end, cython.address(sent.topic))
            elif field == BORN_HOST:
                at = span(data, at, end, cython.address(sent.born_host))
            elif field == BODY:
                at = span(data, at, end, cython.address(sent.body))
            elif field == PROPERTIES:
                at = span(data, at, end, cython.address(sent.properties))
            else:
                at = self._number(field, data, at, end)
            if at < 0:
                return 0
        return sent.topic.size > 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _number(
        self, field: cython.int, data: cython.p_const_uchar, at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Read a field that is a number: the place after it, or -1."""
        value: uint64_t = 0
        at = number(data, at, end, cython.address(value))
        if field == SYS_FLAG and value <= 0x7FFFFFFF:
            self._sender.plain.sys_flag = cython.cast(cython.int, value)
        elif field == BORN and not value >> 63:
            self._sender.plain.born_timestamp = cython.cast(cython.longlong, value)
        else:
            return -1
        return at

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _properties(self, data: cython.p_const_uchar) -> cython.int:
        """Give the properties to the sender, from the form that they have in a record: 1, or 0."""
        sent: cython.pointer(Sent) = cython.address(self._sent)
        at: cython.Py_ssize_t = sent.properties.at
        end: cython.Py_ssize_t = at + sent.properties.size
        name: Span
        between: cython.p_const_uchar
        after: cython.p_const_uchar
        sent.names = 0
        while at < end:
            between = cython.cast(cython.p_const_uchar, memchr(cython.address(data[at]), 1, end - at))
            if between == cython.NULL or sent.names == _MOST:
                return 0
            name.at = at
            name.size = between - cython.address(data[at])
            at += name.size + 1
            after = cython.cast(cython.p_const_uchar, memchr(cython.address(data[at]), 2, end - at))
            if after == cython.NULL or is_among(data, name, sent.name, sent.names):
                return 0
            sent.name[sent.names] = name
            sent.names += 1
            if not self._sender.add(cython.address(data[name.at]), name.size, between + 1, after - between - 1):
                return 0
            at = after - data + 1
        return 1

    @cython.cfunc
    def _host(self, data: cython.p_const_uchar) -> bytes:
        """Where a message was made, packed; None where that is not plain."""
        text: bytes = text_of(data, self._sent.born_host)
        host: object = self._hosts.get(text)
        if host is None:
            if not is_printable(data, self._sent.born_host, 0x20):
                return None
            if len(self._hosts) >= _MOST_HOSTS:
                self._hosts.clear()
            host = self._packed_host(text.decode())
            self._hosts[text] = host
        return host

    # -- writing ----------------------------------------------------------------------------------------------------

    @cython.cfunc
    def _answer(self) -> bytes:
        """A LinkResponse that says where the last message is."""
        sender: CompiledSender = self._sender
        stored: cython.uchar[2200]
        out: cython.uchar[2240]
        head: cython.uchar[16]
        to: cython.p_uchar = cython.address(stored[0])
        to = put_text(to, MESSAGE_ID, sender.unique, sender.unique_size)
        to = put_text(to, TRANSACTION_ID, sender.unique, sender.unique_size)
        if sender.place.queue_offset:
            to[0] = OFFSET
            to = put_number(to + 1, sender.place.queue_offset)
        to = put_text(to, STATUS, start(_OK), PyBytes_GET_SIZE(_OK))
        size: cython.Py_ssize_t = to - cython.address(stored[0])
        to = cython.address(head[0])
        if self._sent.id:
            to[0] = ANSWER_ID
            to = put_number(to + 1, self._sent.id)
        to[0] = STORED
        to = put_number(to + 1, size)
        before: cython.Py_ssize_t = to - cython.address(head[0])
        out[0] = ANSWER
        to = put_number(cython.address(out[1]), before + size)
        memcpy(to, head, before)
        memcpy(to + before, stored, size)
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_const_char, cython.address(out[0])), to + before + size - cython.address(out[0])
        )
