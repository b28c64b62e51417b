"""The texts of receipt handles: the compiled core against its Python twin."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.delivery.receiving.answer import Share
from tandemmq.store.delivery.receiving.handles import (
    Handles,
    ReceiptHandle,
    Shown,
    decode_handle,
    encode_handle,
    own_topic,
)

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

NUMBERS = st.integers(min_value=0, max_value=(1 << 63) - 1)
NAMES = st.text(string.ascii_letters + string.digits + "%_-|", min_size=1, max_size=255)


@pytest.fixture(scope="module")
def handles() -> Handles:
    from tandemmq.store.delivery.compiled import handle_codec

    made = Handles()
    made.core = handle_codec
    return made


@given(NAMES, NAMES, st.sampled_from(Shown), st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS))
@example("g", "t", Shown.AS_ASKED, (0, 0, 0, 0, 0))
@example("g", "t", Shown.RETRY, ((1 << 63) - 1,) * 5)
def test_both_write_and_read_the_same(
    handles: Handles, group: str, topic: str, shown: Shown, numbers: tuple[int, ...]
) -> None:
    queue, offset, number, resets, start = numbers
    handle = ReceiptHandle(Place(group, own_topic(group, topic, shown), queue), offset, number, resets, start)
    text = encode_handle(handle, shown)
    assert handles.encode(handle, shown) == text
    assert handles.decode(text, group, topic) == handle


@given(st.lists(NUMBERS, max_size=20), NUMBERS)
def test_a_run_is_as_its_handles_one_by_one(handles: Handles, offsets: list[int], number: int) -> None:
    first = ReceiptHandle(Place("workers", "orders", 3), 0, number, 2, 1_760_000_000_000)
    expected = [encode_handle(first._replace(offset=offset), Shown.AS_ASKED) for offset in offsets]
    assert handles.encode_run(first, offsets) == expected
    assert Handles().encode_run(first, offsets) == expected


@given(st.lists(st.tuples(NUMBERS, st.binary(max_size=50)), max_size=20), NUMBERS)
def test_messages_of_a_run_are_as_python_gives_them_out(
    handles: Handles, records: list[tuple[int, bytes]], resets: int
) -> None:
    place, start = Place("workers", "orders", 3), 1_760_000_000_000
    first = ReceiptHandle(place, 0, 1, resets, start)
    texts = Handles().encode_run(first, [offset for offset, _ in records])
    messages, shares = [GivenMessage("before", b"", 1, "", 0)], [Share(place, 7, 1, 0)]
    assert handles.core is not None
    kinds = GivenMessage, Share
    said = handles.prefix(place.group, place.topic)
    size = handles.core.give_run(*said, place, (resets, start), records, ("orders", 30), messages, shares, kinds)
    assert size == sum(len(record) for _, record in records)
    assert messages[1:] == [
        GivenMessage("orders", record, 1, text, 30) for (_, record), text in zip(records, texts, strict=True)
    ]
    assert shares[1:] == [Share(place, offset, 1, resets) for offset, _ in records]
    assert {type(one) for one in messages} == {GivenMessage}
    assert {type(one) for one in shares} == {Share}


HANDLE = encode_handle(ReceiptHandle(Place("workers", "orders", 3), 1234, 2, 0, 1_760_000_000_000), Shown.AS_ASKED)


def said(read: "object", text: str) -> object:
    """What comes of a text: a handle, or the words of the refusal."""
    try:
        return read(text, "workers", "orders")  # type: ignore[operator]
    except BadHandle as error:
        return error.message


@given(st.data())
def test_both_refuse_the_same_damage(handles: Handles, data: st.DataObject) -> None:
    text = list(HANDLE)
    for _ in range(data.draw(st.integers(min_value=1, max_value=3))):
        at = data.draw(st.integers(min_value=0, max_value=len(text) - 1))
        text[at : at + data.draw(st.integers(min_value=0, max_value=2))] = data.draw(
            st.text(string.ascii_letters + string.digits + "-_=~ é\0", max_size=2)
        )
    damaged = "".join(text)
    assert said(handles.decode, damaged) == said(decode_handle, damaged)


@given(st.integers(min_value=0, max_value=3), st.binary(max_size=60))
def test_both_read_any_bytes_with_a_right_checksum_alike(handles: Handles, kind: int, rest: bytes) -> None:
    """Numbers that are too long, too many, or break off."""
    from zlib import crc32

    from tandemmq.store.delivery.receiving import handles as layout

    whole = bytes((1,)) + layout._name_hash("workers", "orders") + bytes((kind,)) + rest
    text = layout._text(whole + crc32(whole).to_bytes(4, "big"))
    assert said(handles.decode, text) == said(decode_handle, text)


@pytest.mark.parametrize(("group", "topic"), [("others", "orders"), ("workers", "other"), ("", ""), ("\ud800", "x")])
def test_a_handle_of_another_group_or_topic_is_refused(handles: Handles, group: str, topic: str) -> None:
    with pytest.raises(BadHandle, match="not one of group"):
        handles.decode(HANDLE, group, topic)
