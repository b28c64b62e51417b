"""The glance at a record is as strict as the decoder, whatever has changed in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format.host import Host
from tandemmq.store.format.intact import flaw_of, split_intact
from tandemmq.store.format.record import CorruptRecord, Message, decode_record, encode_record

HOSTS = [Host("10.0.0.1", 10911), Host("2001:db8::1", 10911)]


def record(body: bytes, properties: bytes = b"KEYS\x01k\x02", born: Host = HOSTS[0], stored: Host = HOSTS[0]) -> bytes:
    message = Message("orders", 3, body, properties, born_host=born, store_host=stored)
    return encode_record(message, queue_offset=7, physical_offset=360, store_timestamp=1_760_000_000_000)


def refused(data: bytes) -> str:
    try:
        decode_record(data)
    except CorruptRecord as error:
        return error.reason
    return ""


@pytest.mark.parametrize("body", [b"", b"x", b"espresso" * 500])
@pytest.mark.parametrize("properties", [b"", b"KEYS\x01k\x02"])
@pytest.mark.parametrize("born", HOSTS)
@pytest.mark.parametrize("stored", HOSTS)
def test_what_was_written_has_no_flaw(body: bytes, properties: bytes, born: Host, stored: Host) -> None:
    assert flaw_of(record(body, properties, born, stored)) == ""


@pytest.mark.parametrize("born", HOSTS)
@pytest.mark.parametrize("stored", HOSTS)
def test_every_byte_of_a_body_counts(born: Host, stored: Host) -> None:
    good = record(b"one espresso", born=born, stored=stored)
    begin = good.index(b"one espresso")
    for at in range(begin, begin + len(b"one espresso")):
        bad = bytearray(good)
        bad[at] ^= 0x10
        assert "checksum" in flaw_of(bytes(bad))


def test_properties_that_end_in_zeros_are_a_flaw() -> None:
    good = record(b"body")
    assert "zero byte" in flaw_of(good[:-1] + b"\0")


@given(
    st.lists(
        st.tuples(st.binary(max_size=40), st.sampled_from([b"", b"KEYS\x01k\x02"]), *[st.sampled_from(HOSTS)] * 2),
        max_size=5,
    ),
    st.data(),
)
def test_records_that_follow_one_another_are_split_where_none_has_a_flaw(
    fields: list[tuple[bytes, bytes, Host, Host]], data: st.DataObject
) -> None:
    """Also where a record ends in a zero: one without properties does."""
    records = [record(*one) for one in fields]
    assert split_intact(b"".join(records)) == [(7, one) for one in records]
    for number, one in enumerate(fields):
        if one[0]:
            at = data.draw(st.integers(0, len(one[0]) - 1)) + records[number].rindex(one[0])
            bad = bytearray(records[number])
            bad[at] ^= 0x10
            others = records[:number], records[number + 1 :]
            found = split_intact(b"".join([*others[0], bytes(bad), *others[1]]))
            assert (found is None) == bool(flaw_of(bytes(bad)))


@given(at=st.integers(min_value=0), bit=st.integers(0, 7), body=st.binary(max_size=40))
def test_it_says_what_the_decoder_says(at: int, bit: int, body: bytes) -> None:
    """But for lengths that have become larger than the record: those are compared with the queue before."""
    bad = bytearray(record(body))
    bad[at % len(bad)] ^= 1 << bit
    said = refused(bytes(bad))
    if not said or "checksum" in said or "zero byte" in said:
        assert flaw_of(bytes(bad)) == said
