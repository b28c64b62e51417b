"""The probe service as a process for the transport's fault tests, on either transport, and a raw client for it.

    python -m tests.faults.transport_probe fast|grpcio [CERTIFICATE KEY]

grpcio counts PINGs as strikes unless told otherwise; here a client may ping as it likes.
"""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import grpc
import psutil
import uvloop

from tests.grpc_probe import Probe, add_probe, make_server, server_tls
from tests.unit.grpc_transport.reading import Reading, split
from tests.unit.grpc_transport.wire import Frame

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
"""Seconds to wait for an answer that must come."""


async def serve(transport: str, *tls: str) -> None:
    """Until stdin ends; `tls` are a certificate and its key (PEM files)."""
    if transport == "grpcio":
        server = grpc.aio.server(options=[("grpc.http2.max_ping_strikes", 0)])
    else:
        server = make_server("fast")
    add_probe(Probe(), server)
    address = "127.0.0.1:0"
    if tls:
        port = server.add_secure_port(address, server_tls(transport, *map(Path, tls)))
    else:
        port = server.add_insecure_port(address)
    sys.stdout.write(f"{port}\n")
    await server.start()
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


class Served:
    """A probe server that runs."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.port = port
        self._seen = psutil.Process(process.pid)

    @property
    def memory(self) -> int:
        """Bytes that are resident."""
        return int(self._seen.memory_info().rss)

    @property
    def open_files(self) -> int:
        """File descriptors: one for each connection, and a few."""
        return int(self._seen.num_fds())

    def connect(self) -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found


@contextmanager
def serving(transport: str, complaints: IO[str] | None = None, tls: Sequence[Path] = ()) -> Iterator[Served]:
    """A server process, gone afterwards. What it says on stderr goes to ours, or to ``complaints``."""
    command = [sys.executable, "-m", "tests.faults.transport_probe", transport, *map(str, tls)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=complaints, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Served(process, int(process.stdout.readline()))
        finally:
            process.stdin.close()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


class RawClient:
    """A socket to a server, what came back, and Reading's opinion of it."""

    def __init__(self, served: Served) -> None:
        self.socket = served.connect()
        self.reading = Reading(1 << 24)
        self.frames: list[Frame] = []
        self.closed = False
        self._rest = b""

    def send(self, *parts: bytes) -> None:
        self.socket.settimeout(PATIENCE)  # not the time that was left when something was read
        for part in parts:
            self.socket.sendall(part)

    def read_once(self, deadline: float) -> bool:
        """More of what the server says; False when it has ended or nothing came in time."""
        self.socket.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            part = self.socket.recv(1 << 18)
        except TimeoutError:
            return False
        except ConnectionError:
            part = b""
        self.closed = not part
        found, self._rest = split(self._rest + part)
        self.frames += found
        self.reading.read(found)
        return bool(part)

    def close(self) -> None:
        self.socket.close()


if __name__ == "__main__":
    uvloop.run(serve(*sys.argv[1:]))
