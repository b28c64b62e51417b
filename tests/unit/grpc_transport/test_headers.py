"""Header blocks: the scanner beside the hpack library, what the cache may keep, and limits; RFC 7541."""

import pytest
from hpack import Decoder, Encoder, HPACKError, NeverIndexedHeaderTuple
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.headers import (
    HeadCache,
    HeaderDecoder,
    HeaderListTooLarge,
    literal,
    scan,
    status,
)
from tests.unit.grpc_transport.wire import (
    Fields,
    Indexing,
    Literal,
    indexed,
    literals,
    request_fields,
    string,
    table_size,
)

MORE_THAN_ENOUGH = 1 << 24

texts = st.one_of(st.binary(max_size=20), st.binary(min_size=126, max_size=130), st.binary(min_size=250, max_size=400))
fields = st.lists(st.tuples(texts, texts), max_size=8)
pieces = st.one_of(
    st.integers(1, 61).map(indexed),
    st.builds(
        lambda *values: Literal(*values).encode(),
        texts,
        texts,
        st.sampled_from(Indexing),
        st.booleans(),
        st.booleans(),
        st.integers(0, 61),
    ),
)
blocks = st.builds(
    lambda updates, found: table_size(0) * updates + b"".join(found), st.integers(0, 2), st.lists(pieces, max_size=8)
)


def oracle(block: bytes) -> Fields | None:
    """What the hpack library makes of a block when the dynamic table has no size; None: an error."""
    decoder = Decoder(max_header_list_size=MORE_THAN_ENOUGH)
    decoder.header_table_size = decoder.max_allowed_table_size = 0
    try:
        return [(bytes(name), bytes(value)) for name, value in decoder.decode(block, raw=True)]
    except HPACKError:
        return None


def scanned(block: bytes) -> Fields | None:
    try:
        return scan(block, MORE_THAN_ENOUGH)
    except ConnectionFault as fault:
        return None if fault.code == ErrorCode.COMPRESSION_ERROR else [(b"not a", b"compression error")]


@given(blocks)
def test_legal_blocks_are_read_as_the_library_reads_them(block: bytes) -> None:
    expected = oracle(block)
    assert expected is not None
    assert scanned(block) == expected


@pytest.mark.slow
@given(fields, st.booleans(), st.data())
def test_what_the_library_encodes_without_a_table_is_read_back(
    found: Fields, huffman: bool, data: st.DataObject
) -> None:
    secret = data.draw(st.lists(st.booleans(), min_size=len(found), max_size=len(found)))
    encoder = Encoder()
    encoder.header_table_size = 0
    tuples = [NeverIndexedHeaderTuple(*field) if never else field for field, never in zip(found, secret, strict=True)]
    assert scanned(encoder.encode(tuples, huffman=huffman)) == found


@given(st.binary(max_size=60))
@example(b"\xff\x80\x80\x80\x80\x00")
@example(b"\xff\x80\x80\x80\x80\x80\x00")
@example(b"\x7f\x00\x01x")
@example(b"\x00\x81\xff\x00")
@example(b"\x82\x20")
@example(b"\x3f\x00")
def test_any_bytes_mean_the_same_to_both_or_nothing_to_both(block: bytes) -> None:
    assert scanned(block) == oracle(block)


