"""CompiledPassedSends: from SendMessageRequests to a gateway's questions, and from the answers to those of the calls.

Its Python twin is `sending`, over the `BrokerPort` of a gateway. What `CompiledSendRequest` does not take is left to
Python, and so are answers but that a message is stored and safe.
"""

import logging

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.broker.compiled.plain_message import CompiledMessage
from cython.cimports.tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
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
)
from cython.cimports.tandemmq.store.fronts.compiled.protobuf import (
    number,
    number_size,
    put_field,
    put_number,
    put_text,
    span,
)
from cython.cimports.tandemmq.store.fronts.compiled.spans import Span, start, text_of
from cython.cimports.tandemmq.store.fronts.rocketmq5.compiled.send_answer import send_answer
from cython.cimports.tandemmq.store.fronts.rocketmq5.compiled.send_request import CompiledSendRequest

from tandemmq.common.grpc_transport import HELD
from tandemmq.store.format.record_encoder import MAX_PROPERTIES
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.rocketmq5.sent_message import LONGEST_ID

_OK: bytes = b"PUT_OK"
_LONGEST_ID: cython.Py_ssize_t = LONGEST_ID
_MOST_PEERS: cython.int = 4096
_MOST_JOINED: cython.Py_ssize_t = 1 << 20
"""Bytes of questions that leave as one message of the stream, unless a single one has more."""
_MOST_HELD: cython.Py_ssize_t = 64 << 20
"""Bytes of requests that are held on a link; what comes beyond them is Python's."""

log = logging.getLogger(__name__)


@cython.cclass
class CompiledPassedSends(CompiledSendRequest):
    """The short way of SendMessage in a gateway; `grpc_transport.Direct` is `answer`."""

    def __init__(self, sends: object, takes_normal: object) -> None:
        """For a `PassedSends`. `takes_normal`: see CompiledSendRequest."""
        self._message_built = CompiledMessage(MAX_PROPERTIES)
        CompiledSendRequest.__init__(self, self._message_built, sends, takes_normal)
        self._accepts = sends.accepts
        self._choose = sends.choose
        self._most_body = sends.most_body
        self._times = CompiledCallTimes(sends.good_times)
        self._hosts = {}
        self._named = None
        self.only = None

    def answer(self, message: bytes, call: object) -> object:
        """See `grpc_transport.Direct`."""
        begun: cython.double = seconds_now()
        metadata: object = call.invocation_metadata()
        if metadata is not self._named:
            if not self._accepts(call):
                return None
            self._named = metadata
        if not self.read(message) or self.sent.body.size > self._most_body:
            return None
        held: CompiledHeldSends = self.only
        if held is None:
            held = self._choose(text_of(start(message), self.sent.message_id))
        if held is None or held._size > _MOST_HELD or not held._has_room():
            return None
        asked: object = held._next()
        held._gather(self._question(message, asked, self._host(call.peer())))
        held._held[asked] = (call, message, begun)
        held._size += PyBytes_GET_SIZE(message)
        self.taken += 1
        return HELD

    @cython.cfunc
    def _host(self, peer: str) -> bytes:
        """The text of a caller's address, as transports name them."""
        host: object = self._hosts.get(peer)
        if host is None:
            if len(self._hosts) >= _MOST_PEERS:
                self._hosts.clear()
            host = str(peer_host(peer)).encode()
            self._hosts[peer] = host
        return host

    @cython.cfunc
    def _question(self, message: bytes, asked: uint64_t, host: bytes) -> bytes:
        """A LinkRequest that asks to store the message which was read."""
        data: cython.p_const_uchar = start(message)
        built: CompiledMessage = self._message_built
        topic: Span = self.sent.topic
        properties: cython.Py_ssize_t = built.plain.properties_size
        body: cython.Py_ssize_t = built.plain.body_size
        host_size: cython.Py_ssize_t = PyBytes_GET_SIZE(host)
        inner: cython.Py_ssize_t = 4 + topic.size + host_size + body + properties
        inner += number_size(topic.size) + number_size(host_size) + number_size(body) + number_size(properties)
        if built.plain.sys_flag:
            inner += 1 + number_size(built.plain.sys_flag)
        if built.plain.born_timestamp:
            inner += 1 + number_size(built.plain.born_timestamp)
        question: cython.Py_ssize_t = 2 + number_size(asked) + number_size(inner) + inner
        out: bytes = PyBytes_FromStringAndSize(cython.NULL, 1 + number_size(question) + question)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(out))
        to[0] = QUESTION
        to = put_field(put_number(to + 1, question), QUESTION_ID, asked)
        to[0] = SEND
        to = put_number(to + 1, inner)
        to = put_text(to, TOPIC, cython.address(data[topic.at]), topic.size)
        to = put_text(to, BORN_HOST, start(host), host_size)
        to = put_text(to, BODY, built.plain.body, body)
        to = put_text(to, PROPERTIES, built.plain.properties, properties)
        to = put_field(to, SYS_FLAG, built.plain.sys_flag)
        put_field(to, BORN, built.plain.born_timestamp)
        return out


