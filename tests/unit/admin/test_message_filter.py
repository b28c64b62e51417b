"""Which messages fit a filter, and which filters are understood."""

import json
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.admin.errors import BadAdminRequest
from tandemmq.admin.messages import message_filter
from tandemmq.admin.messages.message_filter import LONGEST, MessageFilter
from tandemmq.store.v1 import message_pb2

ORDER = {
    "id": 17, "customer": {"city": "Basel", "part no": "A 1"}, "items": [{"price": 9.5}, {"price": "12"}],
    "paid": True, "note": None, "zip": "04001",
}  # fmt: skip


def message(body: Any = ORDER, **properties: str) -> message_pb2.StoredMessage:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return message_pb2.StoredMessage(body=data, properties=properties)


@pytest.mark.parametrize(
    "where",
    [
        "body.id = 17",
        "body.id = 17.0",
        "body.id=17 and body.customer.city=Basel",
        'body.customer."part no" = "A 1"',
        "body.items[0].price >= 9.5 AND body.items[1].price > 9",
        "body.paid = true",
        "body.note = null",
        "body.note",
        "body.id != 18",
        "body.customer.city ~ bas",
        "body.customer ~ part",
        "body.zip < 5000",
        "body.customer.city > Aarau",
        "property.REGION = eu-1",
        "property.REGION ~ EU and property.TRIES > 9",
        "property.REGION",
        "body.id > -1e3",
    ],
)
def test_conditions_that_hold(where: str) -> None:
    assert MessageFilter("", where).fits(message(REGION="eu-1", TRIES="10"))


@pytest.mark.parametrize(
    "where",
    [
        "body.id = 18",
        "body.id = 17 and body.id = 18",
        "body.nothing != 1",
        "body.items[2].price",
        "body.items.price",
        "body.customer.city.name",
        "body.paid = 1",
        "body.customer.city = basel",
        "property.REGION != eu-1",
        "property.NOTHING",
    ],
)
def test_conditions_that_do_not_hold(where: str) -> None:
    assert not MessageFilter("", where).fits(message(REGION="eu-1"))


def test_a_body_that_is_no_json_fits_no_condition_on_it() -> None:
    for body in (b"", b"\xff", b"{", b"[" * 100_000):
        assert not MessageFilter("", "body").fits(message(body))
        assert MessageFilter("", "property.a = 1").fits(message(body, a="1"))
    assert MessageFilter("", "body = 5").fits(message(5))
    assert MessageFilter("", "body[1] = 2").fits(message([1, 2]))


def test_a_body_that_is_nearly_too_deep_fails_no_search() -> None:
    """Reading stops at a depth, and writing as text at another one: between them is a body that can only be read."""
    wanted = MessageFilter("", "body.a = 1")
    depths = range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 10)
    assert not [depth for depth in depths if wanted.fits(message(b'{"a":' + b"[" * depth + b"]" * depth + b"}"))]


def test_words_that_look_like_numbers_are_words() -> None:
    assert MessageFilter("", "body = nan").fits(message("nan"))
    assert MessageFilter("", "body.a = infinity").fits(message({"a": "infinity"}))


def test_a_text_is_found_in_body_and_properties_in_any_case() -> None:
    assert MessageFilter("BASEL", "").fits(message())
    assert MessageFilter("grüsse", "").fits(message("GRÜSSE".encode()))
    assert MessageFilter("region", "").fits(message(b"", REGION="eu"))
    assert MessageFilter("eu", "").fits(message(b"\xff", REGION="EU"))
    assert not MessageFilter("us", "").fits(message(b"\xff", REGION="eu"))
    assert not MessageFilter("basel", "body.id = 18").fits(message())
    assert MessageFilter("", "").fits(message(b""))


LARGE = {"lines": [{"id": number, "texts": ["Grüße", []]} for number in range(20_000)], "last": "Zürich"}


@pytest.mark.slow
def test_a_large_body_is_found_by_the_same_conditions() -> None:
    large = message(LARGE)
    assert len(large.body) > 600_000
    for where in ("body.last = Zürich", "body.lines[19999].id = 19999", "body.lines ~ GRÜSSE", 'body ~ "zürich\\"}"'):
        assert MessageFilter("", where).fits(large)
    for where in ("body.last = Basel", "body.lines ~ Zürich", "body.lines[20000]"):
        assert not MessageFilter("", where).fits(large)
    assert not MessageFilter("", "body").fits(message(large.body[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "where", "least"), [("not there", "", 10), ("", "body.last = x", 1_000), ("", "body ~ x-y", 1_000)]
)
def test_a_thread_that_looks_at_a_large_body_lets_others_in(text: str, where: str, least: int) -> None:
    """It does where the interpreter goes on in Python: at each call of a function, say."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    wanted, body = MessageFilter(text, where), message(LARGE)
    sys.setprofile(count)
    try:
        assert not wanted.fits(body)
    finally:
        sys.setprofile(None)
    assert calls > least


@given(
    st.text(alphabet="aßſé€𝄞", max_size=40).map(str.encode) | st.binary(max_size=40),
    st.text(alphabet="aSsé€", max_size=3),
)
def test_a_text_in_pieces_is_the_same_text(body: bytes, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_filter, "_PIECE", 3)
        assert MessageFilter(text, "").fits(message(body)) == (
            text.casefold() in body.decode("utf-8", "replace").casefold()
        )


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("id = 17", "names nothing of a message"),
        ("body.", "names nothing"),
        ("property", "names nothing"),
        ("property.a.b = 1", "names nothing"),
        ("= 1", "names nothing"),
        ("body.a =", "no value"),
        ("body.a = 1 body.b = 2", "not understood at"),
        ("body.a = 1 and", "not understood at"),
        ("body..a", "not understood at"),
        ("[1]", "not understood at"),
        (" and ".join(["body.a"] * 9), "more than 8 conditions"),
        ("body.a = " + "x" * LONGEST, "characters"),
    ],
)
def test_what_is_not_understood_is_said(where: str, words: str) -> None:
    with pytest.raises(BadAdminRequest, match=words):
        MessageFilter("", where)


@given(st.text(max_size=60) | st.text(alphabet='body.property[]0"\\ =!<>~and', max_size=60))
def test_any_text_is_a_filter_or_is_refused(where: str) -> None:
    fits: bool | None = None
    with suppress(BadAdminRequest):
        fits = MessageFilter("", where).fits(message())
    assert fits in (True, False, None)
