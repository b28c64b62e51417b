"""A server that says to a gRPC caller exactly the bytes that a test wants said; no gRPC library would."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from tests.unit.grpc_transport.reading import split
from tests.unit.grpc_transport.wire import ACK, PREFACE, Frame, Type, data, headers, literals, ping, settings

HEAD = literals([(b":status", b"200"), (b"content-type", b"application/grpc")])
OK = literals([(b"grpc-status", b"0")])


class Caller:
    """One connection of a caller: what it sent, and a pen to answer with."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.frames: list[Frame] = []
        """All that came."""
        self.gone = asyncio.Event()
        """Set when the caller has hung up."""
        self._rest = b""
        self._unread: deque[Frame] = deque()

    def say(self, *parts: bytes) -> None:
        """Sends bytes."""
        self._writer.write(b"".join(parts))

    async def say_slowly(self, *parts: bytes) -> None:
        """Sends bytes one by one, each in a packet of its own as far as the kernel allows."""
        for at in range(len(whole := b"".join(parts))):
            self._writer.write(whole[at : at + 1])
            await self._writer.drain()
            await asyncio.sleep(0)

    async def greet(self, *pairs: tuple[int, int]) -> None:
        """Reads the preface, introduces itself."""
        assert await self._reader.readexactly(len(PREFACE)) == PREFACE
        self.say(settings(pairs))

    async def next(self, *kinds: int) -> Frame:
        """The next frame of one of these kinds; acknowledges SETTINGS and PING meanwhile."""
        while True:
            while not self._unread:
                came = await self._reader.read(1 << 16)
                if not came:
                    raise ConnectionError
                found, self._rest = split(self._rest + came)
                self._unread.extend(found)
            frame = self._unread.popleft()
            if frame.type == Type.SETTINGS and not frame.flags & ACK:
                self.say(settings(ack=True))
            elif frame.type == Type.PING and not frame.flags & ACK:
                self.say(ping(frame.payload, ack=True))
            self.frames.append(frame)
            if frame.type in kinds:
                return frame

    async def request(self) -> int:
        """The stream of the next call, when all of its unary request has come."""
        stream = (await self.next(Type.HEADERS)).stream
        while not (frame := await self.next(Type.DATA)).flags & 1:
            pass
        assert frame.stream == stream
        return stream

    def answer(self, stream: int, body: bytes = b"answer", trailers: bytes = OK) -> None:
        """A whole answer of one message."""
        prefixed = b"\0" + len(body).to_bytes(4) + body
        self.say(headers(stream, HEAD), data(stream, prefixed), headers(stream, trailers, end=True))

    def hang_up(self) -> None:
        """Closes the connection when all is written."""
        self._writer.close()

    async def stay(self) -> None:
        """Reads on until the caller hangs up."""
        while True:
            await self.next()


Script = Callable[[Caller], Awaitable[None]]


class Scripted:
    """The server: how often it was called, and on which port."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = list(scripts)
        self.callers: list[Caller] = []
        self.errors: list[BaseException] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Plays the next script; the last one again and again."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        caller = Caller(reader, writer)
        self.callers.append(caller)
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        try:
            await script(caller)
            await caller.stay()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception as error:  # noqa: BLE001 - told at the end
            self.errors.append(error)
        finally:
            caller.gone.set()
            self._tasks.discard(task)
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def stop(self) -> None:
        """Ends all scripts."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))


@asynccontextmanager
async def scripted(*scripts: Script) -> AsyncIterator[Scripted]:
    """A server on a port of its own: the first connection sees the first script, the next ones those after."""
    made = Scripted(*scripts)
    listener = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        listener.close()
        await made.stop()
    assert not made.errors
