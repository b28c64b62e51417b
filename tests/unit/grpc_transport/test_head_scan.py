"""The compiled scan of header blocks against Python's reading of them."""

import random
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, StreamFault
from tandemmq.common.grpc_transport.http2.headers import HeadCache, HeaderDecoder, HeaderListTooLarge
from tandemmq.common.grpc_transport.http2.request import USUAL_HEAD
from tandemmq.common.grpc_transport.rpc.call_head import OK, CallHead
from tandemmq.store.compiled_core import core_problem
from tests.campaigns import examples
from tests.faults.transport_seeds import TOKENS
from tests.unit.grpc_transport.wire import PROBE, Indexing, Literal, indexed, request_fields

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

ECHO = (PROBE + "Echo").encode()
LARGEST = 1000


def scanned(block: bytes) -> bool:
    from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan

    return HeadScan({ECHO: "echo"}, LARGEST).method(block) is not None


def is_plain(block: bytes) -> bool:
    """What Python says."""
    decoder = HeaderDecoder(HeadCache(), LARGEST)
    decoder.acknowledged()
    try:
        head = decoder.head(block)
    except (ConnectionFault, StreamFault, HeaderListTooLarge):
        return False
    view = CallHead(head)
    if view.http_status != OK or view.refusal is not None or head.path != ECHO or head.method != b"POST":
        return False
    kinds = [value for name, value in head.fields if name == b"content-type"]
    return (
        head.content_length < 0
        and head.cost <= USUAL_HEAD
        and all(value[:16] == b"application/grpc" and value[16:17] in (b"", b"+", b";") for value in kinds)
    )


NAMES = st.one_of(
    st.sampled_from(
        [b"te", b"grpc-timeout", b"grpc-encoding", b"content-type", b"x-bin", b"date", b"authorization", b"connection"]
    ),
    st.sampled_from(
        [b":path", b":authority", b":method", b":status", b"content-length", b"upgrade", b"", b"Te", b"a b"]
    ),
    st.text("abcdefghijklmnopqrstuvwxyz-_.0123456789", min_size=1, max_size=9).map(str.encode),
)
VALUES = st.one_of(
    st.sampled_from([b"trailers", b"1S", b"99999999n", b"1", b"identity", b"gzip", b"br", b"application/grpc+proto"]),
    st.sampled_from([b"", b" ", b"\t", b"a\rb", b"application/grpc-web", b"application/grpc;x", b"999999999n", b"12"]),
    st.binary(max_size=40),
    st.text("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-:+/= ", max_size=300).map(str.encode),
)
FIELDS = st.one_of(
    st.builds(Literal, NAMES, VALUES, st.sampled_from(Indexing), st.booleans(), st.booleans()),
    st.builds(
        Literal, st.just(b""), VALUES, st.sampled_from(Indexing), st.just(False), st.booleans(), st.integers(1, 61)
    ),
)


@examples(
    100,
    5000,
    st.lists(FIELDS, max_size=4),
    st.lists(st.tuples(st.integers(0, 20), st.sampled_from([*map(indexed, (2, 3, 4, 6, 7, 8, 15, 61))])), max_size=1),
    st.integers(0, 7),
    st.randoms(use_true_random=False),
)
def test_it_takes_what_python_finds_plain(
    more: list[Literal], inserted: list[tuple[int, bytes]], code: int, chance: random.Random
) -> None:
    fields = [
        Literal(name, value, chance.choice(list(Indexing)), bool(code & 1), bool(code & 2)).encode()
        for name, value in request_fields()
    ]
    fields += [field.encode() for field in more]
    for place, field in inserted:
        fields.insert(place, field)
    if code == 7 and len(fields) > 1:
        del fields[chance.randrange(len(fields))]
    block = b"".join(fields)
    assert scanned(block) == is_plain(block)


@examples(100, 5000, st.lists(FIELDS, max_size=3), st.randoms(use_true_random=False))
def test_damaged_blocks_are_never_taken_for_plain(more: list[Literal], chance: random.Random) -> None:
    block = bytearray(b"".join(Literal(*pair, huffman_value=True).encode() for pair in request_fields()))
    block += b"".join(field.encode() for field in more)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(block))
        if chance.random() < 0.3:
            block[place:place] = chance.choice(TOKENS)
        elif chance.random() < 0.2:
            del block[place : place + chance.randrange(1, 9)]
        else:
            block[place] ^= 1 << chance.randrange(8)
        if not block:
            return
    assert not scanned(bytes(block)) or is_plain(bytes(block))


@pytest.mark.parametrize("huffman", [False, True])
def test_every_character_in_the_code(huffman: bool) -> None:
    for byte in range(256):
        field = Literal(b"x", b"a" + bytes((byte,)) * 3 + b"z", huffman_value=huffman).encode()
        block = b"".join(Literal(*pair).encode() for pair in request_fields()) + field
        assert scanned(block) == is_plain(block)
        assert scanned(block) == (byte not in b"\0\r\n")


def test_padding_of_the_code_is_checked() -> None:
    block = b"".join(Literal(*pair).encode() for pair in request_fields())
    for value in (b"\x83\x1c\x64\xff", b"\x81\xff", b"\x84\xff\xff\xff\xff", b"\x81\x1e", b"\x81\x1f", b"\x82\x1f\xff"):
        tried = block + b"\0\x01x" + value
        assert scanned(tried) == is_plain(tried), value


def table_of_codes(codes: Any, lengths: Any) -> SimpleNamespace:
    return SimpleNamespace(REQUEST_CODES=codes, REQUEST_CODES_LENGTH=lengths)


@pytest.mark.parametrize(
    "changed",
    [
        None,
        SimpleNamespace(),
        table_of_codes(None, None),
        table_of_codes(REQUEST_CODES[:1], REQUEST_CODES_LENGTH),
        table_of_codes([*REQUEST_CODES, *REQUEST_CODES], [*REQUEST_CODES_LENGTH, *REQUEST_CODES_LENGTH]),
        table_of_codes(REQUEST_CODES, [5] * 257),
        table_of_codes(["0"] * 257, REQUEST_CODES_LENGTH),
        table_of_codes([-1] * 257, REQUEST_CODES_LENGTH),
        table_of_codes(REQUEST_CODES[::-1], REQUEST_CODES_LENGTH),
    ],
    ids=["gone", "without it", "no lists", "few", "many", "all of one length", "texts", "negative", "in another order"],
)
def test_a_table_that_is_gone_or_has_changed_is_not_used(changed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no promise of the library. What is in the code is left to Python then, and what is not is taken as ever."""
    block = b"".join(Literal(*pair).encode() for pair in request_fields())
    coded = block + Literal(b"x", b"abc", huffman_value=True).encode()
    assert scanned(coded)
    monkeypatch.setitem(sys.modules, "hpack.huffman_constants", changed)
    assert scanned(block)
    assert not scanned(coded)
