"""Receipt handles: there and back, damage, and handles of others."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.receiving.handles import (
    LONGEST_HANDLE,
    ReceiptHandle,
    Shown,
    decode_handle,
    encode_handle,
    own_topic,
    topic_shown,
)

NUMBERS = st.integers(min_value=0, max_value=(1 << 63) - 1)
NAMES = st.text(string.ascii_letters + string.digits + "%_-|", min_size=1, max_size=255)


@given(NAMES, NAMES, st.sampled_from(Shown), st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_a_handle_says_what_was_put_in(group: str, topic: str, shown: Shown, numbers: tuple[int, ...]) -> None:
    queue, offset, number, resets, start = numbers
    handle = ReceiptHandle(Place(group, own_topic(group, topic, shown), queue), offset, number, resets, start)
    text = encode_handle(handle, shown)
    assert len(text) <= LONGEST_HANDLE
    assert set(text) <= set(string.ascii_letters + string.digits + "-_")
    assert decode_handle(text, group, topic) == handle


HANDLE = encode_handle(ReceiptHandle(Place("workers", "orders", 3), 1234, 2, 0, 1_760_000_000_000), Shown.AS_ASKED)


@given(st.data())
def test_a_damaged_handle_is_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(min_value=0, max_value=len(HANDLE) - 1))
    other = data.draw(st.sampled_from(string.ascii_letters + string.digits + "-_=~ é"))
    damaged = HANDLE[:at] + other + HANDLE[at + 1 :]
    if damaged == HANDLE:
        return
    with pytest.raises(BadHandle):
        decode_handle(damaged, "workers", "orders")


@given(st.text(max_size=300))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(BadHandle):
        decode_handle(text, "workers", "orders")


@pytest.mark.parametrize(
    ("group", "topic"), [("others", "orders"), ("workers", "other"), ("worker", "sorders"), ("", ""), ("\ud800", "x")]
)
def test_a_handle_of_another_group_or_topic_is_refused(group: str, topic: str) -> None:
    with pytest.raises(BadHandle, match="not one of group"):
        decode_handle(HANDLE, group, topic)


def test_a_cut_handle_is_refused() -> None:
    for length in range(len(HANDLE)):
        with pytest.raises(BadHandle):
            decode_handle(HANDLE[:length], "workers", "orders")


@pytest.mark.parametrize(
    ("topic", "shown"),
    [
        ("orders", "orders"),
        ("%RETRY%workers", "%RETRY%workers"),
        ("%RETRY%workers_orders", "orders"),
        ("%RETRY%workers+a_b", "a_b"),
        ("%RETRY%other", "%RETRY%other"),
    ],
)
def test_the_topic_as_which_a_retry_is_shown(topic: str, shown: str) -> None:
    assert topic_shown(Place("workers", topic, 0)) == shown
