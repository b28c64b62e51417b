"""The same with TLS: handshakes that are damaged, broken off or for another protocol leave nothing behind."""

import random
import socket
import ssl
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from tests.faults.harness import SEED
from tests.faults.transport_mutations import Mutator
from tests.faults.transport_probe import PATIENCE, Served, serving
from tests.faults.transport_under_fire import check_complaints
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.reading import Reading, split

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

INPUTS = 300


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    home = tmp_path_factory.mktemp("tls")
    found = home / "certificate.pem", home / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=probe", "-out", str(found[0]), "-keyout", str(found[1])]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command to make a certificate with")
    return found


@pytest.fixture
def complaints() -> Iterator[IO[str]]:
    with tempfile.TemporaryFile("w+") as file:
        yield file


@pytest.fixture
def fast(complaints: IO[str], certificate: tuple[Path, Path]) -> Iterator[Served]:
    with serving("fast", complaints, certificate) as served:
        yield served
    check_complaints(complaints)


def context(*protocols: str) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if protocols:
        made.set_alpn_protocols(list(protocols))
    return made


def client_hello() -> bytes:
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context("h2").wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def call(served: Served) -> None:
    """An honest call."""
    reading, written = Reading(1 << 20), b""
    with context("h2").wrap_socket(served.connect()) as client:
        client.sendall(wire.hello() + wire.settings(ack=True) + wire.call(1, b"hello"))
        while 1 not in reading.answers or not reading.answers[1].ended:
            found, written = split(written + client.recv(1 << 16))
            reading.read(found)
    assert reading.answers[1].messages == [b"hello"]


def until_left(served: Served, files: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while served.open_files > files:
        assert time.monotonic() < deadline, (served.open_files, files)
        time.sleep(0.02)


def test_damaged_handshakes(fast: Served) -> None:
    call(fast)
    files, chance, hello = fast.open_files, random.Random(SEED), client_hello()
    for at in range(INPUTS):
        sent = bytearray(hello)
        for _ in range(chance.randrange(4)):
            sent[chance.randrange(len(sent))] = chance.randrange(256)
        client = fast.connect()
        client.sendall(bytes(sent[: chance.randrange(len(sent) + 1)]) if at % 2 else chance.randbytes(100))
        if at % 3 == 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        if at % 50 == 0:
            call(fast)
    until_left(fast, files)


@pytest.mark.parametrize("protocols", [(), ("http/1.1",), ("h3", "spdy/3")])
def test_another_protocol_is_turned_away(fast: Served, protocols: tuple[str, ...]) -> None:
    """RFC 9113 section 3.2: over TLS, h2 is agreed on with ALPN."""
    call(fast)
    files = fast.open_files
    for _ in range(20):
        with suppress(OSError), context(*protocols).wrap_socket(fast.connect()) as client:
            client.sendall(wire.hello() + wire.call(1, b"hello"))
            while found := client.recv(1 << 16):
                assert b"hello" not in found
    call(fast)
    until_left(fast, files)


def test_damaged_traffic_inside_tls(fast: Served) -> None:
    call(fast)
    files, mutator = fast.open_files, Mutator(SEED)
    for number in range(INPUTS):
        received = b""
        with suppress(OSError), context("h2").wrap_socket(fast.connect()) as client:
            client.settimeout(0.01)
            for part in mutator.make(number):
                client.sendall(part)
            while found := client.recv(1 << 16):
                received += found
        Reading(1 << 24).read(split(received)[0])
    call(fast)
    until_left(fast, files)
