"""Journal records: what was encoded is decoded, and bytes that are none are refused with a typed error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.delivery.errors import UnreadableJournal
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, HeldBy, HeldRun, Moved, Place, Snapshot
from tandemmq.store.delivery.journal.journal_format import (
    MOST_BYTES,
    MOST_ENTRIES,
    Position,
    encode_records,
)
from tests.journal_record import decode_record_body
from tests.unit.delivery.fact_strategies import FACTS, NUMBERS

PLACE = Place("workers", "orders", 3)


@pytest.mark.slow
@given(st.lists(FACTS, min_size=1, max_size=30), NUMBERS, NUMBERS, NUMBERS, st.sampled_from((200, 2_000, MOST_BYTES)))
def test_what_was_encoded_is_decoded(facts: list[Fact], queue: int, log: int, start: int, most: int) -> None:
    base = Position(queue, log)
    found: list[Fact] = []
    for body, written in encode_records(base, start, facts, most):
        record = decode_record_body(body)
        assert (record.base, record.start) == (base, start)
        assert list(record.facts) == list(written)
        assert len(body) <= most + 64 or len(written) == 1
        found += record.facts
    assert found == facts


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    with contextlib.suppress(UnreadableJournal):
        assert decode_record_body(b"\x01" + data).start >= 0


@given(st.lists(FACTS, min_size=1, max_size=5), st.data())
def test_a_changed_record_is_a_record_or_refused(facts: list[Fact], data: st.DataObject) -> None:
    body = bytearray(encode_records(Position(1, 2), 3, facts)[0][0])
    at = data.draw(st.integers(0, len(body) - 1))
    body[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(UnreadableJournal):
        decode_record_body(bytes(body))
    with pytest.raises(UnreadableJournal):
        decode_record_body(bytes(body[:at]))


def test_the_bytes_of_a_record() -> None:
    facts: list[Fact] = [Moved(PLACE, 7, 0), Given(PLACE, 7, 2, 300), Dealt(PLACE, 8)]
    [(body, _)] = encode_records(Position(5, 300), 9, facts)
    names = b"\x02\x07workers\x06orders"
    assert body == (
        b"\x01\x05\xac\x02\x09" + names + b"\x01\x00\x01\x03" + b"\x03"
        b"\x04\x00\x07\x00" + b"\x01\x00\x07\x02\xac\x02" + b"\x03\x00\x08\x01\x00"
    )  # fmt: skip


HEAD = b"\x01\x05\xac\x02\x09"


def test_the_bytes_of_what_is_held_with_renewal() -> None:
    """The client's name is there once, however many facts name it."""
    facts: list[Fact] = [
        Given(PLACE, 7, 2, 300),
        HeldBy(PLACE, 7, 2, 300, "me", 240),
        HeldBy(PLACE, 5, 1, 310, "me", 250),
    ]
    [(body, _)] = encode_records(Position(5, 300), 9, facts)
    names = b"\x03\x07workers\x06orders\x02me"
    assert body == (
        HEAD + names + b"\x01\x00\x01\x03" + b"\x03"
        b"\x01\x00\x07\x02\xac\x02" + b"\x09\x00\x07\x02\xac\x02\x02\xf0\x01" + b"\x09\x00\x05\x01\xb6\x02\x02\xfa\x01"
    )  # fmt: skip


PLAIN = Snapshot(PLACE, 5, 9, 1, ((5, 1, 300, 0), (6, 2, 299, 0), (8, 1, 300, 0)))
PLAIN_BYTES = b"\x00\x05\x09\x01\x00\x03" + b"\x05\x01\xd8\x04" + b"\x01\x02\x01" + b"\x02\x01\x02"


def test_the_bytes_of_a_snapshot_are_as_they_were_before_renewal_and_starts_were_in_it() -> None:
    [(body, _)] = encode_records(Position(5, 300), 9, [PLAIN])
    assert body == HEAD + b"\x02\x07workers\x06orders" + b"\x01\x00\x01\x03" + b"\x01\x08" + PLAIN_BYTES
    assert decode_record_body(body).facts == (PLAIN,)


def test_the_bytes_of_a_snapshot_with_renewal() -> None:
    held = (HeldRun(5, 2, "me", 240), HeldRun(8, 1, "you", 250))
    [(body, _)] = encode_records(Position(5, 300), 9, [PLAIN._replace(held=held)])
    assert body == (
        HEAD + b"\x04\x07workers\x06orders\x02me\x03you" + b"\x01\x00\x01\x03" + b"\x01\x0a" + PLAIN_BYTES
        + b"\x02" + b"\x05\x02\x02\xf0\x01" + b"\x03\x01\x03\xfa\x01"
    )  # fmt: skip


def test_the_bytes_of_a_snapshot_with_starts() -> None:
    """In runs: those of a start's entries mostly follow one another."""
    entries = tuple((*entry[:3], start) for entry, start in zip(PLAIN.entries, (7, 7, 300), strict=True))
    [(body, _)] = encode_records(Position(5, 300), 9, [PLAIN._replace(entries=entries)])
    assert body == (
        HEAD + b"\x02\x07workers\x06orders" + b"\x01\x00\x01\x03" + b"\x01\x0b" + PLAIN_BYTES
        + b"\x00" + b"\x02\x02\x07\x01\xac\x02"
    )  # fmt: skip
    assert decode_record_body(body).facts == (PLAIN._replace(entries=entries),)
    for damaged in (body[:-3] + b"\x02\xac\x02", body[:-3] + b"\x00\xac\x02"):
        with pytest.raises(UnreadableJournal, match="more or fewer than 3 entries"):
            decode_record_body(damaged)


def test_an_unknown_version_is_refused_with_its_number() -> None:
    with pytest.raises(UnreadableJournal, match="version 2"):
        decode_record_body(b"\x02\x00")


def test_the_largest_piece_of_a_snapshot_has_room() -> None:
    entries = tuple((at << 30, 65_535, at % 2 << 43, 1 << 41 | at // 1_000) for at in range(MOST_ENTRIES))
    held = tuple(HeldRun(number << 30, 1, f"client-{number % 500}", 1 << 41) for number in range(MOST_ENTRIES))
    [(body, _)] = encode_records(Position(0, 0), 1, [Snapshot(PLACE, 0, 1 << 62, 1, entries, held=held)])
    assert len(body) <= MOST_BYTES
