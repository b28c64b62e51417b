"""Strings in Huffman code: by a function of hpack that is not public, or, if that has changed, by its Decoder."""

from collections.abc import Callable
from typing import Any

import pytest
from hpack import HPACKError
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2 import huffman
from tests.unit.grpc_transport.wire import string

WRONG = b"\xff\xff\xff\xff"


def coded(text: bytes) -> bytes:
    """The code alone, without its length."""
    whole = string(text, huffman=True)
    start = 1
    if whole[0] == 0xFF:
        while whole[start] & 0x80:
            start += 1
        start += 1
    return whole[start:]


def test_the_quick_way_is_in_use() -> None:
    """With every hpack that we test with."""
    assert huffman.decode_huffman is not huffman.decode_by_block


@given(st.one_of(st.binary(max_size=40), st.binary(min_size=100, max_size=20_000)))
def test_both_ways_decode_the_same(text: bytes) -> None:
    assert bytes(huffman.decode_huffman(coded(text))) == text
    assert huffman.decode_by_block(coded(text)) == text


@pytest.mark.parametrize("decode", [huffman.decode_huffman, huffman.decode_by_block])
def test_both_ways_refuse_what_is_wrong(decode: Callable[[bytes], bytes]) -> None:
    with pytest.raises(HPACKError):
        decode(WRONG)


def _gives_text(raw: bytes) -> str:
    return bytes(huffman.decode_huffman(raw)).decode()


def _takes_everything(raw: bytes) -> bytes:
    return b"" if raw == WRONG else bytes(huffman.decode_huffman(raw))


def _wants_more(raw: bytes, more: bytes) -> bytes:
    return raw + more


def _other_errors(raw: bytes) -> bytes:
    if raw == WRONG:
        raise KeyError(raw)
    return bytes(huffman.decode_huffman(raw))


@pytest.mark.parametrize("changed", [None, _gives_text, _takes_everything, _wants_more, _other_errors])
def test_a_function_that_is_gone_or_has_changed_is_not_used(changed: Any) -> None:
    assert huffman.chosen(changed) is huffman.decode_by_block
