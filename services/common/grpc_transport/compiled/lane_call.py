"""LaneCall: a call of a lane, while its request comes in pieces, while it is asked, and while it is held.

It is the `Stream` of its connection then, and what its method's short way is shown. Where Python has to go on with it,
it gives what it has to a call of Python's (`as_call`), and stands for that from then on.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int64_t
from cython.cimports.tandemmq.common.grpc_transport.compiled.gathered_request import GatheredRequest
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane_slots import LaneSlots
from cython.cimports.tandemmq.common.grpc_transport.compiled.slots import (
    add_to_slot,
    number_in,
    tandem_slot_is_true,
)

from tandemmq.common.grpc_transport.rpc import messages

_PART_OVERHEAD: cython.Py_ssize_t = messages.PART_OVERHEAD


@cython.cclass
class KeptCalls:
    """What the calls of a lane know of it; the lane is one of these."""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _ended(self, call: LaneCall) -> cython.int:
        """A call is gathered or held no more."""
        add_to_slot(self._server, self._at.active, -1)
        add_to_slot(self._connection, self._at.buffered, -call._counted)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer_held(self, call: LaneCall, answer: object) -> cython.int:
        """Answer a call that is held, and end it."""
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve_gathered(self, call: LaneCall, message: bytes) -> cython.int:
        """Ask the short way of a call whose request has come, and answer."""
        raise NotImplementedError

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _unhindered(self) -> cython.int:
        """Whether an answer could leave now, and memory is not short."""
        sender: object = self._sender
        at: LaneSlots = self._at
        buffered: int64_t = number_in(self._connection, at.buffered)
        if buffered > self._most_buffered or number_in(sender, at.window) <= 0:
            return 0
        if tandem_slot_is_true(sender, at.congested) or number_in(sender, at.pending_bytes):
            return 0
        return not tandem_slot_is_true(self._budget, at.tight)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _takes_piece(
        self, call: LaneCall, at: cython.p_const_uchar, size: cython.Py_ssize_t, ended: cython.bint
    ) -> cython.int:
        """Whether a piece of a request is plain, and may be kept, or the call asked, now."""
        gathered: GatheredRequest = call._gathered
        if gathered is None or not gathered.fits(at, size, ended, self._largest_request):
            return 0
        buffered: int64_t = number_in(self._connection, self._at.buffered)
        return (ended or buffered + size + _PART_OVERHEAD <= self._most_buffered) and self._unhindered()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _add_piece(
        self, call: LaneCall, at: cython.p_const_uchar, size: cython.Py_ssize_t, ended: cython.bint
    ) -> cython.int:
        """Keep a piece of a request, or ask the call that it completes, and answer. It is counted in the windows."""
        gathered: GatheredRequest = call._gathered
        cost: cython.Py_ssize_t
        if ended:
            return self._serve_gathered(call, gathered.message(at, size))
        cost = gathered.add(at, size)
        call._counted += cost
        add_to_slot(self._connection, self._at.buffered, cost)
        return 1


@cython.cclass
class LaneCall:
    """A call as its method's short way sees it (`aio.handlers.DirectCall`), and its `Stream` until it is answered."""

    def peer(self) -> str:
        """Who calls."""
        return self._lane._peer

    @property
    def account(self) -> object:
        """Whom the connection counts for."""
        return self._lane._protocol.account

    def invocation_metadata(self) -> object:
        """What the caller sent along."""
        if self._head is None:
            if self._block == cython.NULL:
                raise RuntimeError("the call has been answered")
            self._head = self._lane._heads.kept(self._block, self._block_size)
        return self._lane._heads.metadata(self._head)

    @cython.ccall
    def answer_later(self, answer: object) -> object:
        """Answer a call that was held."""
        if self._call is not None:
            self._call.answer_later(answer)
        elif not self.closed:
            self._lane._answer_held(self, answer)

    def hand_over(self, message: bytes) -> None:
        """Have the handler answer a call that was held."""
        if self._call is not None or not self.closed:
            self.as_call().hand_over(message)

    def end_with(self, code: object, details: str, trailing: tuple) -> None:
        """End a call that was held with an error."""
        if self._call is not None or not self.closed:
            self.as_call().end_with(code, details, trailing)

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer."""
        return bool(self.is_gone())

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_gone(self) -> cython.int:
        """See `gone`."""
        return self.closed if self._call is None else self._call.gone

    @property
    def has_room(self) -> bool:
        """See DirectCall: it is served while nothing is short, and none waits before it, and held longer than that."""
        return bool(self.may_have())

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def may_have(self) -> cython.int:
        """See `has_room`."""
        if self._call is not None:
            return self._call.has_room
        if not self.stream_id:
            return True
        at: LaneSlots = self._lane._at
        if number_in(self._lane._sender, at.pending_bytes):
            return False
        return not tandem_slot_is_true(self._lane._budget, at.tight)

    def become(self, call: object) -> None:
        """It is one of Python's from here on."""
        self._call = call

    def as_call(self) -> object:
        """See Stream: it becomes one of Python's."""
        gathered: GatheredRequest = self._gathered
        if self._call is None:
            self._lane._ended(self)
            if gathered is None:
                self._lane._resume(self._head, self, self._counted, self._deadline)
            else:
                self._gathered = None
                self._lane._go_on(self._head, self, self._deadline, gathered.parts, gathered.left)
        return self._call

    @property
    def deadline(self) -> object:
        """When it expires, by the clock of the loop, while it is held; else None."""
        return None if self.closed or self._call is not None else self._deadline

    def expire(self) -> None:
        """The deadline has come."""
        self.as_call().expire_now()

    def reset(self, code: int) -> None:
        """See Stream; it is closed."""
        self._lane._ended(self)

    def data(self, buffer: bytes, start: cython.Py_ssize_t, stop: cython.Py_ssize_t, ended: bool) -> None:
        """See Stream: a piece of the request, of a frame that the lane has not read. Python takes what is not plain."""
        at: cython.p_const_uchar = cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(buffer)) + start
        if self._call is None and self._lane._takes_piece(self, at, stop - start, ended):
            self._lane._add_piece(self, at, stop - start, ended)
            return
        call: object = self.as_call()
        self.closed = True  # whoever has called looks at the windows of this one no more
        call.remote_ended = ended
        call.data(buffer, start, stop, ended)
        if not ended and not call.closed:
            call.connection.regrant_stream(call)

    def ended(self) -> None:
        """See Stream: trailers have ended the request."""
        call: object = self.as_call()
        call.remote_ended = True
        call.ended()

    def stands(self, now: float, patience: float) -> bool:
        """See Stream. Held, the peer has sent all that it has to, and is owed nothing yet; else Python watches it."""
        return self._gathered is not None and self.as_call().stands(now, patience)

    def give_up_on_peer(self) -> None:
        """See Stream."""
        self.as_call().give_up_on_peer()
