"""h2spec, the conformance tests of HTTP/2, against our transport: every case passes, or there is a reason here."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hpack import Encoder

from tests.integration.grpc_transport import wire
from tests.integration.grpc_transport.conftest import Certificates
from tests.interop.grpc_clients.programs import command_of
from tests.interop.grpc_clients.serving import probe

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]  # the first test builds it

CONTINUATION = 9

CASES = 146
"""Of h2spec 2.2.1, strict ones included."""

_OLD_TABLE = (
    "h2spec's encoder goes on with a table of 4,096 bytes although it has acknowledged SETTINGS_HEADER_TABLE_SIZE = 0; "
    "that is a decoding error (RFC 7541, sections 4.2 and 6.3). test_header_blocks_before_the_acknowledgement has the "
    "same blocks where they are legal."
)
_FRAME_SIZE = (
    "h2spec sends 17,500 bytes and takes that for too large; we take frames of 1 MiB. "
    "test_headers_larger_than_a_frame has the case with a frame that is too large for us."
)
EXCEPTIONS = {
    ("generic/5", "Sends a dynamic table size update"): _OLD_TABLE,
    ("generic/5", "Sends multiple dynamic table size update"): _OLD_TABLE,
    ("http2/6.10", "Sends multiple CONTINUATION frames preceded by a HEADERS frame"): _OLD_TABLE,
    ("http2/4.2", "Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE"): _FRAME_SIZE,
}
"""Cases that fail, and why we are right."""

Results = dict[tuple[str, str], str]


def h2spec(port: int, report: Path, *options: str) -> Results:
    """What was wrong in each case (by section and title); empty when it passed."""
    # Its two seconds for an answer are little on a machine with much to do. (One case waits for the end of that time.)
    command = [*command_of("h2spec"), "-p", str(port), "-S", "-o", "6", "-j", str(report), *options]
    said = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert report.exists(), said.stdout + said.stderr
    results: Results = {}
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [f"{item.tag}: {item.text}" for item in case if item.tag in ("failure", "error", "skipped")]
        results[case.attrib["package"], case.attrib["classname"]] = "\n".join(wrong)
    return results


def failures(results: Results) -> Results:
    return {case: wrong for case, wrong in results.items() if wrong}


@pytest.fixture(params=["plain", "tls"])
def results(request: pytest.FixtureRequest, tmp_path: Path, certificates: Certificates) -> Iterator[Results]:
    """Of all cases."""
    command_of("h2spec")
    if request.param == "plain":
        with probe("fast", tmp_path) as served:
            yield h2spec(served.port, tmp_path / "report.xml")
    else:
        with probe("fast", tmp_path, tls=certificates) as served:
            yield h2spec(served.port, tmp_path / "report.xml", "-t", "-k")


def test_conformance(results: Results) -> None:
    assert len(results) == CASES
    wrong = failures(results)
    assert {case: text for case, text in wrong.items() if case not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - wrong.keys() == set(), "exceptions that are no longer needed"


def test_headers_larger_than_a_frame(tmp_path: Path) -> None:
    with probe("fast", tmp_path) as served:
        longer = ["--max-header-length", "300000", "http2/4.2"]
        results = h2spec(served.port, tmp_path / "report.xml", *longer)
    assert len(results) == 3
    assert failures(results) == {}


GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "localhost")]


def with_a_size_update() -> list[bytes]:
    encoder = Encoder()
    encoder.header_table_size = 128
    return [encoder.encode(GET)]


def with_two_size_updates() -> list[bytes]:
    return [b"\x3f\x61\x3f\xe1\x1f" + Encoder().encode(GET)]


def continued_and_from_the_table() -> list[bytes]:
    encoder = Encoder()
    long = [("x-dummy0", "x" * 4_000)]
    return [encoder.encode(GET), encoder.encode(long), encoder.encode(long)]


@pytest.mark.parametrize("blocks", [with_a_size_update, with_two_size_updates, continued_and_from_the_table])
def test_header_blocks_before_the_acknowledgement(blocks: Callable[[], list[bytes]], tmp_path: Path) -> None:
    """Until a client has acknowledged our SETTINGS it may use a table of 4,096 bytes (RFC 9113, section 6.5.3)."""
    parts = blocks()
    kinds = [wire.HEADERS] + [CONTINUATION] * (len(parts) - 1)
    frames = [
        wire.frame(kind, wire.END_STREAM * (at == 0) | wire.END_HEADERS * (at == len(parts) - 1), 1, part)
        for at, (kind, part) in enumerate(zip(kinds, parts, strict=True))
    ]
    with probe("fast", tmp_path) as served, socket.create_connection(("127.0.0.1", served.port), 60) as connection:
        connection.sendall(wire.PREFACE + wire.settings() + b"".join(frames))
        answers = connection.makefile("rb")
        kind = wire.SETTINGS
        while kind in (wire.SETTINGS, wire.WINDOW_UPDATE):
            header = answers.read(9)
            assert len(header) == 9, "the server closed the connection"
            kind = header[3]
            answers.read(int.from_bytes(header[:3], "big"))
    assert kind == wire.HEADERS
