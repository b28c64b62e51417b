"""Flushing: how either end's protocol hands to its socket what its connection has queued."""

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.http2.endpoint import Endpoint

FLUSH_AT = 64 << 10
"""Bytes that are given to the socket at once, even while more is being read."""
WRITE_BUFFER = 1 << 20
"""Bytes that wait for the socket before writers must; less, and a stream of large messages stands still in between."""
_WRITE_LIMIT = 8 << 20
"""Bytes that wait for the socket before nothing more is read that could add to them."""


class Flushing(asyncio.Protocol):
    """The writing half of a protocol."""

    __slots__ = ("__dict__", "__weakref__", "_paused", "_transport", "written")
    # In slots is what the compiled core reads and writes where it lies.

    loop: asyncio.AbstractEventLoop
    connection: "Endpoint"

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._scheduled = False
        self._paused = False
        self.context = copy_context()
        """Of what is put off to a turn: calls that begin there must not find the variables of who asked for it."""
        self.written = 0
        """Bytes that were ever given to the socket."""

    def sent(self) -> None:
        """A call has queued something: if nobody is about to flush, it goes out in this turn of the loop."""
        if not self._scheduled and not self.connection.receiving and self.connection.sender.output:
            self._schedule()

    def flush(self) -> None:
        """Give everything that is queued to the socket."""
        sender = self.connection.sender
        output, size = sender.output, sender.size
        if not output:
            return
        sender.output, sender.size = [], 0
        self.written += size
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            if len(output) == 1:
                transport.write(output[0])
            elif size <= FLUSH_AT:
                transport.write(b"".join(output))
            else:
                transport.writelines(output)
        except RuntimeError:  # uvloop closes the transport of a dial that is cancelled, and tells nobody
            self._transport = None

    def go_on(self) -> None:
        """What was put off to a turn of its own."""
        raise NotImplementedError

    def pause_reading(self) -> None:
        """A peer that asks and asks and does not read: even refusals and PINGs answered would pile up."""
        transport = self._transport
        if transport is not None and not self._paused and transport.get_write_buffer_size() > _WRITE_LIMIT:
            self._paused = True
            transport.pause_reading()

    def pause_writing(self) -> None:
        """The socket is full: nothing more is made for it. What comes is read on, as it may be a cancellation."""
        self.connection.sender.congested = True

    def resume_writing(self) -> None:
        """The socket has room again."""
        self.connection.sender.congested = False
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            if not self.connection.reader.behind:
                self._transport.resume_reading()
        self._schedule()

    def abort(self) -> None:
        """Break off: what is not written is lost."""
        if self._transport is not None:
            self._transport.abort()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._scheduled_turn, context=self.context)

    def _scheduled_turn(self) -> None:
        self._scheduled = False
        self.go_on()