@cython.cclass
class CompiledHeldSends:
    """The calls whose messages were passed on over one link."""

    def __init__(self, sends: CompiledPassedSends, link: object) -> None:
        """`link` is asked once in a turn of the loop, however many messages there are: see `PassingLink`."""
        self._sends = sends
        self._link = link
        self._next = link.next_number
        self._held = {}
        self._gathered = []

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_room(self) -> cython.int:
        """Whether a question may be gathered."""
        return 1 if self._gathered else self._link.has_room

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gather(self, request: bytes) -> cython.int:
        """Keep a LinkRequest until the end of this turn."""
        if not self._gathered:
            self._link.flush_soon()
        self._gathered.append(request)
        return 0

    def take(self) -> list:
        """The LinkRequests that were gathered, several as one."""
        gathered: list = self._gathered
        self._gathered = []
        taken: list = []
        part: list = []
        size: cython.Py_ssize_t = 0
        one: bytes
        for one in gathered:
            if part and size + PyBytes_GET_SIZE(one) > _MOST_JOINED:
                taken.append(b"".join(part))
                part = []
                size = 0
            part.append(one)
            size += PyBytes_GET_SIZE(one)
        if part:
            taken.append(b"".join(part))
        return taken

    def hear(self, response: bytes) -> bytes:
        """Answer the calls whose messages are stored, and give what is left of a LinkResponse."""
        data: cython.p_const_uchar = start(response)
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(response)
        at: cython.Py_ssize_t = 0
        begin: cython.Py_ssize_t
        answer: Span
        rest: list = []
        while at < size:
            begin = at
            at = span(data, at + 1, size, cython.address(answer)) if data[at] == ANSWER else -1
            if at >= 0 and self._answer(data, answer):
                continue
            answer.at = begin
            answer.size = (size if at < 0 else at) - begin
            rest.append(text_of(data, answer))
            if at < 0:
                break
        return b"".join(rest)

    def pop(self, asked: int) -> object:
        """A call, its request, and when it began; None where none is held by that number."""
        found: object = self._held.pop(asked, None)
        if found is not None:
            self._size -= len(found[1])
        return found

    def leave(self) -> list:
        """All of them; they are held no more."""
        left: list = list(self._held.values())
        self._held.clear()
        self._gathered = []
        self._size = 0
        return left

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, data: cython.p_const_uchar, answer: Span) -> cython.int:
        """Answer a call whose message is stored: 1; 0 where that is not what is said, or nobody waits for it here."""
        stored: Stored
        begun: cython.double
        if not read_stored(data, answer, cython.address(stored)):
            return 0
        found: tuple = self.pop(stored.id)
        if found is None:
            return 0
        call, _, begun = found
        try:
            self._sends._times.count(seconds_now() - begun, 1)
            call.answer_later(send_answer(cython.address(data[stored.key.at]), stored.key.size, stored.offset))
        except Exception:  # the others are stored too, and nobody else would answer them
            log.exception("a call that was held was not answered")
        return 1


@cython.cfunc
@cython.exceptval(check=False)
def read_stored(data: cython.p_const_uchar, answer: Span, stored: cython.pointer(Stored)) -> cython.int:
    """Whether an Answer says that a message is stored and safe, and has its id for its transaction's."""
    at: cython.Py_ssize_t = answer.at
    end: cython.Py_ssize_t = answer.at + answer.size
    part: Span
    stored.id = stored.offset = 0
    part.at = part.size = 0
    if at == end or data[at] != ANSWER_ID:
        return 0
    at = number(data, at + 1, end, cython.address(stored.id))
    if at < 0 or at == end or data[at] != STORED or span(data, at + 1, end, cython.address(part)) != end:
        return 0
    at = part.at
    if at == end or data[at] != MESSAGE_ID:
        return 0
    at = span(data, at + 1, end, cython.address(stored.key))
    if at < 0 or at == end or data[at] != TRANSACTION_ID or not 0 < stored.key.size <= _LONGEST_ID:
        return 0
    at = span(data, at + 1, end, cython.address(part))
    if at < 0 or part.size != stored.key.size:
        return 0
    if memcmp(cython.address(data[part.at]), cython.address(data[stored.key.at]), part.size):
        return 0
    if at < end and data[at] == OFFSET:
        at = number(data, at + 1, end, cython.address(stored.offset))
    if at < 0 or at == end or data[at] != STATUS or span(data, at + 1, end, cython.address(part)) != end:
        return 0
    return part.size == PyBytes_GET_SIZE(_OK) and memcmp(cython.address(data[part.at]), start(_OK), part.size) == 0
