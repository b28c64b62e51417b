"""curl, nghttp and h2load: programs that know HTTP/2 and no gRPC, against both servers."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.grpc_transport.conftest import Certificates
from tests.interop.grpc_clients.serving import Served, probe, run

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(400)]

MESSAGE = b"\0\0\0\0\x05hello"
ECHO = "/tandemmq.test.Probe/Echo"
REQUEST = ["-H", "content-type: application/grpc", "-H", "te: trailers"]


def need(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}: apt-get install {package}")


@pytest.fixture
def body(tmp_path: Path) -> Path:
    """A file with one message."""
    path = tmp_path / "request"
    path.write_bytes(MESSAGE)
    return path


@pytest.fixture
def plain(transport: str, tmp_path: Path) -> Iterator[Served]:
    """A server without TLS."""
    with probe(transport, tmp_path) as served:
        yield served


@pytest.fixture
def encrypted(transport: str, tmp_path: Path, certificates: Certificates) -> Iterator[Served]:
    """A server with TLS."""
    with probe(transport, tmp_path, tls=certificates) as served:
        yield served


def curl(url: str, body: Path, *options: str) -> tuple[str, bytes]:
    """Headers with trailers, and the body, of one answer."""
    need("curl", "curl")
    head, answer = body.with_name("head"), body.with_name("answer")
    run(["curl", "-sS", "-D", head, "-o", answer, *options, url])
    return head.read_text().lower(), answer.read_bytes()


def post(body: Path) -> list[str]:
    return [*REQUEST, "--data-binary", f"@{body}"]


def test_curl(plain: Served, body: Path) -> None:
    head, answer = curl(f"http://{plain.target}{ECHO}", body, "--http2-prior-knowledge", *post(body))
    assert head.startswith("http/2 200")
    assert "\ngrpc-status: 0" in head
    assert answer == MESSAGE


def test_curl_over_tls(encrypted: Served, body: Path, certificates: Certificates) -> None:
    trusting = ["--cacert", str(certificates.authority)]
    head, answer = curl(f"https://{encrypted.target}{ECHO}", body, "--http2", *trusting, *post(body))
    assert head.startswith("http/2 200")
    assert answer == MESSAGE


def test_curl_sends_and_gets_seven_megabytes(plain: Served, body: Path) -> None:
    size = 7 << 20
    message = b"\0" + size.to_bytes(4, "big") + bytes(range(256)) * (size >> 8)
    body.write_bytes(message)
    _, answer = curl(f"http://{plain.target}{ECHO}", body, "--http2-prior-knowledge", *post(body))
    assert answer == message


def test_curl_reads_a_stream(plain: Served, body: Path) -> None:
    body.write_bytes(b"\0\0\0\0\x073:10000")
    repeat = f"http://{plain.target}/tandemmq.test.Probe/Repeat"
    head, answer = curl(repeat, body, "--http2-prior-knowledge", *post(body))
    assert "\ngrpc-status: 0" in head
    assert answer == (b"\0" + (10_000).to_bytes(4, "big") + b"r" * 10_000) * 3


def test_curl_makes_many_calls_at_a_time(encrypted: Served, body: Path) -> None:
    """Over TLS, as curl 7.88 cannot use a connection again that it made with prior knowledge."""
    need("curl", "curl")
    url = f"https://{encrypted.target}{ECHO}#[1-500]"
    status = ["-sS", "-k", "-o", "/dev/null", "-w", "%{http_code} %{size_download}\\n"]
    done = run(["curl", "--http2", *status, "--parallel", "--parallel-max", "100", *post(body), url])
    assert done.stdout.split("\n").count(f"200 {len(MESSAGE)}") == 500, done.stdout


@pytest.mark.parametrize("options", [[], ["-X", "POST", "-d", "a=b"], ["-I"]], ids=["GET", "form", "HEAD"])
def test_what_is_not_grpc(transport: str, plain: Served, body: Path, options: list[str]) -> None:
    if transport == "grpcio":
        pytest.skip("grpcio resets such streams, or ends them with a status of gRPC")
    head, answer = curl(f"http://{plain.target}/", body, "--http2-prior-knowledge", *options)
    assert head.startswith("http/2 415")
    assert b"grpc" in answer.lower() or options == ["-I"]
    assert len(answer) < 200


def nghttp(url: str, *options: str) -> str:
    """What nghttp tells of frames, with all answers."""
    need("nghttp", "nghttp2-client")
    told = run(["nghttp", "-v", "--no-verify-peer", *REQUEST, *options, url]).stdout
    assert not re.search(r"(send|recv) (GOAWAY|RST_STREAM).*\n.*error_code=(?!NO_ERROR)", told), told
    return told


UNUSUAL = {
    "plain": [],
    "padding": ["--padding=255"],
    "small_windows": ["--window-bits=1", "--connection-window-bits=1"],
    "no_dependencies": ["--no-dep"],
    "weights": ["--weight=255"],
    "no_table": ["--header-table-size=0", "--encoder-header-table-size=0"],
    "changing_table": ["--header-table-size=100", "--header-table-size=4096"],
    "large_table": ["--header-table-size=65536", "--encoder-header-table-size=65536"],
    "no_content_length": ["--no-content-length"],
    "trailers": ["--trailer", "x-checksum: 1"],
    "many": ["--multiply=50"],
}
GRPCIO_CANNOT = {
    "padding": "takes padding of HEADERS for a part of the header block",
    "changing_table": "does not signal the smaller of two header table sizes",
}


@pytest.mark.parametrize("unusual", UNUSUAL)
def test_nghttp(transport: str, plain: Served, body: Path, unusual: str) -> None:
    if transport == "grpcio" and unusual in GRPCIO_CANNOT:
        pytest.skip(f"grpcio {GRPCIO_CANNOT[unusual]}")
    told = nghttp(f"http://{plain.target}{ECHO}", "--data", str(body), *UNUSUAL[unusual])
    expected = 50 if unusual == "many" else 1
    assert told.count("grpc-status: 0") == expected, told
    if unusual != "small_windows":  # there it comes byte by byte
        assert told.count("hello") == expected


def test_nghttp_sends_too_many_headers(transport: str, plain: Served, body: Path) -> None:
    """24 KiB of headers: too much for us, for grpcio now and then; the connection lives on."""
    told = nghttp(f"http://{plain.target}{ECHO}", "--data", str(body), "--continuation", "--multiply=5")
    assert told.count({"fast": "grpc-status: 8", "grpcio": ":status: 200"}[transport]) == 5, told


def test_nghttp_over_tls(encrypted: Served, body: Path) -> None:
    told = nghttp(f"https://{encrypted.target}{ECHO}", "--data", str(body), "--multiply=50")
    assert "The negotiated protocol: h2" in told
    assert told.count("grpc-status: 0") == 50


@pytest.mark.parametrize("connections", [1, 100])
def test_h2load(plain: Served, body: Path, connections: int) -> None:
    need("h2load", "nghttp2-client")
    load = ["-n", "10000", "-c", str(connections), "-m", "100", "-d", str(body)]
    told = run(["h2load", *load, *REQUEST, f"http://{plain.target}{ECHO}"]).stdout
    assert "10000 total, 10000 started, 10000 done, 10000 succeeded, 0 failed, 0 errored, 0 timeout" in told, told
    assert "status codes: 10000 2xx" in told
