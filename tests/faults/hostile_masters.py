"""Masters that mean no good: what a slave meets when its haMasterAddress leads to the wrong place."""

import random
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

HEADER = struct.Struct(">qi")
SECONDS = 1.5
"""How long a connection may be silent once it is treated."""
REPORT_SECONDS = 60.0
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

Conduct = Callable[[socket.socket, int, random.Random], None]
"""What a master does with a connection whose first report it has read."""


class HostileMaster:
    """Listens on a free port of the loopback interface; each connection is treated alike."""

    def __init__(self, conduct: Conduct, seed: int) -> None:
        self.met = threading.Event()
        """A slave has been treated, to the end."""
        self.connections = 0
        self._conduct = conduct
        self._seed = seed
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ending = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(90)

    def _run(self) -> None:
        while not self._ending:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                report = _first_report(connection)
                if report is None:
                    continue
                connection.settimeout(SECONDS)
                chance = random.Random(f"{self._seed} {self.connections}")
                with suppress(OSError):
                    self._conduct(connection, report, chance)
            self.met.set()


def _first_report(connection: socket.socket) -> int | None:
    """Where the slave wants to go on; None if it left without a word."""
    connection.settimeout(REPORT_SECONDS)
    report = b""
    with suppress(OSError):
        while len(report) < 8:
            data = connection.recv(8 - len(report))
            if not data:
                return None
            report += data
    return int.from_bytes(report, "big", signed=True) if len(report) == 8 else None


def _linger(connection: socket.socket) -> None:
    """Reads until the slave goes, or time is up."""
    with suppress(TimeoutError):
        while connection.recv(1 << 16):
            pass


def garbage(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Random bytes."""
    connection.sendall(chance.randbytes(chance.choice([5, 12, 100, 300_000])))
    _linger(connection)


def wrong_offset(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Bytes from another place than was asked for."""
    offset = wanted + chance.choice([-1, 1, 128 * 1024, -128 * 1024, 1 << 40])
    connection.sendall(HEADER.pack(offset, 1_000) + chance.randbytes(1_000))
    _linger(connection)


def impossible_offset(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """An offset that no log has."""
    connection.sendall(HEADER.pack(chance.choice([INT64_MIN, -1, INT64_MAX]), chance.choice([0, 10])) + bytes(10))
    _linger(connection)


def wrong_heartbeat(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Empty frames at other places than the next."""
    connection.sendall(HEADER.pack(wanted + chance.choice([-1, 1, 1 << 40]), 0))
    _linger(connection)


def oversized(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """A frame larger than any may be, and as much of it as the slave takes."""
    size = chance.choice([INT32_MAX, (4 << 20) - 11, 5 << 20])
    connection.sendall(HEADER.pack(wanted, size))
    for _ in range(80):
        connection.sendall(bytes(1 << 16))
    _linger(connection)


def negative_size(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """A frame of less than nothing."""
    connection.sendall(HEADER.pack(wanted, chance.choice([-1, INT32_MIN])) + bytes(100))
    _linger(connection)


def empty_frames(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Heartbeats without end: legal, a RocketMQ 5 whose flow control holds does just that."""
    flood = HEADER.pack(wanted, 0) * 5_000
    for _ in range(100):
        connection.sendall(flood)


def truncated(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """A header, or less, or a part of a body, and the end."""
    connection.sendall((HEADER.pack(wanted, 500) + bytes(499))[: chance.choice([1, 11, 12, 13, 200, 511])])


def other_file_size(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """A frame that crosses the end of one of our files, as one from a log with larger files would."""
    size = 200 * 1024
    connection.sendall(HEADER.pack(wanted, size) + chance.randbytes(size))
    _linger(connection)


def another_log(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """The right offset and other bytes: a fork."""
    offset = wanted
    for _ in range(20):
        size = min(32_768, 128 * 1024 - offset % (128 * 1024))
        connection.sendall(HEADER.pack(offset, size) + chance.randbytes(size))
        offset += size
    _linger(connection)


def mute(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Takes reports and says nothing."""
    _linger(connection)


def gone(connection: socket.socket, wanted: int, chance: random.Random) -> None:
    """Ends the connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


CONDUCTS: tuple[Conduct, ...] = (
    garbage, wrong_offset, impossible_offset, wrong_heartbeat, oversized, negative_size, empty_frames, truncated,
    other_file_size, another_log, mute, gone,
)  # fmt: skip
