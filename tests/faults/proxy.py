"""A TCP proxy that does to a connection what a bad network does; driven by a test while it runs.

::

    with Proxy(master.ha_address) as proxy:          # slaves dial proxy.address
        proxy.down.delay = 0.05                      # master to slave, seconds
        proxy.up.stalled = True                      # slave to master: nothing arrives any more, nobody is told
        proxy.reset_after(1_000)                     # both ends get a reset after so many bytes more from the master
        proxy.refuse = True                          # new connections are reset

Nothing that was taken is ever dropped, doubled or changed while its connection lives, but by a `change` that a test
gives a way.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: on, and no time: close sends RST."""


@dataclass
class Way:
    """One direction. Changes hold at once, for connections that are there too."""

    delay: float = 0.0
    """Seconds that bytes are held."""
    rate: float = 0.0
    """Bytes per second; 0: no limit."""
    stalled: bool = False
    """Nothing goes this way, until it is False again."""
    most: int = CHUNK
    """Bytes in a piece: a small number cuts frames anywhere."""
    passed: int = 0
    """Bytes so far."""
    change: Callable[[bytes], bytes] | None = None
    """Makes other bytes of each piece: what a broken card or router does whose TCP checksum still fits."""


@dataclass(eq=False)
class _Connection:
    near: socket.socket
    far: socket.socket | None = None
    left: int | None = None
    """Bytes from the server until the reset."""
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)


_ELSEWHERE = "127.0.0.254"


class Proxy:
    """Listens on a free port of the loopback interface; runs in a thread of its own."""

    def __init__(self, target: str, source: str = "") -> None:
        """`source`: the loopback address that the server sees, with the port of the one who dialled.

        Else it sees `_ELSEWHERE` and any port: from 127.0.0.1 that could by chance be the port of the one who dialled,
        whom a master would know by it.
        """
        self._source = source
        self.target = target
        """host:port that new connections are led to; may be changed."""
        self.up = Way()
        """From the one who dialled."""
        self.down = Way()
        """To the one who dialled."""
        self.refuse = False
        self.accepted = 0
        self._connections: set[_Connection] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self._reset_after: int | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def address(self) -> str:
        """host:port to dial."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._listener.close()

    # -- what a test does ---------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Resets every connection that is there, at both ends."""

        def all_of_them() -> None:
            for connection in list(self._connections):
                self._reset(connection)

        self._do(all_of_them)

    def reset_after(self, size: int) -> None:
        """Resets each connection, those to come included, after so many bytes more from the server; once."""

        def arm() -> None:
            self._reset_after = size
            for connection in self._connections:
                connection.left = size

        self._do(arm)

    def stall(self, stalled: bool = True) -> None:
        """Both directions at once: a partition of which nobody is told."""
        self.up.stalled = self.down.stalled = stalled

    def partition(self) -> None:
        """Nothing passes and nobody gets in."""
        self.stall()
        self.refuse = True

    def calm(self) -> None:
        """A good network again."""
        self.refuse = False
        for way in (self.up, self.down):
            way.delay, way.rate, way.stalled, way.most, way.change = 0.0, 0.0, False, CHUNK, None
        self._do(lambda: setattr(self, "_reset_after", None))

    @property
    def connections(self) -> int:
        """Connections that are there."""
        return len(self._connections)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _do(self, what: Callable[[], Any]) -> None:
        done: Future[None] = Future()

        def act() -> None:
            try:
                what()
            finally:
                done.set_result(None)

        self._loop.call_soon_threadsafe(act)
        done.result(60)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        accepting = self._loop.create_task(self._accept())
        try:
            self._loop.run_forever()
        finally:
            accepting.cancel()
            for connection in list(self._connections):
                self._reset(connection)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.close()

    async def _accept(self) -> None:
        while True:
            near, _ = await self._loop.sock_accept(self._listener)
            near.setblocking(False)
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            connection = _Connection(near, left=self._reset_after)
            self._connections.add(connection)
            if self.refuse:
                self._reset(connection)
            else:
                connection.tasks.append(self._loop.create_task(self._serve(connection)))

    async def _serve(self, connection: _Connection) -> None:
        far = socket.socket()
        connection.far = far
        far.setblocking(False)
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, _, port = self.target.rpartition(":")
        try:
            if self._source:
                far.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                far.bind((self._source, connection.near.getpeername()[1]))
            else:
                far.bind((_ELSEWHERE, 0))
            await self._loop.sock_connect(far, (host, int(port)))
            await asyncio.gather(
                *self._ways(connection, connection.near, far, self.up),
                *self._ways(connection, far, connection.near, self.down),
            )
        except OSError:
            pass
        finally:
            self._reset(connection)

    def _ways(
        self, connection: _Connection, source: socket.socket, sink: socket.socket, way: Way
    ) -> "list[asyncio.Task[None]]":
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=64)
        tasks = [
            self._loop.create_task(self._read(queue, source, way)),
            self._loop.create_task(self._write(connection, queue, sink, way)),
        ]
        connection.tasks += tasks
        return tasks

    async def _read(self, queue: asyncio.Queue[tuple[float, bytes]], source: socket.socket, way: Way) -> None:
        data = b"-"
        while data:
            await self._while_stalled(way)
            data = await self._loop.sock_recv(source, way.most)
            if way.change is not None and data:
                data = way.change(data)
            await queue.put((self._loop.time() + way.delay, data))

    async def _write(
        self, connection: _Connection, queue: asyncio.Queue[tuple[float, bytes]], sink: socket.socket, way: Way
    ) -> None:
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(due - self._loop.time(), 0))
            await self._while_stalled(way)
            if way is self.down and connection.left is not None:
                data, connection.left = data[: connection.left], connection.left - len(data)
            if data:
                await self._loop.sock_sendall(sink, data)
                way.passed += len(data)
                if way.rate:
                    await asyncio.sleep(len(data) / way.rate)
            if connection.left is not None and connection.left <= 0:
                self._reset_after = None
                self._loop.call_soon(self._reset, connection)
                return
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return

    async def _while_stalled(self, way: Way) -> None:
        while way.stalled:
            await asyncio.sleep(0.005)

    def _reset(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        for task in connection.tasks:
            task.cancel()
        for end in (connection.near, connection.far):
            if end is not None:
                self._loop.remove_reader(end)
                self._loop.remove_writer(end)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.close()
