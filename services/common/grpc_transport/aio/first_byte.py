"""FirstByte: one listening socket for plain text and TLS; the first byte of a connection tells which it is.

The byte is only looked at (`MSG_PEEK`): what has been read could not be given back to asyncio. A connection that says
nothing is closed after as long as a handshake may take.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger(__name__)

TLS_HANDSHAKE = 0x16
"""The first byte of a TLS connection; HTTP/2 begins with `P`."""

_AT_ONCE = 16
"""Connections that are accepted in one turn of the loop."""
_PAUSE_SECONDS = 1.0
"""No connection is accepted for so long when one could not be: mostly files have run out, and that would spin."""

Context = Callable[[], Awaitable[ssl.SSLContext]]
"""Gives what TLS connections are served with; it may take its time the first time."""


class FirstByte:
    """Accepts connections of one socket, and gives them to asyncio as what they are."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], asyncio.Protocol],
        context: Context,
        seconds: float,
        full: Callable[[int], bool],
    ) -> None:
        """`seconds`: until the first byte, and for the handshake; `full`: whether no more than so many may wait."""
        self._listening = listening
        self._make = make
        self._context = context
        self._seconds = seconds
        self._full = full
        self._loop = asyncio.get_running_loop()
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = True
        self._loop.add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more, and let those go that have said nothing yet."""
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        for silent in list(self._silent):
            self._drop(silent)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be accepted: %s", error.strerror or error)
                self._loop.remove_reader(self._listening.fileno())
                self._loop.call_later(_PAUSE_SECONDS, self._resume)
                return
            accepted.setblocking(False)
            if self._full(len(self._silent) + len(self._tasks)):
                accepted.close()
            elif not self._look(accepted):
                self._silent[accepted] = self._loop.call_later(self._seconds, self._drop, accepted)
                self._loop.add_reader(accepted.fileno(), self._said, accepted)

    def _resume(self) -> None:
        if self._open:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _said(self, accepted: socket.socket) -> None:
        self._forget(accepted)
        if not self._look(accepted):
            accepted.close()

    def _look(self, accepted: socket.socket) -> bool:
        """Serve a connection that has said something, or has gone; False while there is nothing."""
        try:
            first = accepted.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            first = b""
        if not first:
            accepted.close()
            return True
        task = self._loop.create_task(self._serve(accepted, tls=first[0] == TLS_HANDSHAKE), name="first byte")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _serve(self, accepted: socket.socket, *, tls: bool) -> None:
        try:
            context = await self._context() if tls else None
            seconds = self._seconds if tls else None
            await self._loop.connect_accepted_socket(self._make, accepted, ssl=context, ssl_handshake_timeout=seconds)
        except (OSError, ValueError, TimeoutError) as error:
            log.debug("a connection ended before it began: %s", error)
            with suppress(OSError):
                accepted.close()

    def _drop(self, accepted: socket.socket) -> None:
        self._forget(accepted)
        accepted.close()

    def _forget(self, accepted: socket.socket) -> None:
        timer = self._silent.pop(accepted, None)
        if timer is not None:
            timer.cancel()
            self._loop.remove_reader(accepted.fileno())
