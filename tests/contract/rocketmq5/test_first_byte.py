"""Plain text and TLS on one port: the first byte of a connection tells which it is."""

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.certificates import Authority
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import SMALL, StoreProcess


@pytest.fixture(scope="module", params=["fast"], autouse=True)
def transport(request: pytest.FixtureRequest) -> Iterator[str]:
    """Only our own transport takes both."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl command")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SMALL, "grpc_transport", request.param)
        yield request.param


@pytest.fixture(scope="module")
def both(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store without a certificate."""
    with StoreProcess(tmp_path_factory.mktemp(f"both-{transport}") / "store") as store:
        yield store


def secured(address: str, roots: bytes) -> V2Client:
    """A client that speaks TLS, and trusts these."""
    client = V2Client(address)
    client.channel.close()
    options = [("grpc.ssl_target_name_override", "localhost")]
    client.channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options)
    return client


def port_of(store: StoreProcess) -> int:
    return int(store.address.rpartition(":")[2])


def test_both_are_served_at_the_same_time(both: StoreProcess) -> None:
    made = ssl.get_server_certificate(("127.0.0.1", port_of(both)), timeout=30).encode()
    with secured(both.address, made) as inside, V2Client(both.address) as plain:
        for _ in range(3):
            assert inside.send(message("both", b"x" * 20_000)).status.code == pb.OK
            assert plain.send(message("both")).status.code == pb.OK
        stream = inside.stream()
        stream.say(inside.producer("both"))
        assert stream.next("settings").status.code == pb.OK
    again = ssl.get_server_certificate(("127.0.0.1", port_of(both)), timeout=30).encode()
    assert again == made  # made once


@pytest.mark.parametrize(
    "said", [b"\x16", b"\x16\x03\x01\xff\xff" + b"\x00" * 100, b"\x00", b"GET / HTTP/1.1\r\n\r\n", b""]
)
def test_connections_that_say_nonsense_harm_nobody(both: StoreProcess, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(both)), timeout=30) as silent:
        silent.sendall(said)
        with V2Client(both.address) as client:
            assert client.send(message("both")).status.code == pb.OK


def test_a_port_can_be_for_plain_text_only(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store", tls_mode="disabled") as store:
        with pytest.raises(OSError):  # noqa: PT011 - TLS or the connection, as it comes
            ssl.get_server_certificate(("127.0.0.1", port_of(store)), timeout=10)
        with V2Client(store.address) as client:
            assert client.send(message("plain")).status.code == pb.OK


@pytest.mark.slow
def test_a_certificate_of_ones_own_serves_tls_alone_or_beside_plain_text(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "authority")
    own = authority.issue("store")
    paths = {"tls_server_cert_path": own.certificate, "tls_server_key_path": own.key}
    roots = authority.certificate.read_bytes()
    for mode, plain_too in (("auto", False), ("permissive", True)):
        with StoreProcess(tmp_path / mode, tls_mode=mode, **paths) as store:
            with secured(store.address, roots) as client:
                assert client.send(message("inside")).status.code == pb.OK
            with V2Client(store.address) as client:
                if plain_too:
                    assert client.send(message("inside")).status.code == pb.OK
                else:
                    with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
                        client.send(message("inside"))


@pytest.mark.slow
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    store = StoreProcess(tmp_path / "store", tls_mode="enforcing")
    assert store.launch().wait(60) != 0
    assert "tlsMode" in store.log.read_text()
