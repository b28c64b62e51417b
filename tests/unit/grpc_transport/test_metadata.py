"""Metadata and the header list of a call: gRPC's PROTOCOL-HTTP2, "Requests" and "Custom-Metadata"."""

import base64
from urllib.parse import unquote_to_bytes

import pytest
from hpack import Decoder
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2.request import make_head
from tandemmq.common.grpc_transport.rpc import answers
from tandemmq.common.grpc_transport.rpc.call_head import CallHead, is_grpc
from tandemmq.common.grpc_transport.rpc.metadata import decode_metadata, encode_metadata
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status
from tandemmq.common.grpc_transport.rpc.timeout import parse_timeout
from tests.unit.grpc_transport.wire import request_fields


def fields(block: bytes) -> list[tuple[bytes, bytes]]:
    return [(bytes(name), bytes(value)) for name, value in Decoder().decode(block, raw=True)]


def test_gRPCs_own_fields_are_not_the_applications() -> None:
    own = request_fields("Echo", (b"grpc-encoding", b"gzip"), (b"user-agent", b"x"), (b"x-a", b"1"), timeout=b"1S")
    assert decode_metadata(make_head(own).fields) == (("user-agent", "x"), ("x-a", "1"))


@pytest.mark.parametrize(
    ("wire", "values"),
    [
        (b"", [b""]),
        (b"QQ==", [b"A"]),
        (b"QQ", [b"A"]),
        (b"QUI=", [b"AB"]),
        (b"QUI", [b"AB"]),
        (b"QUJD", [b"ABC"]),
        (b"QQ==,QUI,QUJD", [b"A", b"AB", b"ABC"]),
        (b"QQ, QUI=", [b"A", b"AB"]),
        (b"QQ,,QQ", [b"A", b"", b"A"]),
        (b"+/+/", [b"\xfb\xff\xbf"]),
    ],
)
def test_binary_values(wire: bytes, values: list[bytes]) -> None:
    assert decode_metadata([(b"x-bin", wire)]) == tuple(("x-bin", value) for value in values)


@pytest.mark.parametrize("wire", [b"Q", b"QQ=Q", b"Q*==", b"====", b"QUJDQ", b"\xff", b"QQ==QQ=="])
def test_what_is_no_base64(wire: bytes) -> None:
    with pytest.raises(CallFailure) as caught:
        decode_metadata([(b"x-bin", wire)])
    assert caught.value.status == Status.INTERNAL


@given(st.binary(max_size=300), st.booleans())
def test_binary_values_come_back(value: bytes, padded: bool) -> None:
    text = base64.b64encode(value)
    assert decode_metadata([(b"k-bin", text if padded else text.rstrip(b"="))]) == (("k-bin", value),)
    ((name, sent),) = fields(encode_metadata([("k-bin", value)]))
    assert (name, sent) == (b"k-bin", text.rstrip(b"="))


@given(st.binary(max_size=60))
def test_any_value_decodes_or_fails_the_call(value: bytes) -> None:
    for name in (b"x", b"x-bin"):
        try:
            decode_metadata([(name, value)])
        except CallFailure:
            assert name == b"x-bin"


def test_text_goes_as_it_is() -> None:
    assert fields(encode_metadata([("x-a", "plain"), ("x-a", b"bytes"), ("x.y_z-1", "")])) == [
        (b"x-a", b"plain"),
        (b"x-a", b"bytes"),
        (b"x.y_z-1", b""),
    ]


@pytest.mark.parametrize(
    "key", ["", "X", "x y", "x:", ":path", "x\n", "é", "grpc-status", "grpc-message", "content-type", "x\0", "x/y"]
)
def test_keys_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        encode_metadata([(key, "v")])


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "\t", "\x7f", b"\x01"])
def test_values_that_cannot_be_sent(value: str | bytes) -> None:
    with pytest.raises(ValueError, match="x-a"):
        encode_metadata([("x-a", value)])


@pytest.mark.parametrize("value", [" a", "a ", " "])
def test_no_value_is_sent_with_white_space_around_it(value: str) -> None:
    """Illegal in RFC 9113 section 8.2.1: stripped or refused, never sent."""
    try:
        ((_name, sent),) = fields(encode_metadata([("x-a", value)]))
    except ValueError:
        return
    assert sent == value.strip().encode()


# ------------------------------------------------------------------------------------------------- deadlines


