"""A real store under siege: callers who do not read, floods and half-done requests, beside a client who behaves.

    python -m tests.faults.siege [--seconds 5] [--only NAME]...      each attack in turn; prints what it cost

For each: how much memory the store gained, how long the good client's calls took meanwhile, how the attackers fared.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tandemmq.store.v1 import message_pb2, store_pb2
from tests.contract.store_process import StoreProcess
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.wire import Code, Setting, Type, literals, request_fields

REPOSITORY = Path(__file__).resolve().parents[2]
MEBIBYTE = 1 << 20
TOPIC = "besieged"
BODY = 256 << 10
MESSAGES = 40
ANSWER = 4 * MEBIBYTE
PATIENCE = 90.0


def store(directory: Path, **settings: object) -> StoreProcess:
    """A store whose answers may be of 4 MiB; start it with `with`, then `fill` it."""
    large: dict[str, object] = {
        "mapped_file_size_commit_log": 64 * MEBIBYTE,
        "max_message_size": ANSWER,
        "max_pull_bytes": ANSWER,
    }
    return StoreProcess(directory, **large | settings)


def fill(besieged: StoreProcess) -> None:
    """Messages to pull: more than an answer holds."""
    with besieged.client() as client:
        for _ in range(MESSAGES):
            client.send(TOPIC, bytes(BODY), queue_id=0)


def request(method: str, *messages: Any, stream: int, end: bool = True) -> bytes:
    """One call of the store as frames."""
    block = literals(request_fields(f"/tandemmq.store.v1.Store/{method}"))
    bodies = b"".join(wire.message(one.SerializeToString()) for one in messages)
    head = wire.headers(stream, block, end=end and not bodies)
    return head + (wire.data(stream, bodies, end=end) if bodies else b"")


def pull(stream: int) -> bytes:
    wanted = store_pb2.PullRequest(topic=TOPIC, queue_id=0, max_messages=MESSAGES, max_bytes=ANSWER)
    return request("Pull", wanted, stream=stream)


def pull_stream(stream: int) -> bytes:
    wanted = store_pb2.PullRequest(topic=TOPIC, queue_id=0, max_messages=MESSAGES, max_bytes=ANSWER)
    return request("PullStream", store_pb2.PullStreamRequest(subscribe=wanted), stream=stream, end=False)


def half_a_send(stream: int) -> bytes:
    """A message of 4 MiB, of which 60 kB come."""
    whole = store_pb2.SendRequest(message=message_pb2.Message(topic=TOPIC, body=bytes(ANSWER))).SerializeToString()
    begun = wire.message(whole)[:60_000]
    parts = [wire.data(stream, begun[at : at + 16_000]) for at in range(0, len(begun), 16_000)]
    return request("Send", stream=stream, end=False) + b"".join(parts)


def bomb(stream: int) -> bytes:
    """A head of nearly 16 KiB as the server counts it, different each time, on a stream that is left open."""
    more = [(b"x-%d-%d" % (stream, at), b"y" * 40) for at in range(150)]
    block = literals([*request_fields("/tandemmq.store.v1.Store/SendStream"), *more])
    return wire.headers(stream, block)


def streams(make: Callable[[int], bytes], count: int, first: int = 1) -> bytes:
    return b"".join(make(stream) for stream in range(first, first + 2 * count, 2))


def shut(sent: bytes) -> bytes:
    """A client that opens no window."""
    return wire.hello([(Setting.INITIAL_WINDOW_SIZE, 0)]) + wire.settings(ack=True) + sent


def wide(sent: bytes) -> bytes:
    """A client that opens all of them."""
    opened = wire.hello([(Setting.INITIAL_WINDOW_SIZE, wire.WINDOW_MAX)]) + wire.settings(ack=True)
    return opened + wire.window_update(0, 1 << 30) + sent


def flood(one: bytes, count: int = 50_000) -> bytes:
    return wide(request("SendStream", stream=1, end=False) + one * count)


class Attack:
    """What every attacker sends on each of its connections, and how many there are at a time."""

    def __init__(self, sent: Callable[[], bytes], connections: int, *, reads: bool = False, again: bool = True) -> None:
        """`reads`: it takes what comes. `again`: whoever is thrown out comes back."""
        self.sent = sent
        self.connections = connections
        self.reads = reads
        self.again = again


def left_open(stream: int) -> bytes:
    return request("SendStream", stream=stream, end=False)


def reset_pull(stream: int) -> bytes:
    return pull(stream) + wire.rst_stream(stream)


def reset_head(stream: int) -> bytes:
    return request("Pull", stream=stream, end=False) + wire.rst_stream(stream)


def endless_head() -> bytes:
    return wide(wire.headers(1, b"\x82", more=True) + wire.continuation(1, b"\x84", more=True) * 50_000)


ATTACKS: dict[str, Attack] = {
    "pulls, windows shut": Attack(lambda: shut(streams(pull, 50)), 20),
    "pulls, sockets not read": Attack(lambda: wide(streams(pull, 50)), 20),
    "pulls from many connections": Attack(lambda: shut(streams(pull, 2)), 400),
    "streams of pulls, windows shut": Attack(lambda: shut(streams(pull_stream, 50)), 20),
    "half of a message": Attack(lambda: shut(streams(half_a_send, 250)), 20),
    "streams left open": Attack(lambda: shut(streams(left_open, 3000)), 10),
    "header bombs": Attack(lambda: shut(streams(bomb, 1000)), 10),
    "connections that say nothing": Attack(lambda: b"", 500),
    "rapid resets": Attack(lambda: wide(streams(reset_pull, 30_000)), 4, reads=True),
    "resets of empty calls": Attack(lambda: wide(streams(reset_head, 50_000)), 4, reads=True),
    "CONTINUATION": Attack(endless_head, 4, reads=True),
    "PING": Attack(lambda: flood(wire.ping()), 4, reads=True),
    "SETTINGS": Attack(lambda: flood(wire.settings([(Setting.INITIAL_WINDOW_SIZE, 1)])), 4, reads=True),
    "PRIORITY": Attack(lambda: flood(wire.priority(1)), 4, reads=True),
    "empty DATA": Attack(lambda: flood(wire.data(1)), 4, reads=True),
    "WINDOW_UPDATE": Attack(lambda: flood(wire.window_update(1, 1)), 4, reads=True),
}
FLOODS = (
    "rapid resets", "resets of empty calls", "CONTINUATION", "PING", "SETTINGS", "PRIORITY", "empty DATA",
    "WINDOW_UPDATE",
)  # fmt: skip
"""Those that break the rules: GOAWAY with ENHANCE_YOUR_CALM, and thrown out."""


class Attacker:
    """One connection after the other."""

    def __init__(self, attack: Attack, address: tuple[str, int], sent: bytes) -> None:
        self.attack = attack
        self.address = address
        self.sent = sent
        self.goaways: list[int] = []
        self.thrown_out = 0
        self._socket: socket.socket | None = None
        self._left = memoryview(b"")
        self._tail = b""

    def step(self) -> None:
        """Send what can be sent, take what comes if that is what it does."""
        try:
            if self._socket is None:
                self._connect()
            assert self._socket is not None
            with suppress(BlockingIOError):
                while self._left:
                    self._left = self._left[self._socket.send(self._left[: 1 << 18]) :]
            if self.attack.reads:
                self._read()
            else:
                with suppress(BlockingIOError):
                    if not self._socket.recv(1, socket.MSG_PEEK):  # never more: it reads nothing
                        raise ConnectionResetError
        except ConnectionError:
            self._gone()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> None:
        self._socket = socket.create_connection(self.address, timeout=PATIENCE)
        self._socket.setblocking(False)
        self._left, self._tail = memoryview(self.sent), b""

    def _read(self) -> None:
        assert self._socket is not None
        with suppress(BlockingIOError):
            while True:
                part = self._socket.recv(1 << 18)
                if not part:
                    raise ConnectionResetError
                self._tail = (self._tail + part)[-400:]

    def _gone(self) -> None:
        self.thrown_out += 1
        mark = bytes((Type.GOAWAY, 0, 0, 0, 0, 0))
        at = self._tail.rfind(mark)
        if at >= 0:
            self.goaways.append(int.from_bytes(self._tail[at + 10 : at + 14]))
        self.close()
        if not self.attack.again:
            self.sent = b""


def attack_for(name: str, besieged: StoreProcess, seconds: float) -> list[Attacker]:
    """All of an attack's connections for so long, and until a flood was ended once; then gone."""
    attack = ATTACKS[name]
    host, _, port = besieged.address.rpartition(":")
    sent = attack.sent()
    attackers = [Attacker(attack, (host, int(port)), sent) for _ in range(attack.connections)]
    deadline = time.monotonic() + seconds
    try:
        while (now := time.monotonic()) < deadline or (
            name in FLOODS and now < deadline + PATIENCE and not any(attacker.goaways for attacker in attackers)
        ):
            for attacker in attackers:
                attacker.step()
            time.sleep(0.01)
    finally:
        for attacker in attackers:
            attacker.close()
    return attackers


