"""Connection: one socket of the remoting protocol, at either end.

What comes is cut into frames and given, one by one and in order, to the receiver: for a millisecond, then it is the
turn of other connections, and nothing more is read until all are handled. What goes is gathered during a turn of the
loop and written at once: the connection is the only writer of its socket. A peer that does not read is not read either,
and what it has asked already waits; one that goes on so is closed. Where there is a lane, it has what comes first, and
takes whole frames as they came.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

from tandemmq.common.net.remoting.asking import Asking
from tandemmq.common.net.remoting.errors import PeerGone, PeerSilent
from tandemmq.common.net.remoting.limits import REQUEST_COST, RemotingCounts, RemotingLimits
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.command import ONE_WAY, Body, Command
from tandemmq.common.wire.remoting.errors import BadRemotingFrame
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader

log = logging.getLogger(__name__)

_WRITE_BUFFER = 1 << 20
"""Bytes that wait for the socket before nothing more is read from it."""
_APART = 16 << 10
"""Bytes that are not copied to be written together with others: that costs more than a write of several parts."""
_FLUSH_AT = 256 << 10
"""Bytes that are given to the socket even while more frames of the same turn are handled."""


Lane = Callable[["RemotingConnection", bytes], int]
"""Sees bytes that begin with a frame, before they are cut into frames, and answers the requests that it knows: how many
bytes it has taken from the beginning, whole frames all. It must not raise, nor take long."""
Reads = Callable[["RemotingConnection"], Callable[[bytes], None]]
"""Makes what takes the bytes of one connection in place of `RemotingConnection.read`, and calls `read` or `go_on` for
what it does not do itself."""


class ConnectionOwner(Protocol):
    """Who a connection belongs to."""

    def began(self, connection: "RemotingConnection") -> None:
        """The connection is open. It may be closed here."""

    def came(self, connection: "RemotingConnection", frame: RemotingFrame) -> None:
        """A frame came. Must not raise."""

    def ended(self, connection: "RemotingConnection") -> None:
        """The connection has closed; `connection.reason` says why if it was closed by us."""


class RemotingConnection(asyncio.Protocol):
    """See the module."""

    def __init__(
        self, receiver: ConnectionOwner, limits: RemotingLimits, told: RemotingCounts, timers: Timers | None = None
    ) -> None:
        self._receiver = receiver
        self._limits = limits
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._timers = timers or LoopTimers()
        self._reader = RemotingFrameReader(limits.frame_bytes)
        self._frames: deque[RemotingFrame] = deque()
        self._turn_comes = False
        """Whether they are handled in a turn of the loop that comes."""
        self._fault: BadRemotingFrame | None = None
        """What came after the frames that wait, and is none."""
        self._asking = Asking(limits.asks)
        self._transport: asyncio.Transport | None = None
        self._output: list[Body] = []
        self._output_size = 0
        self._gathering = False
        self._stalled_since: float | None = None
        self._taken = asyncio.Event()
        self._taken.set()
        self._active_at = self._timers.time()
        self.heard = False
        """Whether something came, or went, since the last tick."""
        self.lane: Lane | None = None
        self.peer = ""
        """`host:port` of the other side, as RocketMQ prints addresses."""
        self.peer_host = ""
        self.tls = False
        """Whether it is encrypted."""
        self.reason = "the peer closed the connection"
        """Why it has closed."""
        self.request_bytes = 0
        """Of requests in work; see `begin_request`."""

    # -- asyncio's calls ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_WRITE_BUFFER)
        self.peer_host, self.peer = _address(transport.get_extra_info("peername"))
        self.tls = transport.get_extra_info("ssl_object") is not None
        self._receiver.began(self)

    def read_by(self, reads: Reads) -> None:
        """Have its bytes taken so. Before a transport asks: uvloop's asks once."""
        self.data_received = reads(self)  # type: ignore[assignment, method-assign]

    def data_received(self, data: bytes) -> None:
        """Bytes came. See `read_by`."""
        self.read(data)

    def read(self, data: bytes) -> None:
        """Bytes came."""
        self.heard = True
        if self.lane is not None and not self._frames:
            data = self._ahead(self.lane, data)
            if not data:
                return
        self._cut(data)

    def go_on(self, data: bytes) -> None:
        """The rest of what came, of which the lane has had all that is its."""
        self._cut(data)

    @property
    def between_frames(self) -> bool:
        """Whether what comes next begins a frame, which the lane may take."""
        behind = bool(self._frames) or self._fault is not None or self.stalled
        return self.lane is not None and self._transport is not None and not behind and not self._reader.missing

    def _ahead(self, lane: Lane, data: bytes) -> bytes:
        """Give a lane what lies whole in these bytes, and the reader the end of a frame: what is left."""
        missing = self._reader.missing
        if missing:
            self._cut(data[:missing])
            data = data[missing:]
        open_still = self._transport is not None and not self._transport.is_closing()
        if data and open_still and not (self._frames or self._fault or self._reader.missing):
            self._gathering = True
            taken = lane(self, data)
            self._gathering = False
            self._flush()
            data = data[taken:] if taken else data
        return data

    def _cut(self, data: bytes) -> None:
        behind = bool(self._frames)
        try:
            self._frames += self._reader.receive(data)
        except BadRemotingFrame as error:
            self._frames += error.frames
            self._fault = error
        if not behind:  # else its turn will come
            self._handle()

    def _handle(self) -> None:
        """Give frames to the receiver, as many as a turn has time for."""
        frames, until = self._frames, self._timers.elapsed() + self._limits.turn_seconds
        self._gathering = True
        while frames and self._stalled_since is None:
            if self._transport is None or self._transport.is_closing():
                frames.clear()
                break
            self._receiver.came(self, frames.popleft())
            if frames and self._timers.elapsed() >= until:
                self._handle_later()
                break
        self._gathering = False
        self._flush()
        if self._fault is not None and not frames:
            self._misbehaved(self._fault)
        self._read_or_wait()

    def _handle_later(self) -> None:
        if not self._turn_comes:
            self._turn_comes = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn_comes = False
        self._handle()

    def _misbehaved(self, fault: BadRemotingFrame) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._told.misbehaved += 1
            log.info("%s sent no frame of the remoting protocol: %s", self.peer, fault.message)
            self.close(fault.message)

    def _read_or_wait(self) -> None:
        """Read the socket only while there is nothing to do, and the peer reads."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wait = bool(self._frames) or self._stalled_since is not None
        if wait == transport.is_reading():
            (transport.pause_reading if wait else transport.resume_reading)()

    def eof_received(self) -> bool:
        """The peer has closed its side; nobody keeps half a connection."""
        return False

    def pause_writing(self) -> None:
        """The peer does not read: its requests wait until it does."""
        self._stalled_since = self._timers.time()
        self._taken.clear()
        self._read_or_wait()

    def resume_writing(self) -> None:
        """There is room again."""
        self._stalled_since = None
        self._taken.set()
        if self._frames:
            self._handle_later()
        else:
            self._read_or_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        self._transport = None
        self._taken.set()
        self._output.clear()
        self._frames.clear()
        self.__dict__.pop("data_received", None)  # it knows this connection
        self._asking.fail(f"{self.peer}: {self.reason}")
        self._receiver.ended(self)

    # -- output -------------------------------------------------------------------------------------------------------

    def send(self, command: Command) -> None:
        """Write a command; in this turn of the loop, with all others. Nothing happens when the connection is closed.

        Raises NotEncodable.
        """
        if len(command.body) < _APART:
            self.send_bytes(codec.encode(command))
        else:
            self.send_bytes(codec.encode_ahead(command))
            self.send_bytes(command.body)

    def send_bytes(self, frame: Body) -> None:
        """Write a frame whose bytes are made already, or the next part of it."""
        if self._transport is None:
            return
        self._output.append(frame)
        self._output_size += len(frame)
        if self._output_size >= _FLUSH_AT:
            self._flush()
        elif not self._gathering and len(self._output) == 1:
            self._loop.call_soon(self._flush)

    def send_now(self, head: bytes, body: bytes) -> None:
        """Write a frame in two parts, and with it all that waits to be written."""
        if self._transport is not None:
            self._output += head, body
            self._output_size += len(head) + len(body)
            self._flush()

    def respond(self, request: Command, response: Command) -> None:
        """Write the response to a request, unless that is one-way. Raises NotEncodable."""
        if not request.flag & ONE_WAY:
            self.send(response)

    def tell(self, command: Command) -> None:
        """Send a request that is not answered; it gets its number here. Raises NotEncodable."""
        command.opaque = self._asking.number()
        command.flag |= ONE_WAY
        self.send(command)

    async def ask(self, command: Command, seconds: float) -> Command:
        """The peer's response to a request, which gets its number here.

        Raises:
            PeerGone: the connection is closed.
            PeerSilent: nothing came within `seconds`.
            TooMuchAsked: too many requests wait already.
            NotEncodable: the request cannot be written.
        """
        if self._transport is None:
            raise PeerGone(f"{self.peer}: {self.reason}")
        answer = self._asking.begin(command)
        try:
            self.send(command)
            async with time_limit(self._timers, seconds):
                return await answer
        except TimeoutError:
            raise PeerSilent(f"{self.peer} has not answered within {seconds:g} s") from None
        finally:
            self._asking.forget(command)

    def answered(self, response: Command) -> None:
        """A response came: to be called by the receiver, which has decoded it."""
        self._asking.answered(response)

    @property
    def stalled(self) -> bool:
        """Whether the peer does not read what waits for it."""
        return self._stalled_since is not None

    async def drained(self) -> None:
        """Wait until the peer reads; then an answer may be made that is large. Raises PeerGone."""
        await self._taken.wait()
        if self._transport is None:
            raise PeerGone(f"{self.peer}: {self.reason}")

    def _flush(self) -> None:
        transport, output = self._transport, self._output
        if transport is None or not output:
            return
        size, self._output, self._output_size = self._output_size, [], 0
        if transport.is_closing():
            return
        self.heard = True
        if len(output) == 1:
            transport.write(output[0])
        elif size < _APART:
            transport.write(b"".join(output))
        else:
            transport.writelines(output)
        if transport.get_write_buffer_size() > self._limits.output_bytes:
            self._give_up()

    # -- requests in work, and life -----------------------------------------------------------------------------------

    def has_room(self, frame_bytes: int) -> bool:
        """Whether `begin_request` would give True."""
        return self.request_bytes + frame_bytes + REQUEST_COST <= self._limits.connection_request_bytes

    def begin_request(self, frame_bytes: int) -> bool:
        """Whether there is room to work at one more request; then `end_request` must follow, with the same number."""
        if not self.has_room(frame_bytes):
            self._told.busy += 1
            return False
        self.request_bytes += frame_bytes + REQUEST_COST
        return True

    def end_request(self, frame_bytes: int) -> None:
        """The request is answered, or never will be."""
        self.request_bytes -= frame_bytes + REQUEST_COST

    @property
    def closed(self) -> bool:
        """Whether it has closed, or was never open."""
        return self._transport is None

    @property
    def held(self) -> int:
        """Bytes of a frame that is not complete."""
        return self._reader.incomplete

    @property
    def waiting(self) -> int:
        """Bytes that wait for the peer to read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def close(self, reason: str) -> None:
        """Close when what is sent already is written."""
        if self._transport is not None and not self._transport.is_closing():
            self._flush()
            self.reason = reason
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close without writing what waits."""
        if self._transport is not None:
            self.reason = reason
            self._transport.abort()

    def tick(self, now: float) -> None:
        """Called now and then, with the time of its timers: closes what is stalled or idle."""
        limits = self._limits
        if self.heard:
            self.heard, self._active_at = False, now
        if self._stalled_since is not None and now - self._stalled_since > limits.stalled_seconds:
            self._give_up()
        elif limits.idle_seconds and now - self._active_at > limits.idle_seconds:
            self._told.idle += 1
            self.close(f"nothing went over the connection for {limits.idle_seconds:g} s")

    def _give_up(self) -> None:
        self._told.slow += 1
        log.warning("%s does not read what waits for it: its connection is closed", self.peer)
        self.abort("the peer does not read what is sent to it")


def _address(name: object) -> tuple[str, str]:
    """Host, and `host:port`, of a socket's name; empty for what has none."""
    if not isinstance(name, tuple) or len(name) < 2:
        return "", ""
    host = str(name[0]).removeprefix("::ffff:")
    return host, f"[{host}]:{name[1]}" if ":" in host else f"{host}:{name[1]}"
