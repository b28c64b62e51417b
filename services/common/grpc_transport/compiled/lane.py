"""Lane: the plain calls of one connection, from the bytes of their frames to those of their answers.

It stands in front of the connection's own reading of frames. What it takes are HEADERS frames of plain calls
(`head_scan`) and the DATA frames of their requests, while windows are open, memory is not short and the answer can
leave. Other calls may begin in between, as long as requests come in the order in which their calls began; and
WINDOW_UPDATEs of their streams, which grpcio always sends. A request that does not come in one frame is gathered, over
several reads, by a stream of the connection (`lane_call`). The lane does what the connection, its stream, the call and
the sender would do, and leaves the same numbers in them. It stops before whatever else comes: calls of whose requests
nothing has come become Python's. Where the time of its slice is over, they begin in the next one.

A call that turns out not to be plain when it is asked (refused, broken, too long an answer) becomes Python's, too. One
that is held stays, and is answered here when its answer leaves in one piece.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.object import PyObject
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.common.grpc_transport.compiled.begun_calls import MOST_BEGUN, BegunCall, BegunCalls
from cython.cimports.tandemmq.common.grpc_transport.compiled.call_deadlines import CallDeadlines
from cython.cimports.tandemmq.common.grpc_transport.compiled.frame_bytes import number, put_frame, put_number
from cython.cimports.tandemmq.common.grpc_transport.compiled.gathered_request import GatheredRequest
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane_call import KeptCalls, LaneCall
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane_heads import LaneHeads
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane_slots import LaneSlots
from cython.cimports.tandemmq.common.grpc_transport.compiled.slots import (
    add_to_slot,
    number_in,
    tandem_fill_slot_long,
    tandem_put_in_slot,
    tandem_slot,
    tandem_slot_is_true,
)

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.budget import CONNECTION_COST, NEXT_TO_NOTHING, STREAM_COST
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault
from tandemmq.common.grpc_transport.http2.sender import JOIN_LIMIT
from tandemmq.common.grpc_transport.rpc import answers, messages

_DATA: cython.int = frames.DATA
_HEADERS: cython.int = frames.HEADERS
_WINDOW_UPDATE: cython.int = frames.WINDOW_UPDATE
_MAX_WINDOW: cython.longlong = frames.MAX_WINDOW
_UPDATE_SIZE: cython.int = 4
_END_STREAM: cython.int = frames.END_STREAM
_END_HEADERS: cython.int = frames.END_HEADERS
_FRAME: cython.int = frames.HEADER_SIZE
_PREFIX: cython.int = messages.PREFIX_SIZE
_AT_A_TIME: cython.int = 2
"""Calls between two looks at the clock: as many frames as the connection reads between two."""
_LARGEST_BLOCK: cython.int = 2700
_NEXT_TO_NOTHING: cython.Py_ssize_t = NEXT_TO_NOTHING
_MOST_BEGUN: cython.int = MOST_BEGUN
_CONNECTION_COST: int64_t = CONNECTION_COST
_STREAM_COST: int64_t = STREAM_COST
_ALL_LEFT: cython.int = 2


@cython.cclass
class Lane(KeptCalls):
    """See the module."""

    def __init__(
        self,
        protocol: object,
        scan: HeadScan,
        begun: BegunCalls,
        held: object,
        flush_at: int,
        view: object,
        pythons: tuple,
    ) -> None:
        """`begun` is the server's: it is used within one call of `take`. `held`: HELD of `aio.handlers`.

        Output is flushed when it is more than `flush_at` bytes. `view` gives the CallHead of a header block. `pythons`
        make calls of Python's; see `aio.lanes`.
        """
        connection: object = protocol.connection
        limits: object = connection.limits
        self._protocol, self._loop, self._parked = protocol, protocol.loop, protocol.parked
        self._server, self._budget = protocol.server, protocol.server.budget
        self._connection, self._streams = connection, connection.streams
        self._reader, self._sender, self._at = connection.reader, connection.sender, LaneSlots(protocol)
        self._begun, self._held, self._flush_at = begun, held, flush_at
        self._heads, self._deadlines = LaneHeads(scan, view), CallDeadlines(self._loop, self._streams)
        self._leave, self._conclude, self._resume, self._go_on, self._finish = pythons
        self._head, self._trailers = answers.OK.head, answers.OK.trailers
        self._floods, self._most_updates = connection.floods, limits.overhead_per_second
        self._largest_frame, self._largest_request = limits.max_frame_size, limits.max_receive_message_length
        self._largest_answer, self._most_buffered = limits.max_send_message_length, limits.max_buffered
        self._most_streams = limits.max_concurrent_streams
        self._stream_window, self._join = limits.stream_window, JOIN_LIMIT
        self._low_window, self._low_stream_window = limits.connection_window // 2, limits.stream_window // 2

    def open(self, peer: str, account: object, reactor: object) -> None:
        """The connection begins: who its peer is, where is counted what it holds, and what may read its socket."""
        self._peer, self._account, self._reactor = peer, account, reactor
        self._before = reactor.before if reactor is not None else 0

    def data_received(self, data: bytes) -> None:
        """Bytes have come: what `Protocol.data_received` does, without Python where the lane takes all of it."""
        self._receive(data)
        out: bytes = self._out
        if out is not None:
            self._out = None
            self._write(out)
        if self._plain >= self._before:
            self._plain = 0
            if self._before and self._protocol._transport is not None:
                self._watched = self._reactor.watch(self, self._protocol._transport)

    def lost(self) -> None:
        """The socket is closed."""
        self._deadlines.close()
        if self._watched is not None:
            self._reactor.forget(self._watched)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _receive(self, data: bytes) -> cython.int:
        """Bytes have come. An answer that is the only one is left in `_out`, to be written."""
        if not self._between_frames or self._parked or self._has_failed():
            self._protocol.read(data)
            self._between_frames = self._reader.between_frames
            return 0
        position: cython.Py_ssize_t = self._read(data)
        if tandem_slot_is_true(self._reader, self._at.behind):
            self._reader.keep(data, position)
            self._between_frames = False
            self._left = True
        elif position < PyBytes_GET_SIZE(data):
            self._queue()
            self._protocol.read(data, position)
            self._between_frames = self._reader.between_frames
            return 0
        if self._left:
            self._queue()
            self._protocol.have_read()
            return 0
        self._plain += 1
        return self._have_read()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read(self, data: bytes) -> cython.Py_ssize_t:
        """What `Endpoint.receive` does, as far as the lane goes: the place after it."""
        connection: object = self._connection
        position: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        tandem_put_in_slot(connection, self._at.heard, True)
        tandem_put_in_slot(connection, self._at.receiving, True)
        self._reading = True
        self._sliced = self._left = False
        try:
            position = self.take(data, 0)
        except ConnectionFault as fault:
            self._leave_lane()
            connection.fail(fault.code, fault.reason)
        except BaseException:
            self._queue()
            raise
        finally:
            self._reading = False
            tandem_put_in_slot(connection, self._at.receiving, False)
        return position

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _have_read(self) -> cython.int:
        """What `Protocol.have_read` does after a read of which all was the lane's."""
        if self._out is None and tandem_slot_is_true(self._sender, self._at.output):
            self._protocol.flush()
            if self._sender.congested:
                self._protocol.pause_reading()
        if self._streams or number_in(self._account, self._at.account_used) > _NEXT_TO_NOTHING:
            self._settle()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle(self) -> cython.int:
        """What `ServerHolding.settle` does between two frames."""
        transport: object = cython.cast(object, tandem_slot(self._protocol, self._at.transport))
        unsent: int64_t = 0
        if transport is not None:
            unsent = transport.get_write_buffer_size()
        return self._settle_with(unsent)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _settle_with(self, unsent: int64_t) -> cython.int:
        """The same where it is known how much waits for the socket, and what `Account.settle` does."""
        connection: object = self._connection
        at: LaneSlots = self._at
        held: int64_t = _CONNECTION_COST + unsent + number_in(self._sender, at.pending_bytes)
        held += number_in(connection, at.held) + number_in(connection, at.buffered)
        held += number_in(connection, at.heads_size) + _STREAM_COST * len(self._streams)
        before: int64_t = number_in(self._account, at.account_used)
        if held == before or tandem_slot_is_true(self._account, at.account_closed):
            return 1
        if (held > _NEXT_TO_NOTHING) != (before > _NEXT_TO_NOTHING):
            add_to_slot(self._budget, at.accounts, 1 if held > before else -1)
        tandem_fill_slot_long(self._account, at.account_used, held)
        add_to_slot(cython.cast(object, tandem_slot(self._account, at.account_owner)), at.owner_used, held - before)
        used: int64_t = number_in(self._budget, at.used) + held - before
        tandem_fill_slot_long(self._budget, at.used, used)
        tandem_put_in_slot(self._budget, at.tight, 2 * used > number_in(self._budget, at.total))
        if held < before and tandem_slot_is_true(self._budget, at.waiting):
            self._budget.tell()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _has_failed(self) -> cython.int:
        """Whether the connection is over."""
        return cython.cast(object, tandem_slot(self._connection, self._at.failed)) is not None

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _write(self, out: bytes) -> cython.int:
        """What `Flushing.flush` does with a single answer."""
        protocol: object = self._protocol
        transport: object = protocol._transport
        protocol.written += PyBytes_GET_SIZE(out)
        if transport is None or transport.is_closing():
            return 0
        try:
            transport.write(out)
        except RuntimeError:
            protocol._transport = None
        if transport.get_write_buffer_size():
            protocol.settle()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _queue(self) -> cython.int:
        """Queue the answer that was kept to be written alone: there is more to write."""
        out: bytes = self._out
        if out is not None:
            self._out = None
            self._sender.size += PyBytes_GET_SIZE(out)
            self._sender.output.append(out)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _leave_lane(self) -> cython.int:
        """Python goes on with a call: it is to find what it would have left itself, and its slice begun."""
        self._queue()
        self._begin_slice()
        self._left = True
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begin_slice(self) -> cython.int:
        """Begin the slice of a read, which most reads do not need."""
        if self._reading and not self._sliced:
            self._sliced = True
            self._protocol.slice_ends = self._server.turns.slice_ends()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _enough(self) -> cython.int:
        """Whether the slice is over."""
        self._begin_slice()
        return self._reader.enough()

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def take(self, data: bytes, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """See ShortCut: serve the calls that stand in `data` from a position on; the place after them."""
        try:
            return self._take(data, position)
        except BaseException:
            self._begun.first = self._begun.end  # what has begun lies in these bytes, and nobody may look at it again
            raise

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(self, data: bytes, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """See `take`."""
        end: cython.Py_ssize_t = PyBytes_GET_SIZE(data)
        begin: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(data))
        at: cython.p_const_uchar
        first: cython.Py_ssize_t = position
        bodies: cython.int = 0
        size: cython.Py_ssize_t
        self._begun.first = self._begun.end = 0
        self.unread = b""
        while end - position >= _FRAME:
            at = begin + position
            size = number(at) >> 8
            if size > end - position - _FRAME:
                if at[3] == _DATA:
                    self._gathers(at, size, end - position - _FRAME)
                break
            if at[3] == _HEADERS:
                if not self._begins(at, size):
                    break
            elif at[3] == _DATA:
                bodies += 1
                if not self._takes_body(at, size):
                    break
            elif at[3] != _WINDOW_UPDATE or not self._widens(at, size):
                break
            position += _FRAME + size
            if at[3] == _DATA and bodies % _AT_A_TIME == 0 and self._enough():
                self._reader.behind = True
                break
        if self._begun.first < self._begun.end and self._reader.behind:
            self.unread = self._begun.put_back()
        if self._begun.first < self._begun.end:
            self._leave_lane()
            self._leave(self._begun.leave())
            if self._enough():
                self._reader.behind = True
        if position > first:
            tandem_put_in_slot(self._reader, self._at.progressed, True)
        return position

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _takes_body(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Whether a DATA frame is the request of a plain call, or a piece of one; then it is taken."""
        if not self._ends(at, size):
            return self._gathers(at, size, size)
        if not self._open(size):
            return 0
        self._serve(at + _FRAME + _PREFIX, size)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _begins(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Whether a HEADERS frame begins a plain call, which is then remembered."""
        begun: BegunCalls = self._begun
        stream: cython.uint = number(at + 5) & 0x7FFFFFFF
        last: int64_t
        if begun.first < begun.end:
            last = begun.calls[begun.end - 1].stream
        else:
            last = number_in(self._connection, self._at.last_stream_id)
            begun.first = begun.end = 0
        if at[4] != _END_HEADERS or size > _LARGEST_BLOCK or begun.end == _MOST_BEGUN:
            return 0
        if stream != last + 2:
            return 0
        method: object = self._heads.method(at + _FRAME, size)
        if method is None:
            return 0
        call: cython.pointer(BegunCall) = cython.address(begun.calls[begun.end])
        call.stream = stream
        call.increment = 0
        call.block = at + _FRAME
        call.block_size = size
        call.method = cython.cast(cython.pointer(PyObject), method)
        begun.end += 1
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _widens(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Whether a WINDOW_UPDATE opens the window of a call that has begun; then it is counted."""
        begun: BegunCalls = self._begun
        stream: cython.uint = number(at + 5) & 0x7FFFFFFF
        i: cython.int = begun.end - 1
        if size != _UPDATE_SIZE or at[4]:
            return 0
        while i >= begun.first and begun.calls[i].stream != stream:
            i -= 1
        if i < begun.first:
            return 0
        increment: cython.uint = number(at + _FRAME) & 0x7FFFFFFF
        if not increment or not self._takes_update(cython.cast(int64_t, begun.calls[i].increment) + increment):
            return 0
        begun.calls[i].increment += increment
        self._floods.window_update(self._sender.data_frames)
        return 1

    @cython.cfunc
    @cython.exceptval(check=False)
    def _ends(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Whether a DATA frame is the whole message of the call that began first."""
        begun: BegunCalls = self._begun
        if begun.first == begun.end or at[4] != _END_STREAM:
            return 0
        if number(at + 5) & 0x7FFFFFFF != begun.calls[begun.first].stream:
            return 0
        if size < _PREFIX or size > self._largest_frame:
            return 0
        return not at[_FRAME] and number(at + _FRAME + 1) == size - _PREFIX

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _open(self, size: cython.Py_ssize_t) -> cython.int:
        """Whether the connection takes the call whose `size` bytes of DATA are here, and nothing is near a limit."""
        connection: object = self._connection
        at: LaneSlots = self._at
        if size - _PREFIX > self._largest_request or not tandem_slot_is_true(connection, at.acknowledged):
            return 0
        if tandem_slot_is_true(connection, at.draining):
            return 0
        received: int64_t = number_in(connection, at.received)
        granted: int64_t = number_in(connection, at.granted)
        if granted - received - size < self._low_window or size > self._stream_window:
            return 0
        streams: cython.Py_ssize_t = len(self._streams) + self._begun.end - self._begun.first
        return streams <= self._most_streams and self._unhindered()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _gathers(self, at: cython.p_const_uchar, size: cython.Py_ssize_t, here: cython.Py_ssize_t) -> cython.int:
        """Whether a DATA frame is a plain piece of a request; then it is taken.

        Where not all of it is `here`, it is Python's; but the call that it begins is the lane's (`LaneCall.data`).
        """
        stream: cython.uint = number(at + 5) & 0x7FFFFFFF
        body: cython.p_const_uchar = at + _FRAME
        ended: cython.bint = at[4] == _END_STREAM
        begun: BegunCalls = self._begun
        found: object = self._streams.get(stream)
        if (at[4] and not ended) or size > self._largest_frame or not self._open(size):
            return 0
        if found is None:
            if begun.first == begun.end or stream != begun.calls[begun.first].stream or size > self._low_stream_window:
                return 0
            if not GatheredRequest().fits(body, here, ended and here == size, self._largest_request):
                return 0
            found = self._gather_first()
        elif type(found) is not LaneCall:
            return 0
        call: LaneCall = found
        left: int64_t = call.granted - call.received - size
        if here < size or left < self._low_stream_window or not self._takes_piece(call, body, size, ended):
            return 0
        self._connection._received += size
        call.received += size
        self._add_piece(call, body, size, ended)
        return 1

    @cython.cfunc
    def _gather_first(self) -> LaneCall:
        """Begin to gather the request of the call that began first: its stream is known from here on."""
        begun: cython.pointer(BegunCall) = cython.address(self._begun.calls[self._begun.first])
        call: LaneCall = LaneCall()
        call._lane, call._gathered = self, GatheredRequest()
        call._method = cython.cast(object, begun.method)
        call._head = self._heads.kept(begun.block, begun.block_size)
        call.stream_id = begun.stream
        call.granted, call.content_length = self._stream_window, -1
        call.send_window = self._sender.initial_window + begun.increment
        timeout: object = self._heads.timeout(call._head)
        if timeout is not None:
            call._deadline = self._loop.time() + timeout
            self._deadlines.watch(call._deadline)
        self._begun.first += 1
        self._connection.last_stream_id = call.stream_id
        self._streams[call.stream_id] = call
        self._server.active += 1
        return call

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve_gathered(self, call: LaneCall, message: bytes) -> cython.int:
        """Ask the short way of a call whose request has come, and answer."""
        self._queue()
        self._begun.taken += 1
        self.taken += 1
        self._connection.buffered -= call._counted
        call._counted = 0
        call._gathered = None
        call.remote_ended = True
        failure: object = None
        answer: object = None
        try:
            answer = call._method.direct(message, call)
        except Exception as error:  # noqa: BLE001 - every call gets a status
            failure = error
        call._prefix = 0 if call._method.response_streaming else _PREFIX
        if type(answer) is bytes and self._answer(
            answer, call._prefix, call.stream_id, call.send_window, self._reading
        ):
            call.closed = True
            del self._streams[call.stream_id]
            return self._ended(call)
        if answer is self._held:
            call._counted = PyBytes_GET_SIZE(message)
            self._connection.buffered += call._counted
            return 1
        self._leave_lane()
        self._ended(call)
        self._finish(call._head, self._begun.leave(), call, call._deadline, message, answer, failure)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _takes_update(self, increment: int64_t) -> cython.int:
        """Whether a WINDOW_UPDATE is neither too much, nor one too many: two for each DATA frame sent are not."""
        of_stream: int64_t = self._sender.initial_window
        updates: int64_t = self._floods._window_updates
        if of_stream + increment > _MAX_WINDOW:
            return 0
        if updates < self._most_updates:
            return 1
        sent: int64_t = self._sender.data_frames
        answered: int64_t = self._floods._answered_frames
        return updates < self._most_updates + 2 * (sent - answered)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve(self, message_at: cython.p_const_uchar, body_size: cython.Py_ssize_t) -> cython.int:
        """Ask the short way of the call that began first, and answer."""
        begun: BegunCall = self._begun.calls[self._begun.first]
        connection: object = self._connection
        self._queue()
        message: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, message_at), body_size - _PREFIX)
        method: object = cython.cast(object, begun.method)
        call: LaneCall = LaneCall()
        call._lane = self
        call._block = begun.block
        call._block_size = begun.block_size
        self._begun.first += 1
        self._begun.taken += 1
        self.taken += 1
        tandem_fill_slot_long(connection, self._at.last_stream_id, begun.stream)
        add_to_slot(connection, self._at.received, body_size)
        failure: object = None
        answer: object = None
        try:
            answer = method.direct(message, call)
        except Exception as error:  # noqa: BLE001 - every call gets a status
            failure = error
        finally:
            call._block = cython.NULL  # its frames go with this read, whatever was raised
        of_stream: int64_t = number_in(self._sender, self._at.initial_window) + begun.increment
        call._prefix = 0 if method.response_streaming else _PREFIX
        if type(answer) is bytes and self._answer(answer, call._prefix, begun.stream, of_stream, self._reading):
            return 1
        if answer is self._held:
            return self._hold(call, cython.address(begun), of_stream, body_size)
        head: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, begun.block), begun.block_size)
        read: tuple = (head, begun.stream, begun.increment)
        self._leave_lane()
        self._conclude(read, self._begun.leave(), body_size, message, call, answer, failure)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _hold(
        self, call: LaneCall, begun: cython.pointer(BegunCall), of_stream: int64_t, body_size: cython.Py_ssize_t
    ) -> cython.int:
        """Keep a call whose answer comes later: its request counts as long as it waits, and its deadline is watched."""
        head: bytes = self._heads.kept(begun.block, begun.block_size)
        timeout: object = self._heads.timeout(head)
        call._head, call._counted, call.stream_id = head, body_size - _PREFIX, begun.stream
        call.granted = self._stream_window
        call.received = body_size
        call.send_window = of_stream
        call.remote_ended = True
        add_to_slot(self._server, self._at.active, 1)
        add_to_slot(self._connection, self._at.buffered, call._counted)
        self._streams[call.stream_id] = call
        if timeout is not None:
            call._deadline = self._loop.time() + timeout
            self._deadlines.watch(call._deadline)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer_held(self, call: LaneCall, answer: object) -> cython.int:
        """Answer a call that is held, and end it."""
        alone: cython.int = self._nothing_else()
        if type(answer) is not bytes or not self._answer(answer, call._prefix, call.stream_id, call.send_window, alone):
            call.as_call().answer_later(answer)
            return 0
        call.closed = True
        del self._streams[call.stream_id]
        self._ended(call)
        out: bytes = self._out
        if not alone or out is None:
            self._protocol.answered()
            return 1
        self._out = None
        left: cython.int = 0 if self._watched is None else self._send_now(out)
        if not left:
            self._write(out)
        if number_in(self._account, self._at.account_used) > _NEXT_TO_NOTHING:
            if left == _ALL_LEFT:
                self._settle_with(0)
            else:
                self._settle()
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _send_now(self, out: bytes) -> cython.int:
        """Have the reactor send an answer; see `Reactor.send_now`."""
        return self._reactor.send_now(self._watched, out)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _nothing_else(self) -> cython.int:
        """Whether the answer of a held call is all that there is to do: `Protocol.answered` would write it alone."""
        connection: object = self._connection
        at: LaneSlots = self._at
        if self._out is not None or len(self._streams) != 1 or not self._between_frames or self._parked:
            return 0
        if tandem_slot_is_true(connection, at.receiving) or tandem_slot_is_true(self._protocol, at.writers):
            return 0
        if tandem_slot_is_true(self._sender, at.ready) or tandem_slot_is_true(self._reader, at.behind):
            return 0
        return not self._has_failed() and not tandem_slot_is_true(connection, at.draining)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(
        self, answer: bytes, prefix: cython.int, stream: cython.uint, of_stream: int64_t, alone: cython.int
    ) -> cython.int:
        """Queue a whole answer: 1; 0 where it cannot leave in one piece, or not now. `of_stream`: its window.

        `prefix`: the bytes that go before it; 0 of a stream, whose messages have theirs. `alone`: the end of this read
        would write it alone.
        """
        sender: object = self._sender
        at: LaneSlots = self._at
        length: cython.Py_ssize_t = PyBytes_GET_SIZE(answer)
        size: cython.Py_ssize_t = length + prefix
        window: int64_t = number_in(sender, at.window)
        if size > self._join or size > window or size > of_stream or length > self._largest_answer:
            return 0
        if tandem_slot_is_true(sender, at.congested) or number_in(sender, at.pending_bytes):
            return 0
        if tandem_slot_is_true(sender, at.block_prefix):
            return 0
        head_size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._head)
        trailers_size: cython.Py_ssize_t = PyBytes_GET_SIZE(self._trailers)
        whole: cython.Py_ssize_t = 3 * _FRAME + head_size + size + trailers_size
        out: bytes = PyBytes_FromStringAndSize(cython.NULL, whole)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(out))
        to = put_frame(to, head_size, _HEADERS, _END_HEADERS, stream)
        memcpy(to, PyBytes_AS_STRING(self._head), head_size)
        to = put_frame(to + head_size, size, _DATA, 0, stream)
        if prefix:
            to[0] = 0
            to = put_number(to + 1, length)
        memcpy(to, PyBytes_AS_STRING(answer), length)
        to = put_frame(to + length, trailers_size, _HEADERS, _END_HEADERS | _END_STREAM, stream)
        memcpy(to, PyBytes_AS_STRING(self._trailers), trailers_size)
        tandem_fill_slot_long(sender, at.window, window - size)
        add_to_slot(sender, at.data_frames, 1)
        output: list = cython.cast(object, tandem_slot(sender, at.output))
        if alone and not output:
            self._out = out
            return 1
        queued: int64_t = number_in(sender, at.size) + whole
        tandem_fill_slot_long(sender, at.size, queued)
        output.append(out)
        if queued > self._flush_at:
            self._protocol.flush()
        return 1