@pytest.mark.parametrize(
    ("wire", "seconds"),
    [
        (b"1H", 3600),
        (b"2M", 120),
        (b"3S", 3),
        (b"4m", 0.004),
        (b"5u", 0.000_005),
        (b"6n", 0.000_000_006),
        (b"99999999H", 99_999_999 * 3600),
        (b"0S", 0),
        (b"00000001S", 1),
    ],
)
def test_timeouts(wire: bytes, seconds: float) -> None:
    assert parse_timeout(wire) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "wire",
    [b"", b"S", b"1", b"1s", b"1h", b"-1S", b"+1S", b"1.5S", b"123456789S", b"1S ", b" 1S", b"1SS", b"1S\n", b"\xb2S"],
)
def test_timeouts_of_no_form(wire: bytes) -> None:
    assert parse_timeout(wire) is None


def test_a_call_with_a_timeout_of_no_form_fails() -> None:
    failure = CallHead(make_head(request_fields(timeout=b"1s"))).refusal
    assert failure is not None
    assert failure.status == Status.INTERNAL


# ------------------------------------------------------------------------------------------------- the request's head


@pytest.mark.parametrize(
    ("content_type", "ours"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"application/grpc;charset=utf-8", True),
        (b"application/grpc-web", False),
        (b"application/grpcx", False),
        (b"application/json", False),
        (b"text/html", False),
        (b"", False),
    ],
)
def test_content_types(content_type: bytes, ours: bool) -> None:
    assert is_grpc(content_type) == ours
    head = [(name, content_type if name == b"content-type" else value) for name, value in request_fields()]
    assert CallHead(make_head(head)).http_status == (200 if ours else 415)


def test_a_request_that_is_no_call() -> None:
    assert CallHead(make_head(request_fields()[:4])).http_status == 415
    get = [(name, b"GET" if name == b":method" else value) for name, value in request_fields()]
    assert CallHead(make_head(get)).http_status == 405


def test_an_unknown_encoding_is_unimplemented() -> None:
    """PROTOCOL-HTTP2 and compression.md: UNIMPLEMENTED, and what would be known."""
    head = CallHead(make_head(request_fields("Echo", (b"grpc-encoding", b"snappy"))))
    assert head.refusal is not None
    assert head.refusal.status == Status.UNIMPLEMENTED
    assert fields(answers.unsupported_encoding()) == [(b"grpc-accept-encoding", b"identity,deflate,gzip")]


@given(
    st.lists(st.tuples(st.sampled_from([b"grpc-timeout", b"grpc-encoding", b"content-type", b"x-bin"]), st.binary()))
)
def test_any_fields_make_a_head(found: list[tuple[bytes, bytes]]) -> None:
    head = CallHead(make_head([*request_fields()[:4], *[(name, value.hex().encode()) for name, value in found]]))
    assert head.http_status in (200, 405, 415)


# ------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("plain", b"plain"),
        ("100%", b"100%25"),
        ("é", b"%C3%A9"),
        ("a\nb\0", b"a%0Ab%00"),
        ("\x7f~", b"%7F~"),
        ("two words", b"two words"),
        ("\U0001f600", b"%F0%9F%98%80"),
    ],
)
def test_percent_encoding(text: str, wire: bytes) -> None:
    assert answers.percent_encoded(text) == wire


@given(st.text(max_size=200))
@example(" ")
@example(" spaces around ")
def test_percent_encoding_comes_back_and_is_a_legal_value(text: str) -> None:
    wire = answers.percent_encoded(text)
    assert unquote_to_bytes(wire) == text.encode("utf-8", "replace")
    assert wire == wire.strip(), "no field value begins or ends with white space; RFC 9113 section 8.2.1"
    assert all(0x20 <= byte < 0x7F for byte in wire)


def test_a_long_message_is_cut_between_characters() -> None:
    for text in ("x" * 10_000, "é" * 5000, "x" + "é" * 5000, "\U0001f600" * 3000, "x\U0001f600" * 3000):
        wire = answers.percent_encoded(text)
        shown = unquote_to_bytes(wire).decode()
        assert text.startswith(shown)
        assert 4000 <= len(shown.encode()) <= 4096


def test_blocks_of_answers() -> None:
    assert fields(answers.HEAD) == [(b":status", b"200"), (b"content-type", b"application/grpc")]
    assert fields(answers.TRAILERS_OK) == [(b"grpc-status", b"0")]
    assert fields(answers.trailers(5)) == [(b"grpc-status", b"5")]
    assert fields(answers.trailers(13, "é%")) == [(b"grpc-status", b"13"), (b"grpc-message", b"%C3%A9%25")]
    assert fields(answers.trailers_with(0, "", [("x-a", "1")])) == [(b"grpc-status", b"0"), (b"x-a", b"1")]
    assert fields(answers.head(b"gzip", [("x-a", "1")])) == [
        *fields(answers.HEAD),
        (b"grpc-encoding", b"gzip"),
        (b"x-a", b"1"),
    ]
    block, body = answers.plain(415, "no gRPC")
    assert dict(fields(block))[b":status"] == b"415"
    assert dict(fields(block))[b"content-length"] == str(len(body)).encode()
