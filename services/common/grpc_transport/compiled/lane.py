"""Lane: the calls of one connection that come whole, from the bytes of their frames to those of their answers.

It stands in front of the connection's own reading of frames. What it takes is a HEADERS frame and, right behind it,
the DATA frame that ends the request, of a plain call (`head_scan`), while windows are open, memory is not short and
the answer can leave. Between the two may stand a WINDOW_UPDATE of the stream, which grpcio always sends. It does what
the connection, its stream, the call and the sender would do, and leaves the same numbers in them. Whatever else comes,
it stops before it, with nothing changed.

A call that turns out not to be plain when it is asked (held, refused, broken, too long an answer) becomes one of
Python's, which goes on from there.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcmp, memcpy

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.sender import JOIN_LIMIT
from tandemmq.common.grpc_transport.rpc import answers

_DATA: cython.int = frames.DATA
_HEADERS: cython.int = frames.HEADERS
_WINDOW_UPDATE: cython.int = frames.WINDOW_UPDATE
_MAX_WINDOW: cython.longlong = frames.MAX_WINDOW
_UPDATE_SIZE: cython.int = 4
_END_STREAM: cython.int = frames.END_STREAM
_END_HEADERS: cython.int = frames.END_HEADERS
_FRAME: cython.int = frames.HEADER_SIZE
_PREFIX: cython.int = 5
"""Bytes before a message: whether it is compressed, and its length."""
_AT_A_TIME: cython.int = 2
"""Calls between two looks at the clock: as many frames as the connection reads between two."""
_LARGEST_BLOCK: cython.int = 2700


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def number(at: cython.p_const_uchar) -> cython.uint:
    """Four bytes, the highest first."""
    return (
        cython.cast(cython.uint, at[0]) << 24
        | cython.cast(cython.uint, at[1]) << 16
        | cython.cast(cython.uint, at[2]) << 8
        | at[3]
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_number(to: cython.p_uchar, value: cython.uint) -> cython.p_uchar:
    """Write the same: the place after it."""
    to[0] = cython.cast(cython.uchar, value >> 24)
    to[1] = cython.cast(cython.uchar, value >> 16)
    to[2] = cython.cast(cython.uchar, value >> 8)
    to[3] = cython.cast(cython.uchar, value)
    return to + 4


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_frame(
    to: cython.p_uchar, size: cython.uint, kind: cython.int, flags: cython.int, stream: cython.uint
) -> cython.p_uchar:
    """Write what is before a frame's payload: the place after it."""
    put_number(to, size << 8 | kind)
    to[4] = cython.cast(cython.uchar, flags)
    return put_number(to + 5, stream)


@cython.cclass
class LaneCall:
    """A call as its method's short way sees it; see `aio.handlers.DirectCall`."""

    def peer(self) -> str:
        """Who calls."""
        return self._peer

    def invocation_metadata(self) -> object:
        """What the caller sent along."""
        if self._call is not None:
            return self._call.invocation_metadata()
        if self._block == cython.NULL:
            raise RuntimeError("the call has been answered")
        block: cython.p_const_char = cython.cast(cython.p_const_char, self._block)
        return self._view(PyBytes_FromStringAndSize(block, self._block_size)).metadata

    def answer_later(self, answer: bytes) -> None:
        """Answer a call that was held."""
        self._call.answer_later(answer)

    def become(self, call: object) -> None:
        """It is held, and one of Python's from here on."""
        self._call = call