class Witness:
    """The good client: a process that sends and pulls all the time; `leave` gives what it saw."""

    def __init__(self, besieged: StoreProcess, calls_a_second: int = 50) -> None:
        command = [sys.executable, "-m", "tests.faults.siege_witness", besieged.address, str(calls_a_second)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def leave(self) -> dict[str, Any]:
        """Calls, failures, and milliseconds: median, 99th percentile, longest."""
        said, _ = self._process.communicate("", timeout=PATIENCE)
        found: dict[str, Any] = json.loads(said)
        return found


@contextmanager
def watched(besieged: StoreProcess) -> Iterator[list[int]]:
    """How many bytes the store has resident, looked at all the time; the first is that of before."""
    assert besieged.process is not None
    seen = psutil.Process(besieged.process.pid)
    sizes, over = [int(seen.memory_info().rss)], threading.Event()

    def look() -> None:
        while not over.wait(0.02):
            sizes.append(int(seen.memory_info().rss))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield sizes
    finally:
        over.set()
        looking.join()


def besiege(besieged: StoreProcess, name: str, seconds: float) -> dict[str, Any]:
    """One attack; what it cost and who noticed."""
    with watched(besieged) as sizes:
        witness = Witness(besieged)
        try:
            attackers = attack_for(name, besieged, seconds)
        finally:
            good = witness.leave()
    return {
        "attack": name,
        "growth_mib": round((max(sizes) - sizes[0]) / MEBIBYTE),
        "good": good,
        "thrown_out": sum(attacker.thrown_out for attacker in attackers),
        "goaways": sorted({Code(code).name for attacker in attackers for code in attacker.goaways}),
    }


def campaign(names: list[str], seconds: float, slowest_ms: float = 0) -> int:
    """Each attack on a store of its own; 0 when every call of the good client was answered.

    `slowest_ms`: and 99 of 100 within so many milliseconds; 0: however long they took. For machines that do no more.
    """
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as directory, store(Path(directory) / "store") as besieged:
            fill(besieged)
            found = besiege(besieged, name, seconds)
        failed += bool(found["good"]["failures"] or 0 < slowest_ms < found["good"]["p99"])
        sys.stdout.write(f"{json.dumps(found)}\n")
        sys.stdout.flush()
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each attack lasts")
    parser.add_argument("--only", action="append", choices=list(ATTACKS), default=[])
    parser.add_argument("--slowest", type=float, default=0, help="milliseconds for 99 of 100 good calls; 0: any")
    options = parser.parse_args()
    return campaign(options.only or list(ATTACKS), options.seconds, options.slowest)


if __name__ == "__main__":
    sys.exit(main())
