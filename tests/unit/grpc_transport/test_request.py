"""A well-formed request, and each way not to be one; RFC 9113 sections 8.1 to 8.3."""

import pytest

from tandemmq.common.grpc_transport.http2.errors import ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.request import check_trailers, make_head
from tests.unit.grpc_transport.wire import Fields, request_fields

METHOD, SCHEME, PATH, AUTHORITY = request_fields()[:4]
REST = list(request_fields()[4:])


def refused(fields: Fields) -> None:
    with pytest.raises(StreamFault) as caught:
        make_head(fields)
    assert caught.value.code == ErrorCode.PROTOCOL_ERROR
    assert caught.value.reason


def with_field(name: bytes, value: bytes = b"v") -> Fields:
    return [*request_fields(), (name, value)]


def test_what_a_head_tells() -> None:
    head = make_head(request_fields("Echo", (b"x-a", b"1"), (b"x-a", b"2")))
    assert (head.method, head.scheme, head.authority) == (b"POST", b"http", b"probe")
    assert head.path == b"/tandemmq.test.Probe/Echo"
    assert head.fields == [*REST, (b"x-a", b"1"), (b"x-a", b"2")]
    assert head.content_length == -1


@pytest.mark.parametrize("missing", [METHOD, SCHEME, PATH])
def test_a_pseudo_header_is_missing(missing: tuple[bytes, bytes]) -> None:
    refused([field for field in request_fields() if field != missing])


@pytest.mark.parametrize("name", [b":method", b":scheme", b":path"])
def test_a_pseudo_header_is_empty(name: bytes) -> None:
    refused([(key, b"" if key == name else value) for key, value in request_fields()])


def test_authority_may_be_missing() -> None:
    """A client may give host instead; section 8.3.1."""
    assert make_head([METHOD, SCHEME, PATH, *REST]).authority == b""


@pytest.mark.parametrize("twice", [METHOD, SCHEME, PATH, AUTHORITY])
def test_a_pseudo_header_comes_twice(twice: tuple[bytes, bytes]) -> None:
    refused([twice, *request_fields()])


@pytest.mark.parametrize("name", [b":status", b":protocol", b":", b":Path", b":x", b"::path"])
def test_a_pseudo_header_that_requests_do_not_have(name: bytes) -> None:
    refused([(name, b"200"), *request_fields()])


@pytest.mark.parametrize("late", [METHOD, SCHEME, PATH, AUTHORITY])
def test_a_pseudo_header_behind_other_fields(late: tuple[bytes, bytes]) -> None:
    refused([*(field for field in request_fields() if field != late), late])


@pytest.mark.parametrize("byte", [b"\0", b"\r", b"\n"])
@pytest.mark.parametrize("name", [b":method", b":path", b":authority"])
def test_a_line_break_or_nul_in_a_pseudo_header(name: bytes, byte: bytes) -> None:
    refused([(key, value + byte + value if key == name else value) for key, value in request_fields()])


@pytest.mark.parametrize("path", [b"tandemmq.test.Probe/Echo", b"*", b"http://probe/x", b" /x"])
def test_a_path_without_a_slash(path: bytes) -> None:
    refused([METHOD, SCHEME, (b":path", path), AUTHORITY, *REST])


def test_the_asterisk_is_for_options() -> None:
    assert make_head([(b":method", b"OPTIONS"), SCHEME, (b":path", b"*"), AUTHORITY]).path == b"*"


def test_connect_has_no_path_and_is_not_for_us() -> None:
    refused([(b":method", b"CONNECT"), AUTHORITY])


@pytest.mark.parametrize("byte", [*range(0x21), *range(0x41, 0x5B), *range(0x7F, 0x100), ord(":")])
def test_bytes_that_no_name_has(byte: int) -> None:
    """Section 8.2.1: controls and space, capitals, everything from 0x7f on, a colon that is not the first."""
    refused(with_field(b"x" + bytes((byte,)) + b"y"))


def test_a_name_is_not_empty() -> None:
    refused(with_field(b""))


@pytest.mark.parametrize("byte", [b"\0", b"\r", b"\n"])
@pytest.mark.parametrize("place", [b"%s", b"a%s", b"%sa", b"a%sa"])
def test_a_line_break_or_nul_in_a_value(byte: bytes, place: bytes) -> None:
    refused(with_field(b"x-value", place.replace(b"%s", byte)))


@pytest.mark.parametrize("value", [b" a", b"a ", b"\ta", b"a\t", b" "])
def test_white_space_around_a_value(value: bytes) -> None:
    refused(with_field(b"x-value", value))


@pytest.mark.parametrize("value", [b"", b"a b", b"a\tb", bytes(range(0x80, 0x100)), b'"quoted, list"', b"\x01\x7f"])
def test_values_that_are_legal(value: bytes) -> None:
    assert (b"x-value", value) in make_head(with_field(b"x-value", value)).fields


@pytest.mark.parametrize("name", [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"])
def test_connection_specific_fields(name: bytes) -> None:
    refused(with_field(name))


@pytest.mark.parametrize("value", [b"", b"gzip", b"trailers, deflate", b"Trailers", b"trailers "])
def test_te_is_trailers_or_nothing(value: bytes) -> None:
    refused([METHOD, SCHEME, PATH, AUTHORITY, (b"te", value)])


def test_names_found_good_are_remembered_and_bad_ones_are_not() -> None:
    for _ in range(3):
        refused(with_field(b"X-Capital"))
        refused(with_field(b"upgrade"))
        make_head(with_field(b"x-capital"))


@pytest.mark.parametrize("value", [b"", b"-1", b"+1", b"1.0", b"0x1", b"1 ", b"1,1", b"a", b"\xb2", b"1" * 40])
def test_content_length_is_a_number(value: bytes) -> None:
    refused(with_field(b"content-length", value))


def test_content_length_may_repeat_itself_but_not_change_its_mind() -> None:
    twice = [*with_field(b"content-length", b"12"), (b"content-length", b"12")]
    assert make_head(twice).content_length == 12
    refused([*with_field(b"content-length", b"12"), (b"content-length", b"13")])


def test_trailers_are_checked_as_fields_are() -> None:
    check_trailers([(b"x-checksum", b"1"), (b"grpc-status", b"0")])
    for name, value in ((b":path", b"/x"), (b"X-A", b"1"), (b"connection", b"close"), (b"x-a", b"a\nb")):
        with pytest.raises(StreamFault):
            check_trailers([(b"x-ok", b"1"), (name, value)])
