"""One slave's connection on a master: a socket on the event loop, a `Transfer` that decides, a sender that writes.

What a slave near the end of the log gets is in memory and is sent by the loop in the turn in which the store told of
it. A slave that is far behind may need the disk: its frames are sent by a thread, so that nobody else waits.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from tandemmq.common.calling.addresses import host_port
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timer, Timers
from tandemmq.replicator.frames import ReportReader
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.master.log_files import OpenLogFiles
from tandemmq.replicator.master.sender import FrameSender, PlainSender, TlsSender
from tandemmq.replicator.master.transfer import Frame, Transfer, TransferRefused, TransferRules
from tandemmq.replicator.metrics import ReplicatorMetrics

log = get_log(__name__)

_READ_SIZE = 64 << 10
_NEAR = 16 << 20
"""A slave that is less behind is served by the loop, if the pages are in memory."""
_TURN_BYTES = 1 << 20
"""What one connection may send before others have their turn."""
_JOB_BYTES = 8 << 20
"""What a thread is given at a time."""
_LATE = 0.001
"""Timers fire so much later than due, as the limits are exceeded, not met."""


class HandshakeFailed(TransferRefused):
    """No TLS could be agreed on."""

    reason = "tls"


class Shared(NamedTuple):
    """What all connections of a master have in common."""

    view: LogView
    files: OpenLogFiles
    rules: TransferRules
    metrics: ReplicatorMetrics
    executor: Executor
    timers: Timers
    tls: ssl.SSLContext | None


class Events(NamedTuple):
    """Whom a connection tells: of its first report, of a higher ack, and of its end (once, whatever the reason)."""

    begun: Callable[["SlaveConnection"], None]
    acked: Callable[["SlaveConnection"], None]
    closed: Callable[["SlaveConnection", TransferRefused | None], None]


class SlaveConnection:
    """From accept to close. Belongs to the event loop."""

    def __init__(self, number: int, connection: socket.socket, peer: tuple[str, int], shared: Shared, events: Events):
        """`connection` is accepted and does not block; it is ours from now on."""
        self.number = number
        self.peer = peer
        self.identity = peer[0]
        """Broker id if it has introduced itself with one, else its address."""
        self.introduced = False
        """Whether it is one of ours: it compares logs before it acks."""
        self.listed = False
        """Whether it was found to follow, and is in the master's group."""
        self._loop = asyncio.get_running_loop()
        self._timers = shared.timers
        self._shared = shared
        self._events = events
        self.transfer = Transfer(shared.rules, self._timers.time())
        self._reports = ReportReader()
        self._socket = connection
        self._descriptor = connection.fileno()
        self._sender: FrameSender = PlainSender(connection)
        self._written = 0
        self._blocked = self._closed = self._turn_over = False
        self._cold = False
        """Whether what is to be written may have to be read from a disk."""
        self._fresh = False
        """Whether the slave has had everything since it was last far behind: what comes now was just appended."""
        self._job: asyncio.Future[None] | None = None
        self._timer: Timer | None = None
        self._fires_at = float("inf")

    @property
    def address(self) -> str:
        """The slave's address and port."""
        return host_port(*self.peer)

    def start(self) -> None:
        """Begin to listen to the slave."""
        self._set_timer()
        tls = self._shared.tls
        if tls is None:
            self._loop.add_reader(self._descriptor, self._read)
            return
        self._socket = tls.wrap_socket(
            self._socket, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        self._sender = TlsSender(self._socket)
        self._loop.add_reader(self._descriptor, self._shake_hands)

    def log_changed(self) -> None:
        """The log has grown, or is another one: send what there is."""
        if self._shared.view.max_offset < self.transfer.next_offset:
            self._check()
        if not self._blocked and self._job is None and not self._turn_over:
            self._pump()

    def close(self, reason: TransferRefused | None = None, *, why: str = "stopped") -> None:
        """End the connection; `why` is its label in the metrics when there was nothing to refuse."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        self._shared.metrics.closed(reason.reason if reason is not None else why)
        if self._job is None:
            self._socket.close()
        else:  # a thread still writes into it
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._events.closed(self, reason)

    # -- from the slave -----------------------------------------------------------------------------------------------

    def _shake_hands(self) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        self._loop.remove_writer(self._descriptor)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._descriptor, self._shake_hands)
            return
        except OSError as error:
            self.close(HandshakeFailed(f"TLS with {self.address} failed: {error}"))
            return
        self._loop.add_reader(self._descriptor, self._read)
        self._read()

    def _read(self) -> None:
        try:
            data = self._socket.recv(_READ_SIZE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:
            data = b""
        if not data:
            self.close(why="ended")
            return
        now = self._timers.time()
        self.transfer.heard(now)
        before = self._reports.received
        offset = self._reports.feed(data)
        self._shared.metrics.reports_received += self._reports.received - before
        if offset is None:
            return
        begun = self.transfer.begun
        try:
            news = self.transfer.report(offset, self._shared.view, now, compares=self.introduced)
        except TransferRefused as refused:
            self.close(refused)
            return
        if not begun:
            self._events.begun(self)
            self.log_changed()
        elif news:
            self._events.acked(self)
        if isinstance(self._socket, ssl.SSLSocket) and not self._closed and self._socket.pending():
            self._read()

    # -- to the slave -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send until the slave has all, its socket takes no more, a thread has to help, or the turn is over."""
        self._turn_over = False
        if self._closed or self._blocked or self._job is not None:
            return
        try:
            self._send_turn()
        except TransferRefused as refused:
            self.close(refused)
        except OSError:
            self.close(why="ended")
        except Exception as error:  # noqa: BLE001 - a connection that looks alive and gets nothing is the worst end
            log.failure("sending to a slave failed", error, address=self.address)
            self.close(why="failed")
        else:
            self._set_timer()

    def _send_turn(self) -> None:
        transfer, view = self.transfer, self._shared.view
        budget, now = _TURN_BYTES, self._timers.time()
        while not self._sender.pending or self._write():
            if budget <= 0:
                self._turn_over = True
                self._timers.call_soon(self._pump)
                return
            frame = transfer.plan(view, now)
            if frame is None:
                self._fresh = self._fresh or transfer.behind(view) <= 0
                return
            behind = transfer.behind(view)
            if behind > _NEAR:
                self._cold, self._fresh = True, False
            self._add(frame)
            budget -= frame.size
            if self._cold:
                self._plan_job(now)
            elif not behind:
                self._fresh = self._write() or self._fresh
                return

    def _plan_job(self, now: float) -> None:
        size = 0
        while size < _JOB_BYTES:
            frame = self.transfer.plan(self._shared.view, now)
            if frame is None:
                return
            self._add(frame)
            size += frame.size

    def _add(self, frame: Frame) -> None:
        metrics = self._shared.metrics
        if not frame.size:
            metrics.heartbeats_sent += 1
            self._sender.add(frame, None)
            return
        metrics.frames_sent += 1
        file = self._shared.files.at(frame.offset, self._shared.view.file_size)
        if not self._cold and not self._fresh and not file.resident(frame.offset, frame.size):
            self._cold = True
        self._sender.add(frame, file)

    def _write(self) -> bool:
        """Whether everything is written. If not, the socket is full, or a thread has taken over."""
        if self._cold:
            self._job = asyncio.ensure_future(self._loop.run_in_executor(self._shared.executor, self._sender.prepare))
            self._job.add_done_callback(self._job_done)
            return False
        done = self._sender.push()
        self._count()
        if not done:
            self._blocked = True
            self._loop.add_writer(self._descriptor, self._writable)
        return done

    def _writable(self) -> None:
        self._blocked = False
        self._loop.remove_writer(self._descriptor)
        self._pump()

    def _job_done(self, job: asyncio.Future[None]) -> None:
        self._job = None
        error = None if job.cancelled() else job.exception()
        if self._closed:
            self._socket.close()
            return
        if error is not None:
            self.close(error if isinstance(error, TransferRefused) else None, why="ended")
            return
        self._count()
        if not self._sender.pending:
            self._cold = False
        elif isinstance(self._sender, TlsSender):
            self._cold = False  # it is all in memory now
        else:
            self._blocked = True
            self._loop.add_writer(self._descriptor, self._writable)
            return
        self._pump()

    def _count(self) -> None:
        written = self._sender.written
        if written != self._written:
            self._shared.metrics.bytes_sent += written - self._written
            self._written = written
            self.transfer.wrote(self._timers.time())

    # -- time ---------------------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Timers that fire too early are left alone: they set themselves anew."""
        if self._closed:
            return
        busy = self._blocked or self._job is not None
        due = self.transfer.due(self._timers.time(), busy=busy) + _LATE
        if due < self._fires_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._timers.call_at(due, self._tick)
            self._fires_at = due

    def _tick(self) -> None:
        self._timer, self._fires_at = None, float("inf")
        self._check()
        self.log_changed()
        self._set_timer()

    def _check(self) -> None:
        try:
            self.transfer.check(self._shared.view, self._timers.time())
        except TransferRefused as refused:
            self.close(refused)