@given(blocks, st.data())
def test_damaged_blocks_mean_the_same_to_both_or_nothing_to_both(block: bytes, data: st.DataObject) -> None:
    damaged = bytearray(block)
    for _ in range(data.draw(st.integers(1, 3)) if block else 0):
        damaged[data.draw(st.integers(0, len(block) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = bytes(damaged[: data.draw(st.integers(0, len(block)))])
    assert scanned(cut) == oracle(cut)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(indexed(0), id="index 0"),
        pytest.param(indexed(62), id="an entry of the dynamic table"),
        pytest.param(b"\x7e" + string(b"v"), id="a name of the dynamic table"),
        pytest.param(table_size(1), id="a table that has a size"),
        pytest.param(table_size(4096), id="the default table"),
        pytest.param(indexed(2) + table_size(0), id="a size update behind a field"),
        pytest.param(b"\x00", id="a literal without strings"),
        pytest.param(b"\x00\x01", id="a string without bytes"),
        pytest.param(b"\x00\x05name", id="a string too short"),
        pytest.param(b"\x00\x01n\x05v", id="a value too short"),
        pytest.param(b"\xff", id="an integer that goes on"),
        pytest.param(b"\xff" + b"\xff" * 20, id="an integer without end"),
        pytest.param(b"\x00\x01n\x7f\xff\xff\xff\xff\x7f", id="a length beyond all limits"),
        pytest.param(b"\x00\x81\x00" + string(b"v"), id="Huffman: padding of zeros"),
        pytest.param(b"\x00\x81\xff" + string(b"v"), id="Huffman: eight bits of padding"),
        pytest.param(b"\x00\x84\xff\xff\xff\xff" + string(b"v"), id="Huffman: EOS"),
    ],
)
def test_illegal_blocks(block: bytes) -> None:
    assert scanned(block) is None
    assert oracle(block) is None


def test_a_size_update_at_the_beginning_is_allowed_twice() -> None:
    """A client that changed its table twice since the last block says so twice; RFC 7541 section 4.2."""
    assert scanned(table_size(0) * 2 + indexed(2)) == [(b":method", b"GET")]


# ------------------------------------------------------------------------------------------------- one connection


def decoder(limit: int = 16_384, cache: HeadCache | None = None, *, acknowledged: bool = True) -> HeaderDecoder:
    made = HeaderDecoder(cache or HeadCache(), limit)
    if acknowledged:
        made.acknowledged()
    return made


def test_before_the_acknowledgement_the_dynamic_table_counts() -> None:
    encoder, ours = Encoder(), decoder(acknowledged=False)
    for method in ("Echo", "Echo", "Collect", "Echo"):
        head = ours.head(encoder.encode(list(request_fields(method, (b"x-id", b"1")))))
        assert head.path == f"/tandemmq.test.Probe/{method}".encode()
        assert (b"x-id", b"1") in head.fields


def test_behind_the_acknowledgement_the_client_has_let_go_of_its_table() -> None:
    encoder, ours = Encoder(), decoder(acknowledged=False)
    ours.head(encoder.encode(list(request_fields())))
    ours.acknowledged()
    encoder.header_table_size = 0
    for method in ("Echo", "Collect", "Echo"):
        assert ours.head(encoder.encode(list(request_fields(method)))).path.endswith(method.encode())


def test_a_dynamic_entry_behind_the_acknowledgement_is_an_error() -> None:
    encoder, ours = Encoder(), decoder(acknowledged=False)
    ours.head(encoder.encode(list(request_fields())))
    ours.acknowledged()
    with pytest.raises(ConnectionFault) as caught:
        ours.head(encoder.encode(list(request_fields())))
    assert caught.value.code == ErrorCode.COMPRESSION_ERROR


@given(st.binary(max_size=60))
def test_before_the_acknowledgement_any_bytes_end_in_a_head_or_a_fault(block: bytes) -> None:
    code = ErrorCode.NO_ERROR
    try:
        decoder(acknowledged=False).head(block)
    except (ConnectionFault, StreamFault) as fault:
        code = fault.code
    assert code in (ErrorCode.NO_ERROR, ErrorCode.COMPRESSION_ERROR, ErrorCode.PROTOCOL_ERROR)


def test_a_block_that_depends_on_a_table_is_never_cached() -> None:
    """The same bytes mean one thing with one table and another thing with another."""
    cache = HeadCache()
    block = {}
    for who in (b"alice", b"bob"):
        encoder, ours = Encoder(), decoder(cache=cache, acknowledged=False)
        for _ in range(2):
            block[who] = encoder.encode([*request_fields(), (b"x-who", who)])
            assert (b"x-who", who) in ours.head(block[who]).fields
    assert block[b"alice"] == block[b"bob"], "the premise: all fields are indexed by now"
    with pytest.raises(ConnectionFault):
        decoder(cache=cache).head(block[b"alice"])


def test_a_cached_block_gives_the_same_head_to_all_connections() -> None:
    cache = HeadCache()
    block = literals(request_fields())
    first = decoder(cache=cache).head(block)
    assert decoder(cache=cache).head(block) is first
    assert decoder(cache=cache).head(block + literals([(b"x", b"y")])) is not first


def test_malformed_heads_stay_malformed() -> None:
    ours = decoder()
    block = literals([*request_fields(), (b"Connection", b"close")])
    for _ in range(3):
        with pytest.raises(StreamFault):
            ours.head(block)


@pytest.mark.slow
@given(st.lists(blocks, max_size=12))
def test_the_cache_changes_no_answer(found: list[bytes]) -> None:
    prefix = literals(request_fields())
    shared = HeadCache()
    for block in [*found, *found]:
        heads = [decoder(cache=cache).head for cache in (shared, HeadCache())]
        outcomes = []
        for head in heads:
            try:
                made = head(table_size(0) + prefix + block)
                outcomes.append((made.path, made.fields))
            except (ConnectionFault, StreamFault) as fault:
                outcomes.append((bytes(fault.code), []))
        assert outcomes[0] == outcomes[1]


def test_the_cache_is_bounded() -> None:
    cache = HeadCache()
    ours = decoder(cache=cache)
    for number in range(5000):
        ours.head(literals([*request_fields(), (b"x-number", str(number).encode())]))
    assert len(cache._heads) <= 2048
    ours.head(literals([*request_fields(), (b"x-long", b"l" * 10_000)]))
    assert max(map(len, cache._heads)) <= 2048


@pytest.mark.parametrize("acknowledged", [True, False])
def test_the_list_limit_counts_as_the_rfc_does(acknowledged: bool) -> None:
    """Name, value and 32 for each field; RFC 9113 section 6.5.2."""
    found = [*request_fields(), (b"x", b"y" * 10)]
    size = sum(len(name) + len(value) + 32 for name, value in found)
    decoder(size, acknowledged=acknowledged).head(literals(found))
    with pytest.raises(HeaderListTooLarge):
        decoder(size - 1, acknowledged=acknowledged).head(literals(found))


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_huffman_bomb_is_measured_by_what_it_holds(acknowledged: bool) -> None:
    """The shortest codes have five bits: 16 characters of output for 10 bytes of input."""
    block = literals(request_fields()) + Literal(b"x", b"0" * 16_384, huffman_value=True).encode()
    assert len(block) < 11_000
    with pytest.raises(HeaderListTooLarge):
        decoder(acknowledged=acknowledged).head(block)


def test_one_byte_fields_are_not_gathered_far_beyond_the_limit() -> None:
    """A static entry of 63 bytes costs the client one byte: the limit must stop the scan, not only judge it."""
    with pytest.raises((HeaderListTooLarge, ConnectionFault)):
        decoder().head(indexed(16) * 1_000_000)


# ------------------------------------------------------------------------------------------------- what we send


@given(texts, texts)
@example(b"n" * 126, b"v" * 127)
@example(b"n" * 128, b"v" * (127 + 128))
def test_our_literals_are_plain_and_read_back(name: bytes, value: bytes) -> None:
    written = literal(name, value)
    assert written == Literal(name, value).encode()
    assert oracle(written) == [(name, value)]


@pytest.mark.parametrize("code", [200, 204, 206, 304, 400, 404, 405, 415, 431, 500, 503])
def test_status_is_the_first_field(code: int) -> None:
    assert oracle(status(code)) == [(b":status", str(code).encode())]
