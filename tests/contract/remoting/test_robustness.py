"""What clients may do wrong: half frames, no frames, huge ones, slow readers, crowds. The others are served on."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.common.identity.tls import trusting_context
from tandemmq.common.wire.remoting.codec import encode
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tests.certificates import Authority
from tests.contract.remoting.classic_client import SECONDS, ClassicClient, records
from tests.contract.remoting.conftest import Connect, classic, port_of
from tests.contract.remoting.encrypted_socket import EncryptedSocket
from tests.contract.store_process import StoreProcess


def raw(store: StoreProcess) -> socket.socket:
    """A connection without a client."""
    return socket.create_connection(("127.0.0.1", port_of(store)), timeout=SECONDS)


def ended(connection: socket.socket) -> bool:
    """Waits until the store has ended a connection."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        return True
    return True


MOST_READ = 64 << 20


def send_until_stuck(connection: socket.socket, data: bytes) -> int:
    """Sends the same again and again until nobody reads it; gives how many bytes went."""
    sent = 0
    with suppress(TimeoutError):
        while sent < MOST_READ:
            sent += connection.send(data)
    return sent


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        (1 << 25).to_bytes(4, "big") + bytes(4),
        b"\0\0\0\x08" + (9).to_bytes(4, "big") + bytes(4),
        b"\0\0\0\x08\x07\0\0\x04null",
        b"\0\0\0\x08\0\0\0\x04null",
        b"\0\0\0\x06\0\0\0\x02{]",
    ],
    ids=["http", "huge", "header beyond frame", "serialization", "null", "no JSON"],
)
def test_what_is_no_frame_ends_its_connection_only(
    classic_store: StoreProcess, client: ClassicClient, data: bytes
) -> None:
    with raw(classic_store) as connection:
        connection.sendall(data)
        assert ended(connection)
    assert client.send("after-bad-frames").code == 0


def test_frames_in_pieces_and_many_in_one(classic_store: StoreProcess) -> None:
    fields = {"topic": "pieces", "queueId": "0"}
    frames = b"".join(encode(Command(RequestCode.GET_MAX_OFFSET, number, 0, fields)) for number in range(300))
    with raw(classic_store) as connection:
        for at in range(500):
            connection.sendall(frames[at : at + 1])
        connection.sendall(frames[500:])
        found = b""
        while found.count(b'"opaque"') < 300:
            data = connection.recv(1 << 16)
            assert data
            found += data


def test_a_client_that_reads_nothing_is_read_no_more_and_holds_up_nobody(
    classic_store: StoreProcess, client: ClassicClient
) -> None:
    for _ in range(32):
        client.send("unread", bytes(30_000))
    fields = {"consumerGroup": "g", "topic": "unread", "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4}
    fields |= {"commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0, "subscription": "*"}
    texts = {name: str(value) for name, value in fields.items()} | {"maxMsgBytes": str(1 << 20)}
    pull = encode(Command(RequestCode.PULL_MESSAGE, 1, 0, texts))
    with raw(classic_store) as slow:
        slow.settimeout(2.0)
        assert send_until_stuck(slow, pull * 100) < MOST_READ
        assert client.send("while-others-do-not-read").code == 0
        assert len(records(client.pull("g", "unread", 0))) >= 1


@pytest.mark.slow
def test_too_many_connections_are_turned_away_and_silent_ones_end(tmp_path: Path) -> None:
    limits = {"remoting_max_connections": 3, "server_channel_max_idle_time_seconds": 1}
    with classic(tmp_path / "store", **limits) as store:
        clients = [ClassicClient(port_of(store)) for _ in range(3)]
        for one in clients:
            assert one.send("crowd").code == 0
        with raw(store) as turned_away:
            assert ended(turned_away)
        for one in clients:
            one.wait_closed()
        deadline = time.monotonic() + SECONDS
        while True:  # there is room again
            with ClassicClient(port_of(store)) as late:
                try:
                    assert late.send("crowd").code == 0
                    break
                except ConnectionError:
                    assert time.monotonic() < deadline
        for one in clients:
            one.close()


@pytest.mark.slow
def test_a_taken_port(tmp_path: Path) -> None:
    with classic(tmp_path / "first") as first:
        port = port_of(first)
        with StoreProcess(tmp_path / "second", remoting_mode="auto", listen_port=port) as second:
            told = [event for event in second.events() if event["event"] == "classic clients are not served"]
            assert len(told) == 1
            assert str(port) in told[0]["reason"]
        refused = StoreProcess(tmp_path / "third", remoting_mode="on", listen_port=port)
        refused.launch()
        assert refused.wait() != 0
        assert f"cannot serve classic clients on 127.0.0.1:{port}" in refused.log.read_text()


def test_the_second_port_serves_the_same(classic_store: StoreProcess, client: ClassicClient) -> None:
    client.send("vip")
    (event,) = [event for event in classic_store.events() if event["event"] == "listening for classic clients"]
    with ClassicClient(event["vip"]) as vip:
        assert vip.send("vip").fields["queueOffset"] == "1"


@pytest.mark.slow
def test_a_store_that_stops_answers_held_pulls(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store, ClassicClient(port_of(store)) as client:
        client.send("stopping")
        held = client.begin_pull("g", "stopping", 1, suspend=60_000)
        store.wait_polls(1)
        assert store.stop() == 0
        assert held.result(SECONDS).code == ResponseCode.SERVICE_NOT_AVAILABLE


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StoreProcess, Path]]:
    """A store that takes TLS only, and the certificate of who signed its own."""
    directory: Path = tmp_path_factory.mktemp("tls")
    authority = Authority(directory / "ca", "authority")
    server = authority.issue("store")
    settings = {"tls_server_cert_path": server.certificate, "tls_server_key_path": server.key}
    with classic(directory / "store", **settings) as store:
        yield store, authority.certificate


def test_tls_where_it_is_enforced(secured: tuple[StoreProcess, Path]) -> None:
    store, authority = secured
    context = trusting_context(authority)
    context.check_hostname = False
    with ClassicClient(0, connection=EncryptedSocket(raw(store), context)) as client:
        assert client.send("encrypted").code == 0
    with raw(store) as plain:
        plain.sendall(encode(Command(RequestCode.GET_MAX_OFFSET, 1, 0, {"topic": "t", "queueId": "0"})))
        assert ended(plain)


def test_tls_and_plain_text_on_one_port(classic_store: StoreProcess, connect: Connect) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with ClassicClient(0, connection=EncryptedSocket(raw(classic_store), context)) as client:
        assert client.send("both").code == 0
    assert connect().send("both").fields["queueOffset"] == "1"
