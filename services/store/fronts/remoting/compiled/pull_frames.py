"""CompiledPullFrames: from the frames of pulls that find something to those of their answers. Its twin is `pulling`.

Taken are headers in JSON, of pulls that want every message of a queue that has some for them. All else is left to
Python, and nothing has changed then: what is filtered or waits, a group or queue with anything special about it.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
from cython.cimports.tandemmq.store.fronts.compiled.spans import start
from cython.cimports.tandemmq.store.fronts.remoting.compiled.json_scan import CompiledJsonScan
from cython.cimports.tandemmq.store.log.compiled.appender import tandem_get32

from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.versions import OUR_VERSION
from tandemmq.store.delivery.port import FilterKind
from tandemmq.store.fronts.remoting.pull_header import COMMIT, MOST_FRAME, PULL_FIELDS, SUBSCRIPTION, UNASKED_BYTES

_PREFIX: cython.int = 8
"""Bytes of a frame before its header."""
_HEADER_SIZE: cython.uint = 0xFFFFFF
_GLANCE: cython.int = 20
"""Bytes of a frame up to behind the code."""
_AT_ONCE: cython.int = 16
"""Pulls of one connection before the turn of others."""
_AT_ONCE_BYTES: cython.Py_ssize_t = 1 << 20
_COMMIT: cython.int = COMMIT
_SUBSCRIPTION: cython.int = SUBSCRIPTION
_UNASKED_BYTES: cython.Py_ssize_t = UNASKED_BYTES
_MOST_FRAME: cython.Py_ssize_t = MOST_FRAME
_TAG: object = FilterKind.TAG
_PULL: bytes = b'{"code":11,'
_LITE_PULL: bytes = b'{"code":361,'
_HEAD: bytes = (
    b'{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"%%d","minOffset":"%%d","maxOffset":"%%d"},'
    b'"flag":1,"language":"JAVA","opaque":%%d,"remark":"FOUND","serializeTypeCurrentRPC":"JSON","version":%d}'
) % OUR_VERSION


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def begins_with(data: cython.p_const_uchar, size: cython.Py_ssize_t, expected: bytes) -> cython.int:
    """Whether bytes begin so."""
    length: cython.Py_ssize_t = PyBytes_GET_SIZE(expected)
    return length <= size and memcmp(data, PyBytes_AS_STRING(expected), length) == 0


@cython.cclass
class CompiledPullFrames:
    """See the module."""

    def __init__(self, parts: object, pull_times: CompiledCallTimes, lite_times: CompiledCallTimes) -> None:
        """`parts`: a PlainPulls. The times: of calls that ended well."""
        self._store = parts.store
        self._topics = parts.topics
        self._groups = parts.groups
        self._clients = parts.clients
        self._resets = parts.resets
        self._traffic = parts.traffic
        self._bring = parts.bring
        self._most_messages = parts.most_messages
        self._most_bytes = min(parts.most_bytes, MOST_FRAME)
        self._scan = CompiledJsonScan(RequestCode.PULL_MESSAGE, PULL_FIELDS)
        self._lite_scan = CompiledJsonScan(RequestCode.LITE_PULL_MESSAGE, PULL_FIELDS)
        self._times = pull_times
        self._lite_times = lite_times

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def answer_all(self, connection: object, transport: object, data: bytes) -> cython.Py_ssize_t:
        """Answer what lies whole at the beginning of bytes that came, up to what is not taken: the place after it.

        Nothing waits to be written before it, and the peer reads.
        """
        begin: cython.p_const_uchar = start(data)
        end: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        at: cython.Py_ssize_t = 0
        size: cython.Py_ssize_t
        written: cython.Py_ssize_t
        total: cython.Py_ssize_t = 0
        answered: cython.int = 0
        while answered < _AT_ONCE and total < _AT_ONCE_BYTES and end - at > _PREFIX:
            size = tandem_get32(begin + at)
            header: cython.uint = tandem_get32(begin + at + 4)  # of JSON, or it is too large
            if size > end - at - 4 or cython.cast(cython.Py_ssize_t, header) + 4 > size or header > _HEADER_SIZE:
                break
            written = self._answer(connection, begin + at + _PREFIX, header)
            if not written:
                break
            total += written
            answered += 1
            at += 4 + size
            if connection._stalled_since is not None or transport.is_closing():
                break
        return at

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, connection: object, data: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Answer one pull: the bytes of its records, or 0 where it is not taken."""
        begun: cython.double = seconds_now()
        lite: cython.bint = begins_with(data, size, _LITE_PULL)
        if not lite and not begins_with(data, size, _PULL):
            return 0
        scan: CompiledJsonScan = self._lite_scan if lite else self._scan
        scanned: object = scan.scan(PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, data), size))
        if scanned is None:
            return 0
        values: tuple = cython.cast(tuple, scanned)[0]
        opaque: object = cython.cast(tuple, scanned)[1]
        if cython.cast(tuple, scanned)[2] != 0:  # one-way
            return 0
        try:
            found: tuple = self._find(values)
        except Exception:  # noqa: BLE001 - Python finds the same, and tells of it
            return 0
        if found is None:
            return 0
        next_offset, first, last, count, records = found
        group: str = values[0]
        if values[5] & _COMMIT and values[6] > 0:
            self._bring(group, values[1], values[2], values[6])
        self._traffic.pulled(values[1], group, count, PyBytes_GET_SIZE(records))
        self._write(connection, _HEAD % (next_offset, first, last, opaque), records)
        times: CompiledCallTimes = self._lite_times if lite else self._times
        times.count(seconds_now() - begun, 1)
        return PyBytes_GET_SIZE(records)

    @cython.cfunc
    def _find(self, values: tuple) -> tuple:
        """The next offset, the first one and that after the last, the number of records, and these; None: not taken."""
        name: str = values[0]
        topic: str = values[1]
        flags: cython.int = values[5]
        group: object = self._groups.get(name)
        if group is None or not group.consume_enable or not self._wants_all(name, topic, flags, values, group):
            return None
        offset: object = values[3]
        if self._resets.concerns(name, topic, values[2]) or values[2] < 0 or offset < 0:
            return None
        config: object = self._topics.get(topic)
        queue: object = self._store.queue(topic, values[2])
        if queue is None or (config is not None and not config.readable):
            return None
        first: object = queue.readable_begin
        last: object = queue.readable_end
        if offset < first or offset >= last:
            return None
        asked: object = values[10]
        most: cython.Py_ssize_t = min(max(cython.cast(cython.Py_ssize_t, values[4]), 1), self._most_messages)
        room: cython.Py_ssize_t = _UNASKED_BYTES if asked is None else cython.cast(cython.Py_ssize_t, asked)
        found: object = self._store.read_bulk(
            queue, offset, min(most, last - offset), min(max(room, 1), self._most_bytes)
        )
        if found is None:
            return None
        count, records = found
        return offset + count, first, last, count, records

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wants_all(self, name: str, topic: str, flags: cython.int, values: tuple, group: object) -> cython.int:
        """Whether a pull may read, and wants every message."""
        kind: object = values[9]
        if kind is not None and kind != "TAG" and kind != "":
            return 0
        said: object = self._clients.consumes(name)
        if said is not None and said.message_model == "BROADCASTING" and not group.consume_broadcast_enable:
            return 0
        expression: object = values[8]
        if not flags & _SUBSCRIPTION:
            found: object = None if said is None else said.topics.get(topic)
            if found is None:
                return 1
            if found.subscription.kind is not _TAG:
                return 0
            expression = found.subscription.expression
        return expression is None or expression == "*" or expression == ""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _write(self, connection: object, head: bytes, records: bytes) -> cython.int:
        """Write an answer: its header, and its records as they were copied."""
        size: cython.uint = PyBytes_GET_SIZE(head)
        prefix: cython.uchar[8]
        put_32(cython.cast(cython.p_uchar, prefix), 4 + size + PyBytes_GET_SIZE(records))
        put_32(cython.cast(cython.p_uchar, prefix) + 4, size)
        before: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, prefix), _PREFIX)
        connection.send_now(before + head, records)
        return 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_32(to: cython.p_uchar, value: cython.uint) -> cython.void:
    """Write a big-endian number."""
    to[0] = value >> 24
    to[1] = value >> 16 & 0xFF
    to[2] = value >> 8 & 0xFF
    to[3] = value & 0xFF
