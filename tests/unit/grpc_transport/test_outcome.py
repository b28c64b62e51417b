"""How an answer's head and end are understood, and how a request begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.aio.dialing import parse
from tandemmq.common.grpc_transport.http2.response import ResponseHead, make_response
from tandemmq.common.grpc_transport.rpc import requests
from tandemmq.common.grpc_transport.rpc.answers import percent_encoded
from tandemmq.common.grpc_transport.rpc.outcome import AnswerHead, CallOutcome, of_reset, percent_decoded
from tandemmq.common.grpc_transport.rpc.status import Status
from tandemmq.common.grpc_transport.rpc.timeout import format_timeout, parse_timeout

GRPC = (b"content-type", b"application/grpc+proto")


def end(*fields: tuple[bytes, bytes]) -> CallOutcome:
    return CallOutcome(ResponseHead(0, fields))


def test_trailers() -> None:
    outcome = end((b"grpc-status", b"5"), (b"grpc-message", b"a%20b"), (b"x-a", b"1"), (b"x-b-bin", b"AAE"))
    assert (outcome.status, outcome.details) == (Status.NOT_FOUND, "a b")
    assert outcome.metadata == (("x-a", "1"), ("x-b-bin", b"\0\1"))


@pytest.mark.parametrize("value", [b"", b"17", b"-1", b"0x1", b"999999999999"])
def test_statuses_that_are_none(value: bytes) -> None:
    assert end((b"grpc-status", value)).status is Status.UNKNOWN


def test_a_head_says_how_messages_are_compressed() -> None:
    head = AnswerHead(make_response([(b":status", b"200"), GRPC, (b"grpc-encoding", b"gzip"), (b"x", b"y")]))
    assert (head.refusal, head.encoding, head.metadata) == (None, b"gzip", (("x", "y"),))
    head = AnswerHead(make_response([(b":status", b"200"), GRPC, (b"grpc-encoding", b"lzma")]))
    assert head.refusal is not None
    assert head.refusal.status is Status.INTERNAL


@pytest.mark.parametrize("kind", [b"text/html", b"application/grpc-web", b"application/json"])
def test_other_content_types_are_no_answer(kind: bytes) -> None:
    head = AnswerHead(make_response([(b":status", b"200"), (b"content-type", kind)]))
    assert head.refusal is not None
    assert head.refusal.status is Status.UNKNOWN


@given(st.text(max_size=200))
def test_details_come_back_as_they_were(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert percent_decoded(percent_encoded(text)) == text


@pytest.mark.parametrize(("raw", "text"), [(b"%", "%"), (b"%4", "%4"), (b"%zz", "%zz"), (b"%ff", "\ufffd")])
def test_details_that_are_not_well_formed_are_shown(raw: bytes, text: str) -> None:
    assert percent_decoded(raw) == text


def test_resets_that_nobody_knows_are_internal() -> None:
    assert of_reset(12345).status is Status.INTERNAL


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5, b"5000000u"),
        (0.001, b"1000u"),
        (1e-9, b"1u"),
        (0, b"1u"),
        (100, b"100000m"),
        (1e6, b"1000000S"),
        (1e12, b"99999999H"),
    ],
)
def test_timeouts(seconds: float, text: bytes) -> None:
    assert format_timeout(seconds) == text


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_timeouts_are_never_shorter_and_hardly_longer(seconds: float) -> None:
    told = parse_timeout(format_timeout(seconds))
    assert told is not None
    assert seconds * (1 - 1e-6) <= told <= seconds * 1.001 + 1e-6


def test_the_head_of_a_request() -> None:
    assert requests.head("/a.B/C", "host:1", secure=False) == (
        b"\x83\x86"
        b"\x00\x05:path\x06/a.B/C"
        b"\x00\x0a:authority\x06host:1"
        b"\x00\x02te\x08trailers"
        b"\x00\x0ccontent-type\x10application/grpc"
        b"\x00\x0auser-agent\x14grpc-python-tandem/1"
        b"\x00\x14grpc-accept-encoding\x08identity"
    )
    assert requests.head("/a.B/C", "host:1", secure=True)[:2] == b"\x83\x87"
    assert requests.extras(None, b"m") == b"m"
    assert requests.extras(1.0, b"m") == b"\x00\x0cgrpc-timeout\x081000000um"


@pytest.mark.parametrize("path", ["", "a.B/C", "/a b", "/a\nb"])
def test_paths_of_no_method(path: str) -> None:
    with pytest.raises(ValueError, match="is no method"):
        requests.head(path, "host", secure=False)


@pytest.mark.parametrize(
    ("address", "path", "host", "port", "authority"),
    [
        ("localhost:80", None, "localhost", 80, "localhost:80"),
        ("dns:///localhost:80", None, "localhost", 80, "localhost:80"),
        ("ipv4:127.0.0.1:80", None, "127.0.0.1", 80, "127.0.0.1:80"),
        ("[::1]:80", None, "::1", 80, "[::1]:80"),
        ("ipv6:%5B::1%5D:80", None, "::1", 80, "[::1]:80"),
        ("unix:/a/b", "/a/b", "", 0, "localhost"),
        ("unix:///a/b", "/a/b", "", 0, "localhost"),
        ("unix-abstract:x", "\0x", "", 0, "localhost"),
    ],
)
def test_addresses(address: str, path: str | None, host: str, port: int, authority: str) -> None:
    target = parse(address)
    assert (target.path, target.host, target.port, target.authority) == (path, host, port, authority)


@pytest.mark.parametrize("address", ["", "localhost", ":80", "localhost:", "localhost:x", "localhost:65536", "é:1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        parse(address)
