"""Peers that mean no good to a master's HA port. Each attack is a function of an address and a source of chance.

None of them may tell the master that it has what it was not sent: that is all that RocketMQ's protocol believes.
"""

import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

REPORT = struct.Struct(">q")
RESET = struct.pack("ii", 1, 0)
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

Attack = Callable[[str, random.Random], None]


@contextmanager
def dial(address: str, *, reset: bool = False) -> Iterator[socket.socket]:
    """A connection with a time limit on everything; `reset`: it ends with RST."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        yield connection
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def drain(connection: socket.socket, seconds: float) -> int:
    """Reads for so long, or until the master ends it; the bytes that came."""
    total, deadline = 0, time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            data = connection.recv(1 << 16)
        except (TimeoutError, ConnectionError):
            break
        if not data:
            break
        total += len(data)
    return total


def garbage(address: str, chance: random.Random) -> None:
    """Random bytes, of any length."""
    with dial(address) as connection, suppress(OSError):
        connection.sendall(chance.randbytes(chance.choice([1, 7, 8, 9, 100, 100_000])))
        drain(connection, 0.1)


def http(address: str, chance: random.Random) -> None:
    """A browser that has taken the wrong port."""
    with dial(address) as connection, suppress(OSError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * chance.randrange(1, 50))
        drain(connection, 0.1)


def half_report(address: str, chance: random.Random) -> None:
    """A part of the first report, and the end."""
    with dial(address, reset=chance.random() < 0.5) as connection, suppress(OSError):
        connection.sendall(bytes(chance.randrange(1, 8)))
        drain(connection, 0.02)


def impossible_offset(address: str, chance: random.Random) -> None:
    """A first report that nobody can mean."""
    choices = [INT64_MIN, INT64_MIN + 1, -(1 << 32), -2, -1, 1 << 40, 1 << 62, INT64_MAX]
    with dial(address) as connection, suppress(OSError):
        connection.sendall(REPORT.pack(chance.choice(choices)))
        drain(connection, 0.1)


def impossible_ack(address: str, chance: random.Random) -> None:
    """A good first report, and then one far ahead of what was sent, or below 0."""
    with dial(address) as connection, suppress(OSError):
        connection.sendall(REPORT.pack(0))
        drain(connection, 0.02)
        connection.sendall(REPORT.pack(chance.choice([INT64_MIN, -2, -1, 1 << 50, INT64_MAX])))
        drain(connection, 0.1)


def old_offsets(address: str, chance: random.Random) -> None:
    """Acks that go back, again and again."""
    with dial(address) as connection, suppress(OSError):
        connection.sendall(REPORT.pack(0))
        for _ in range(200):
            connection.sendall(REPORT.pack(chance.randrange(2)))
        drain(connection, 0.05)


def ack_flood(address: str, chance: random.Random) -> None:
    """The same ack a million times, as fast as it goes."""
    flood = REPORT.pack(0) * 8_192
    with dial(address) as connection, suppress(OSError):
        connection.setblocking(False)
        sent, deadline = 0, time.monotonic() + 1.0
        while sent < 8_000_000 and time.monotonic() < deadline:
            with suppress(BlockingIOError):
                sent += connection.send(flood[sent % 8 :])
            with suppress(BlockingIOError):
                connection.recv(1 << 16)


def never_reads(address: str, chance: random.Random) -> None:
    """Asks for everything and takes nothing, with the smallest buffer there is."""
    host, _, port = address.rpartition(":")
    with socket.socket() as connection, suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.settimeout(30)
        connection.connect((host, int(port)))
        connection.sendall(REPORT.pack(chance.choice([0, 1])))
        time.sleep(0.3)


def slow_loris(address: str, chance: random.Random) -> None:
    """One byte of a report at a time."""
    with dial(address) as connection, suppress(OSError):
        for byte in REPORT.pack(chance.choice([0, 1, -5])):
            connection.sendall(bytes([byte]))
            time.sleep(0.03)
        drain(connection, 0.05)


def silent(address: str, chance: random.Random) -> None:
    """Says nothing."""
    with dial(address, reset=chance.random() < 0.5) as connection, suppress(OSError):
        assert drain(connection, 0.2) == 0, "a master speaks before it is asked"


def storm(address: str, chance: random.Random) -> None:
    """Connects and is gone, three hundred times."""
    for _ in range(300):
        with suppress(OSError), dial(address, reset=chance.random() < 0.7) as connection:
            if chance.random() < 0.5:
                connection.sendall(REPORT.pack(chance.choice([0, 1, -1])))


def half_close(address: str, chance: random.Random) -> None:
    """Asks, and closes its own side."""
    with dial(address) as connection, suppress(OSError):
        connection.sendall(REPORT.pack(0) if chance.random() < 0.8 else b"")
        connection.shutdown(socket.SHUT_WR)
        drain(connection, 0.1)


def pieces(address: str, chance: random.Random) -> None:
    """Reports of which some are broken off, others come many at a time."""
    stream = REPORT.pack(0) * chance.randrange(1, 40)
    with dial(address) as connection, suppress(OSError):
        while stream:
            size = chance.randrange(1, 40)
            connection.sendall(stream[:size])
            stream = stream[size:]
        drain(connection, 0.02)


ATTACKS: tuple[Attack, ...] = (
    garbage, http, half_report, impossible_offset, impossible_ack, old_offsets, ack_flood, never_reads, slow_loris,
    silent, storm, half_close, pieces,
)  # fmt: skip


@contextmanager
def crowd(address: str, number: int, chance: random.Random) -> Iterator[list[socket.socket]]:
    """So many connections at a time: silent ones, ones that have asked, ones that read nothing."""
    with ExitStack() as open_ones:
        connections = []
        for _ in range(number):
            with suppress(OSError):
                connection = open_ones.enter_context(dial(address))
                connections.append(connection)
                if chance.random() < 0.7:
                    connection.sendall(REPORT.pack(chance.choice([0, 1])))
        yield connections
