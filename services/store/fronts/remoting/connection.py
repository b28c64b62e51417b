"""Connection: one client's connection. Frames come in, commands go out; what they mean is `Served`'s affair.

Requests and answers go both ways. A client that does not read its answers is read no more until it does; one that does
neither for too long is cut off, and so is one whose frame does not come to its end.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, cast

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.wire.remoting.codec import encode
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, Body, Command
from tandemmq.common.wire.remoting.errors import BadFrame, NotEncodable
from tandemmq.common.wire.remoting.frames import Frame, FrameReader
from tandemmq.store.format.host import Host, IllegalHost

log = get_log(__name__)

_HIGH_WATER = 1 << 20
"""Bytes of answers that wait to be taken; then the client is read no more."""
_FRAMES_A_TURN = 64
_PATIENT_FRAME = 64 << 10
"""Half a frame of so many bytes may stay whatever the others hold."""
_NOBODY = Host("0.0.0.0", 0)


class ClientGone(TandemError):
    """The client whose answer was waited for has gone."""

    kind = Kind.AWAY


class ClientSilent(TandemError):
    """The client has not answered in time."""

    kind = Kind.AWAY


class Served(Protocol):
    """What frames mean."""

    def frame(self, frame: Frame, connection: "Connection") -> None:
        """A frame has come."""
        ...

    def read(self) -> None:
        """These were all frames for the moment."""
        ...

    def lost(self, connection: "Connection") -> None:
        """The connection has ended."""
        ...


@dataclass(slots=True)
class Held:
    """What all connections of a front hold together, and what they may."""

    most_bytes: int
    most_requests: int
    """Requests of one connection that are not answered yet."""
    bytes: int = 0
    """Of frames that are not whole."""
    numbers: "count[int]" = field(default_factory=lambda: count(1))
    """Of what the broker asks; on all connections together."""


class Connection(asyncio.Protocol):
    """See above."""

    def __init__(self, served: Served, held: Held, opened: Callable[["Connection"], bool]) -> None:
        """`opened` hears of it when it is there; False: there are too many."""
        self.peer = _NOBODY
        self.own = _NOBODY
        """Our end of it."""
        self.client: Any = None
        """What `Served` knows of who is at the other end."""
        self.unanswered = 0
        self.waiting: dict[object, Callable[[], object]] = {}
        """Requests that wait, and how each is cancelled."""
        self.active_at = 0.0
        self.paused_at: float | None = None
        self.begun_at: float | None = None
        """Since when half a frame waits for its rest."""
        self._served = served
        self._held = held
        self._opened = opened
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._incomplete = 0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._writable.set()
        self._asked: dict[int, asyncio.Future[Command]] = {}
        self._working = False

    # -- what the loop calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self.peer, self.own = (_host(transport.get_extra_info(name)) for name in ("peername", "sockname"))
        self.active_at = self._loop.time()
        if not self._opened(self):
            self.abort()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self.active_at = self._loop.time()
        try:
            self._frames.extend(self._reader.receive(data))
        except BadFrame as error:
            self._frames.extend(error.frames)
            self._work()
            log.info("a connection ends: it does not speak the protocol", peer=str(self.peer), reason=error.message)
            self.close()
            return
        self._account()
        if not self._working:
            self._work()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._transport = None
        self._frames.clear()
        self._held.bytes -= self._incomplete
        self._incomplete = 0
        self._writable.set()
        for cancel in list(self.waiting.values()):
            cancel()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ClientGone("The client has gone before it answered."))
        self._served.lost(self)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: the client does not take its answers as quickly as it asks."""
        self.paused_at = self._loop.time()
        self._writable.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.paused_at = None
        self._writable.set()
        if self._frames:
            self._go_on()
        elif self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- reading ----------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Handle the frames that are there, some each turn of the loop: others have theirs."""
        self._working = False
        frames = self._frames
        for _ in range(min(len(frames), _FRAMES_A_TURN)):
            if self.paused_at is not None or not frames:
                break
            self._served.frame(frames.popleft(), self)
        self._served.read()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not frames:
            if self.paused_at is None:
                transport.resume_reading()
            return
        transport.pause_reading()
        if self.paused_at is None:
            self._go_on()

    def _go_on(self) -> None:
        if not self._working:
            self._working = True
            self._loop.call_soon(self._work)

    def _account(self) -> None:
        """Half a frame counts for all; where they hold too much together, a large one ends with its connection."""
        incomplete = self._reader.incomplete
        if not incomplete:
            self.begun_at = None
        elif self._frames or self.begun_at is None:
            self.begun_at = self._loop.time()
        self._held.bytes += incomplete - self._incomplete
        self._incomplete = incomplete
        if self._held.bytes > self._held.most_bytes and incomplete > _PATIENT_FRAME:
            log.warning("a connection ends: half frames take too much memory", peer=str(self.peer), bytes=incomplete)
            self.abort()

    # -- writing ----------------------------------------------------------------------------------------------------

    @property
    def overloaded(self) -> bool:
        """Whether the client has asked so much at once that no more is taken."""
        return self.unanswered >= self._held.most_requests

    @property
    def open(self) -> bool:
        """Whether what is sent may still arrive."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, command: Command) -> None:
        """Put a command on its way; nothing where the connection has ended."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            data = encode(command)
        except NotEncodable as error:
            log.failure("an answer cannot be written", error, peer=str(self.peer))
            data = encode(
                Command(ResponseCode.SYSTEM_ERROR, command.opaque, command.flag, remark=f"the answer: {error.message}")
            )
        self.active_at = self._loop.time()
        transport.write(data)

    async def room(self, size: int) -> None:
        """Wait until the client takes its answers. Raises ClientGone."""
        await self._writable.wait()
        if not self.open:
            raise ClientGone("The client has gone before it could be answered.")

    def notify(self, code: int, fields: Mapping[str, str], body: Body = b"") -> bool:
        """Tell the client something that it does not answer; False where it takes nothing now."""
        if not self.open or self.paused_at is not None:
            return False
        self.send(Command(code, self._number(), ONE_WAY, fields, body))
        return True

    async def request(self, code: int, fields: Mapping[str, str] | None, body: Body, seconds: float) -> Command:
        """Ask the client, and wait for its answer. Raises ClientGone, ClientSilent."""
        if not self.open or self.paused_at is not None:
            raise ClientGone("The client takes no requests at present.")
        number = self._number()
        future = self._asked[number] = self._loop.create_future()
        self.send(Command(code, number, 0, fields, body))
        try:
            return await asyncio.wait_for(future, seconds)
        except TimeoutError:
            raise ClientSilent(f"The client has not answered for {seconds:g} s.") from None
        finally:
            del self._asked[number]

    def answered(self, command: Command) -> None:
        """A response has come; one that nobody waits for is dropped."""
        future = self._asked.get(command.opaque)
        if future is not None and not future.done():
            future.set_result(command)

    def _number(self) -> int:
        return (next(self._held.numbers) + (1 << 31)) % (1 << 32) - (1 << 31)

    # -- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End it behind what was sent before."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End it now."""
        if self._transport is not None:
            self._transport.abort()


def _host(name: Any) -> Host:
    """An address as asyncio has it; unix sockets have none."""
    try:
        return Host(name[0].partition("%")[0], name[1])
    except (IllegalHost, TypeError, IndexError, AttributeError):
        return _NOBODY