@cython.cclass
class Lane:
    """See the module."""

    def __init__(
        self,
        connection: object,
        scan: HeadScan,
        peer: str,
        budget: object,
        flush: object,
        flush_at: int,
        view: object,
        conclude: object,
    ) -> None:
        """`view` gives the CallHead of a header block.

        `conclude` makes a call of Python's of one that was asked, and is no longer plain; see `aio.lanes`.
        `flush` is called when there are more than `flush_at` bytes to be sent.
        """
        limits: object = connection.limits
        self._connection = connection
        self._reader = connection.reader
        self._sender = connection.sender
        self._scan = scan
        self._peer = peer
        self._budget = budget
        self._flush = flush
        self._flush_at = flush_at
        self._view = view
        self._conclude = conclude
        self._head = answers.OK.head
        self._trailers = answers.OK.trailers
        self._floods = connection.floods
        self._most_updates = limits.overhead_per_second
        self._largest_frame = limits.max_frame_size
        self._largest_request = limits.max_receive_message_length
        self._largest_answer = limits.max_send_message_length
        self._most_buffered = limits.max_buffered
        self._most_streams = limits.max_concurrent_streams
        self._low_window = limits.connection_window // 2
        self._stream_window = limits.stream_window
        self._join = JOIN_LIMIT
        self._block = b""

    def take(self, data: bytes, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Serve the calls that stand in `data` from a position on: the place after them."""
        end: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        at: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(data))
        calls: cython.int = 0
        size: cython.Py_ssize_t
        while True:
            size = self._pair(at + position, end - position)
            if not size or not self._open():
                break
            method: object = self._method_of(at + position + _FRAME)
            if method is None:
                break
            self._serve(method, at + position + _FRAME, at + position + size - self._body_size + _PREFIX)
            position += size
            calls += 1
            if calls % _AT_A_TIME == 0 and self._reader.enough():
                self._reader.behind = True
                break
        if calls:
            self.taken += calls
            self._reader._progressed = True
        return position

    @cython.cfunc
    @cython.exceptval(check=False)
    def _pair(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The length of the frames of a call; 0: what stands here is something else."""
        begin: cython.p_const_uchar = at
        if size < 2 * _FRAME + _PREFIX or at[3] != _HEADERS or at[4] != _END_HEADERS:
            return 0
        self._stream = number(at + 5) & 0x7FFFFFFF
        self._block_size = number(at) >> 8
        if self._block_size > _LARGEST_BLOCK or 2 * _FRAME + _PREFIX + self._block_size > size:
            return 0
        at += _FRAME + self._block_size
        size -= 2 * _FRAME + self._block_size
        self._increment = 0
        if at[3] == _WINDOW_UPDATE:
            if size < _FRAME + _UPDATE_SIZE + _PREFIX or number(at) >> 8 != _UPDATE_SIZE or at[4]:
                return 0
            if number(at + 5) & 0x7FFFFFFF != self._stream:
                return 0
            self._increment = number(at + _FRAME) & 0x7FFFFFFF
            if not self._increment:
                return 0
            at += _FRAME + _UPDATE_SIZE
            size -= _FRAME + _UPDATE_SIZE
        if at[3] != _DATA or at[4] != _END_STREAM or number(at + 5) & 0x7FFFFFFF != self._stream:
            return 0
        self._body_size = number(at) >> 8
        if not _PREFIX <= self._body_size <= size or self._body_size > self._largest_frame:
            return 0
        at += _FRAME
        if at[0] or number(at + 1) != self._body_size - _PREFIX:
            return 0
        return at + self._body_size - begin

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _open(self) -> cython.int:
        """Whether the connection takes the call at hand, and nothing is near a limit."""
        connection: object = self._connection
        sender: object = self._sender
        last: int64_t = connection.last_stream_id
        if self._stream != last + 2 or self._body_size - _PREFIX > self._largest_request:
            return 0
        if not connection.acknowledged or connection.draining:
            return 0
        received: int64_t = connection._received
        granted: int64_t = connection._granted
        if granted - received - self._body_size < self._low_window or self._body_size > self._stream_window:
            return 0
        buffered: int64_t = connection.buffered
        window: int64_t = sender.window
        if buffered > self._most_buffered or window <= 0 or sender.congested or sender.pending_bytes:
            return 0
        if self._increment and not self._takes_update():
            return 0
        return len(connection.streams) < self._most_streams and not self._budget.tight

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _takes_update(self) -> cython.int:
        """Whether a WINDOW_UPDATE is neither too much, nor one too many: two for each DATA frame sent are not."""
        of_stream: int64_t = self._sender.initial_window
        updates: int64_t = self._floods._window_updates
        if of_stream + self._increment > _MAX_WINDOW:
            return 0
        if updates < self._most_updates:
            return 1
        sent: int64_t = self._sender.data_frames
        answered: int64_t = self._floods._answered_frames
        return updates < self._most_updates + 2 * (sent - answered)

    @cython.cfunc
    def _method_of(self, block: cython.p_const_uchar) -> object:
        """The method of the call at hand; None: it is not plain."""
        size: cython.Py_ssize_t = self._block_size
        if PyBytes_GET_SIZE(self._block) == size and not memcmp(PyBytes_AS_STRING(self._block), block, size):
            return self._method
        found: object = self._scan.find(block, size)
        if found is None:
            return None
        self._block = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), size)
        self._method = found
        return found

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve(self, method: object, block: cython.p_const_uchar, message_at: cython.p_const_uchar) -> cython.int:
        """Ask the short way, and answer."""
        connection: object = self._connection
        stream: cython.uint = self._stream
        body_size: cython.Py_ssize_t = self._body_size
        block_size: cython.Py_ssize_t = self._block_size
        message: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, message_at), body_size - _PREFIX)
        call: LaneCall = LaneCall()
        call._peer = self._peer
        call._view = self._view
        call._block = block
        call._block_size = block_size
        increment: cython.uint = self._increment
        connection.last_stream_id = stream
        if increment:
            self._floods.window_update(self._sender.data_frames)
        connection._received += body_size
        failure: object = None
        answer: object = None
        try:
            answer = method.direct(message, call)
        except Exception as error:  # noqa: BLE001 - every call gets a status
            failure = error
        finally:
            call._block = cython.NULL  # its frames go with this read, whatever was raised
        self._stream = stream
        self._increment = increment
        if type(answer) is bytes and self._answer(answer):
            return 1
        head: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), block_size)
        self._conclude(head, stream, increment, body_size, message, call, answer, failure)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, answer: bytes) -> cython.int:
        """Queue a whole answer: 1; 0 where it cannot leave in one piece, or not now."""
        sender: object = self._sender
        length: cython.Py_ssize_t = PyBytes_GET_SIZE(answer)
        size: cython.Py_ssize_t = length + _PREFIX
        window: int64_t = sender.window
        of_stream: int64_t = sender.initial_window
        of_stream += self._increment
        if size > self._join or size > window or size > of_stream or length > self._largest_answer:
            return 0
        if sender.congested or sender.pending_bytes or sender.block_prefix:
            return 0
        head_size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._head)
        trailers_size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._trailers)
        whole: cython.Py_ssize_t = 3 * _FRAME + head_size + size + trailers_size
        stream: cython.uint = self._stream
        out: bytes = PyBytes_FromStringAndSize(cython.NULL, whole)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(out))
        to = put_frame(to, head_size, _HEADERS, _END_HEADERS, stream)
        memcpy(to, PyBytes_AS_STRING(self._head), head_size)
        to = put_frame(to + head_size, size, _DATA, 0, stream)
        to[0] = 0
        to = put_number(to + 1, length)
        memcpy(to, PyBytes_AS_STRING(answer), length)
        to = put_frame(to + length, trailers_size, _HEADERS, _END_HEADERS | _END_STREAM, stream)
        memcpy(to, PyBytes_AS_STRING(self._trailers), trailers_size)
        queued: int64_t = sender.size
        queued += whole
        sender.window = window - size
        sender.size = queued
        sender.data_frames += 1
        sender.output.append(out)
        if queued > self._flush_at:
            self._flush()
        return 1
