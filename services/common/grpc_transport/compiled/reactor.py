"""Reactor: reads the sockets of busy lanes, and answers them together.

It has an epoll of its own, which the event loop watches as one descriptor. In one callback it reads every socket that
is ready, gives what came to its lane, and sends the answers of all of them at the end. What is not the lane's the
connection does, as ever, with asyncio's transport. That reads no more while the reactor does; it is given the socket
back when something comes that is the transport's: the end of a connection, an error, or a pause. It is also what writes
where the socket takes only a part of an answer.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.cpython.object import PyObject
from cython.cimports.libc.errno import EAGAIN, EINTR, errno
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.posix.unistd import close
from cython.cimports.tandemmq.common.grpc_transport.compiled.lane import Lane
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.common.grpc_transport.compiled.slots import add_to_slot, tandem_slot_is_true

_MOST_EVENTS: cython.int = 128
_READ_SIZE: cython.Py_ssize_t = 256 << 10
_ASK_SECONDS: cython.double = 0.1
_MOST_ALONE: cython.int = 1000
"""Turns, one after the other, with one socket each: then it gives back what it reads."""


@cython.cclass
class WatchedSocket:
    """A connection's socket, while the reactor reads it."""


@cython.cclass
class Reactor:
    """See the module."""

    def __init__(self, loop: object, seconds: float, before: int, least: int) -> None:
        """`seconds`: after which no further socket is read in one turn of the loop.

        A connection is busy after `before` reads that were all its lane's; fewer than `least` busy ones are not worth
        it: in their turns there is not enough to do.
        """
        self._loop = loop
        self._seconds = seconds
        self.before, self._least = before, least
        self._epoll = -1
        self._watched = set()
        self._asking = set()
        self._left = []

    def __dealloc__(self) -> None:
        if self._epoll >= 0:
            close(self._epoll)
        free(self._buffer)

    @property
    def watched(self) -> int:
        """How many sockets it reads."""
        return len(self._watched)

    def watch(self, lane: Lane, transport: object) -> object:
        """Read the socket of a lane from now on; None: it cannot be, and stays the transport's."""
        if not self._is_busy(lane) or (self._epoll < 0 and not self._open()):
            return None
        event: epoll_event
        watched: WatchedSocket = WatchedSocket()
        watched._lane, watched._transport = lane, transport
        watched._file = transport.get_extra_info("socket").fileno()
        event.events = EPOLLIN
        event.data.ptr = cython.cast(cython.p_void, watched)
        if watched._file < 0 or epoll_ctl(self._epoll, EPOLL_CTL_ADD, watched._file, cython.address(event)):
            return None
        self._watched.add(watched)
        transport.pause_reading()
        return watched

    def _is_busy(self, lane: Lane) -> bool:
        """Whether there are enough connections as busy as this one."""
        now: cython.double = seconds_now()
        if now > self._asked_until:
            self._asked_until = now + _ASK_SECONDS
            self._asking.clear()
        self._asking.add(id(lane))
        if len(self._watched) + len(self._asking) < self._least:
            return False
        self._asking.discard(id(lane))
        return True

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def send_now(self, watched: WatchedSocket, out: bytes) -> cython.int:
        """Send an answer that was held: 2. 0, and nothing is sent, where something is before it or the socket is full.

        1: a part of it is sent, and goes on by the transport.
        """
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(out)
        if watched._file < 0 or watched._out is not None or watched._transport.get_write_buffer_size():
            return 0
        sent: cython.Py_ssize_t = send(watched._file, PyBytes_AS_STRING(out), size, MSG_NOSIGNAL | MSG_DONTWAIT)
        if sent <= 0:
            return 0
        lane: Lane = watched._lane
        add_to_slot(lane._protocol, lane._at.written, sent)
        if sent == size:
            return 2
        lane._write(out[sent:])
        return 1

    def forget(self, watched: WatchedSocket) -> None:
        """Read a socket no more: it is about to be closed."""
        self._forget(watched)

    def close(self) -> None:
        """End; what it reads is given back."""
        self._give_all_back()
        if self._epoll < 0:
            return
        self._loop.remove_reader(self._epoll)
        close(self._epoll)
        self._epoll = -1
        if not self._turning:
            self._next = self._count = 0
            self._left.clear()

    def _open(self) -> bool:
        """Begin with the first socket: a server without such connections needs none of it."""
        if self._buffer == cython.NULL:
            self._buffer = cython.cast(cython.p_uchar, malloc(_READ_SIZE))
            if self._buffer == cython.NULL:
                raise MemoryError
        self._epoll = epoll_create1(EPOLL_CLOEXEC)
        if self._epoll < 0:
            return False
        self._loop.add_reader(self._epoll, self.turn)
        return True

    def turn(self) -> None:
        """Serve the sockets that are ready, as many as there is time for.

        The next turn goes on with the others, before any is served again: epoll would name the same ones first.
        """
        until: cython.double = seconds_now() + self._seconds
        if self._next < self._count:
            self._serve_named(until)
            if self._next < self._count or seconds_now() > until:
                return
        self._next, self._count = 0, max(0, epoll_wait(self._epoll, self._events, _MOST_EVENTS, 0))
        self._alone = self._alone + 1 if self._count == 1 else 0
        self._serve_named(until)
        if self._alone > _MOST_ALONE:
            self._give_all_back()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve_named(self, until: cython.double) -> cython.int:
        """Serve the sockets that events name, while there is time; then send their answers."""
        first: cython.int = self._next
        i: cython.int
        self._turning = True
        try:
            while self._next < self._count:
                self._next += 1
                self._serve(self._named(self._next - 1))
                if seconds_now() > until:
                    break
        finally:
            for i in range(first, self._next):
                self._answer(self._named(i))
            self._turning = False
            if self._next == self._count:
                self._left.clear()
        return 1

    @cython.cfunc
    def _named(self, i: cython.int) -> WatchedSocket:
        """The socket that an event names."""
        return cython.cast(WatchedSocket, cython.cast(cython.pointer(PyObject), self._events[i].data.ptr))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _serve(self, watched: WatchedSocket) -> cython.int:
        """Read a socket, and have what came answered."""
        try:
            if watched._file >= 0:
                self._read(watched)
        except (SystemExit, KeyboardInterrupt) as error:
            self._fail(watched, error)
            raise
        except BaseException as error:  # noqa: BLE001 - the others are served too
            self._fail(watched, error)
        return 1

    def _fail(self, watched: WatchedSocket, error: BaseException) -> None:
        """End a connection whose protocol has failed, as its transport would."""
        self._forget(watched)
        said: dict = {"message": "a connection is broken off", "exception": error, "transport": watched._transport}
        self._loop.call_exception_handler(said)
        watched._transport.abort()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _read(self, watched: WatchedSocket) -> cython.int:
        lane: Lane = watched._lane
        if watched._transport.is_closing():
            self._forget(watched)
            return 0
        size: cython.Py_ssize_t = recv(watched._file, self._buffer, _READ_SIZE, MSG_DONTWAIT)
        if size <= 0:
            if size == 0 or (errno != EAGAIN and errno != EINTR):
                self._forget(watched)
                self._give_back(watched)  # it comes across the same, and knows what to do
            return 0
        lane._receive(PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, self._buffer), size))
        watched._out, lane._out, lane._plain = lane._out, None, 0
        if watched._out is None and watched._file >= 0 and self._stopped_reading(lane):
            self._forget(watched)  # who has stopped reading will have the transport go on
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _stopped_reading(self, lane: Lane) -> cython.int:
        if tandem_slot_is_true(lane._reader, lane._at.behind):
            return 1
        return tandem_slot_is_true(lane._protocol, lane._at.paused)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _answer(self, watched: WatchedSocket) -> cython.int:
        """Send the answer that was kept: at once, if nothing is before it."""
        out: bytes = watched._out
        if out is None:
            return 0
        watched._out = None
        lane: Lane = watched._lane
        size: cython.Py_ssize_t = PyBytes_GET_SIZE(out)
        sent: cython.Py_ssize_t = 0
        if watched._file >= 0 and not watched._transport.get_write_buffer_size():
            sent = send(watched._file, PyBytes_AS_STRING(out), size, MSG_NOSIGNAL | MSG_DONTWAIT)
            if sent == size:
                add_to_slot(lane._protocol, lane._at.written, size)
                return 1
            if sent > 0:
                add_to_slot(lane._protocol, lane._at.written, sent)
                out = out[sent:]
        if lane._connection.failed is not None:
            return 0  # the last that it says has been said
        try:
            lane._write(out)  # that hears of errors too
        except Exception as error:  # noqa: BLE001 - the others are answered too
            self._fail(watched, error)
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _forget(self, watched: WatchedSocket) -> cython.int:
        event: epoll_event
        if watched._file >= 0:
            epoll_ctl(self._epoll, EPOLL_CTL_DEL, watched._file, cython.address(event))
            watched._file = -1
            watched._lane._watched = None
            self._watched.discard(watched)
            if self._turning or self._next < self._count:
                self._left.append(watched)  # an event may still name it
        return 1

    def _give_all_back(self) -> None:
        self._alone = 0
        self._asking.clear()
        for watched in list(self._watched):
            self._forget(watched)
            self._give_back(watched)

    def _give_back(self, watched: WatchedSocket) -> None:
        if not watched._transport.is_closing():
            watched._transport.resume_reading()
