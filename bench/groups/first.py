"""The first minutes: what has to be installed, and how long it takes from nothing that runs to the first message.

RocketMQ's quick start is a broker and a name server; here it is the broker alone, which is quicker. Nobody's runtime is
counted as installed: Python's and Java's are beside it.
"""

import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from bench import payloads
from bench.context import Context
from bench.model import Case, Contestant, Sample, Unavailable
from bench.peers.nats import Nats
from bench.peers.rocketmq import VERSION, RocketMQ
from bench.peers.rocketmq_broker import class_path
from bench.whole_node import WholeNode
from tandemmq.client import Producer
from tandemmq.common.wire.remoting.codec import decode
from tandemmq.common.wire.remoting.frames import RemotingFrameReader
from tools.install_pinned import dependencies, names_of

_ROOT = Path(__file__).parents[2]
_SECONDS = 60.0
_PAUSE = 0.01
_MIB = 1 << 20


def first(context: Context) -> None:
    """Beside a NATS server and RocketMQ's broker."""
    contestants = [
        Contestant("tandem up", lambda: _first(WholeNode(context.fresh("first-tandem")), _send_ours, _size_of_ours())),
        Contestant("nats-server", lambda: _first(Nats(context.fresh("first-nats")), _send_nats, _size_of_nats())),
        Contestant(
            f"RocketMQ {VERSION}",
            lambda: _first(
                RocketMQ(context.fresh("first-rocketmq"), "ASYNC_FLUSH", 0), _send_rocketmq, _size_of_rocketmq()
            ),
        ),
    ]
    title = "From nothing that runs to the first message that is acknowledged"
    context.run([Case("first.message", title, "seconds", contestants, rounds=3)])
    installs = [
        Contestant("tandemmq", lambda: _install(context, [])),
        Contestant("tandemmq[server]", lambda: _install(context, ["server"])),
    ]
    title = "What pip brings beside the package itself, into a new environment"
    context.run([Case("first.install", title, "seconds", installs, rounds=1)])


def _first(peer: WholeNode | Nats | RocketMQ, send: Callable[[str], bool], sizes: Sample) -> Sample:
    """`send`: whether the server at an address has acknowledged a message."""
    try:
        begun = time.perf_counter()
        peer.server.start()  # not the peer's own `start`, which warms RocketMQ up
        while not send(peer.server.target):
            if time.perf_counter() - begun > _SECONDS:
                raise Unavailable(f"no message was acknowledged within {_SECONDS:.0f} s")
            time.sleep(_PAUSE)
        return {"seconds": time.perf_counter() - begun, **sizes}
    finally:
        peer.server.discard()


def _send_ours(target: str) -> bool:
    with Producer(target) as producer:  # which tries again until it is stored
        producer.send("first", b"one espresso")
    return True


def _send_nats(target: str) -> bool:
    """Makes the stream too: without one JetStream keeps nothing."""
    make = b'{"name":"FIRST","subjects":["bench.*"],"storage":"file"}'
    with _connected(target) as connection:
        connection.sendall(payloads.nats_preamble())
        connection.sendall(b"PUB $JS.API.STREAM.CREATE.FIRST _INBOX.CCCC.1 %d\r\n%b\r\n" % (len(make), make))
        connection.sendall(payloads.nats_publish())
        told = b""
        while told.count(b'"seq":') < 1:
            if not (more := connection.recv(1 << 16)):
                return False
            told += more
    return True


def _send_rocketmq(target: str) -> bool:
    reader = RemotingFrameReader()
    with _connected(target) as connection:
        connection.sendall(payloads.remoting_frame().replace(b"SSSSSSSS", b"00000000"))
        while data := connection.recv(1 << 16):
            for answer in reader.receive(data):
                return decode(answer).code == 0
    return False


def _connected(target: str) -> socket.socket:
    host, _, port = target.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=_SECONDS)


def _size_of_ours() -> Sample:
    """The package, and what the extra `server` brings."""
    names = names_of(dependencies(_ROOT / "pyproject.toml", ["server"]))
    seen, size = set[str](), _tree(_ROOT / "services") + _tree(_ROOT / "spark")
    while missing := names - seen:
        for name in missing:
            found = importlib.metadata.distribution(name)
            files = [Path(str(file.locate())) for file in found.files or () if file.suffix != ".pyc"]
            size += sum(path.stat().st_size for path in files if path.is_file())
            names |= names_of(found.requires or ())
        seen |= missing
    return {"installed_mb": size / _MIB, "runtime_mb": _tree(Path(sysconfig.get_path("stdlib"))) / _MIB}


def _size_of_nats() -> Sample:
    binary = shutil.which("nats-server")
    return {"installed_mb": Path(binary).stat().st_size / _MIB, "runtime_mb": 0.0} if binary else {}


def _size_of_rocketmq() -> Sample:
    jars = sum(Path(jar).stat().st_size for jar in class_path(VERSION).split(os.pathsep))
    java = Path(shutil.which("java") or "java").resolve().parents[1]
    return {"installed_mb": jars / _MIB, "runtime_mb": _tree(java) / _MIB}


def _tree(directory: Path) -> int:
    """Without what Python compiles, and packages of others in its library."""
    left_out = {"__pycache__", "site-packages", "dist-packages"}
    return sum(
        path.lstat().st_size
        for path in directory.rglob("*")
        if not path.is_dir() and left_out.isdisjoint(path.relative_to(directory).parts)
    )


def _install(context: Context, extras: list[str]) -> Sample:
    """By pip, which may have the packages in its cache."""
    home = context.fresh("first-install") / "venv"
    asked = [word for extra in extras for word in ("--extra", extra)]
    begun = time.perf_counter()
    try:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, capture_output=True)
        command = [sys.executable, "tools/install_pinned.py", str(home), "--from", "pyproject.toml", *asked]
        subprocess.run(command, cwd=_ROOT, check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"pip cannot install: {error.stderr.decode().strip()[-200:]}") from None
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "installed_mb": _tree_of_packages(home) / _MIB}


def _tree_of_packages(home: Path) -> int:
    [packages] = home.glob("lib/python*/site-packages")
    return _tree(packages)
