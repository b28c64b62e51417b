"""The client's module for raw records and batches."""

import pytest

from tandemmq.client import CorruptRecord, Outgoing, decode_records, encode_batch
from tandemmq.store.format.batch import decode_client_batch
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import decode
from tandemmq.store.format.record_encoder import encode_record


def raw(count: int) -> list[bytes]:
    return [encode_record(Message("t", 0, b"body %d" % n), n, n * 1000, 5) for n in range(count)]


def test_a_text_is_one_key_and_not_its_letters() -> None:
    assert Outgoing("t", b"", keys="order-17").to_proto().keys == ["order-17"]
    assert Outgoing("t", b"", keys="order-17").all_properties(0)["KEYS"] == "order-17"
    assert list(Outgoing("t", b"", keys="").to_proto().keys) == []


def test_records_behind_each_other() -> None:
    whole = raw(3)
    found = decode_records(b"".join(whole))
    assert [record.encode() for record in found] == whole
    assert decode_records(memoryview(b"".join(whole))) == found
    assert decode_records(b"") == []


def test_a_flipped_bit_is_noticed_unless_nobody_wants_to_know() -> None:
    first, second = raw(2)
    at = second.index(b"body")
    bad = first + second[:at] + b"B" + second[at + 1 :]
    with pytest.raises(CorruptRecord) as raised:
        decode_records(bad)
    assert raised.value.at == len(first)
    assert len(decode_records(bad, verify=False)) == 2


def test_records_that_are_cut() -> None:
    [record] = raw(1)
    for size in (1, 8, 50, len(record) - 1):
        with pytest.raises(CorruptRecord):
            decode_records(record[:size])


def test_a_batch_has_all_that_its_messages_have() -> None:
    batch = encode_batch(
        [Outgoing("t", b"a", tag="x", keys=["1", "2"], flag=3), Outgoing("t", b"b", properties={"UNIQ_KEY": "mine"})],
        queue_id=2,
    )
    first, second = decode_client_batch(batch.messages)
    assert (batch.topic, batch.queue_id, batch.count) == ("t", 2, 2)
    assert (first.flag, first.body) == (3, b"a")
    given = decode(first.properties)
    assert (given["TAGS"], given["KEYS"], len(given["UNIQ_KEY"])) == ("x", "1 2", 32)
    assert decode(second.properties) == {"UNIQ_KEY": "mine"}


def test_a_batch_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        encode_batch([])
