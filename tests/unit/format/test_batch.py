"""Batch bodies and both batch writers: vector I, malformed bodies, equality with single records."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format import sysflag
from tandemmq.store.format.batch import (
    BatchWriter,
    ClientMessage,
    MalformedBatch,
    compiled_batch_writer,
    decode_client_batch,
    encode_client_batch,
    python_batch_writer,
)
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import (
    Message,
    PropertiesOverflow,
    TopicTooLong,
    decode_record,
    encode_record,
    verify_crc_property,
)
from tests.unit.format.logs import V4, V6, property_bytes

VECTOR_I = bytes.fromhex(
    "00000025000000000000000000000000000000026230000d554e49515f4b4559"
    "014255300200000025000000000000000000000001000000026231000d554e49"
    "515f4b45590142553102"
)
VECTOR_ITEMS = [ClientMessage(0, b"b0", b"UNIQ_KEY\x01BU0\x02"), ClientMessage(1, b"b1", b"UNIQ_KEY\x01BU1\x02")]

writers = pytest.mark.parametrize("make", [python_batch_writer, compiled_batch_writer])
items = st.lists(st.builds(ClientMessage, st.integers(-9, 9), st.binary(max_size=30), property_bytes), max_size=6)


def write(
    writer: BatchWriter,
    blob: bytes,
    dst: bytearray,
    at: int,
    topic: str = "T",
    hosts: tuple[Host, Host] = (V4, V4),
    crc: bool = False,
) -> list[int]:
    born, store = hosts
    return list(
        writer.write(
            blob,
            dst,
            at,
            topic=topic.encode(),
            queue_id=3,
            queue_offset=70,
            physical_offset=1000,
            sys_flag=sysflag.with_hosts(1, born_v6=born.is_v6, store_v6=store.is_v6),
            born_timestamp=5,
            born_host=born.packed,
            store_timestamp=6,
            store_host=store.packed,
            reconsume_times=2,
            append_crc=crc,
        )
    )


def test_vector_i() -> None:
    assert encode_client_batch(VECTOR_ITEMS) == VECTOR_I
    assert decode_client_batch(VECTOR_I) == VECTOR_ITEMS


@pytest.mark.slow
@given(items)
def test_round_trip(batch: list[ClientMessage]) -> None:
    assert decode_client_batch(encode_client_batch(batch)) == batch


@pytest.mark.slow
@given(
    items,
    st.sampled_from(["T", "订单", "a" * 127, "b" * 128]),
    st.sampled_from([(V4, V4), (V6, V4), (V6, V6)]),
    st.booleans(),
)
def test_both_writers_make_the_records_of_single_sends(
    batch: list[ClientMessage], topic: str, hosts: tuple[Host, Host], crc: bool
) -> None:
    """Also T28: with the record checksum on, each record verifies whatever its properties end in."""
    blob = encode_client_batch(batch)
    flags = sysflag.with_hosts(1, born_v6=hosts[0].is_v6, store_v6=hosts[1].is_v6)
    expected, offsets = b"", []
    for number, item in enumerate(batch):
        offsets.append(1000 + len(expected))
        message = Message(topic, 3, item.body, item.properties, item.flag, 1, 5, *hosts, reconsume_times=2)
        expected += encode_record(message, 70 + number, offsets[-1], 6, crc)
    for writer in (python_batch_writer(), compiled_batch_writer()):
        assert tuple(writer.measure(blob, len(topic.encode()), flags, crc)) == (len(batch), len(expected))
        dst = bytearray(b"\xee" * (len(expected) + 20))
        assert write(writer, blob, dst, 10, topic, hosts, crc) == offsets
        assert dst == b"\xee" * 10 + expected + b"\xee" * 10


@writers
def test_t28_in_a_batch(make: Callable[[], BatchWriter]) -> None:
    dst = bytearray(400)
    write(make(), encode_client_batch([(0, b"x", b"TAGS\x01a")]), dst, 0, crc=True)
    record = decode_record(dst)
    assert record.tags == "a"
    assert verify_crc_property(record.encode()) is True


@given(st.data())
def test_malformed_bodies_are_refused_alike_and_nothing_is_written(data: st.DataObject) -> None:
    blob = bytearray(VECTOR_I)
    for at in data.draw(st.lists(st.integers(0, len(blob) - 1), max_size=2)):
        blob[at] = data.draw(st.sampled_from([0, 1, 0x25, 0x7F, 0x80, 0xFF]))
    body = bytes(blob[: data.draw(st.integers(0, len(blob)))])
    fault = None
    try:
        count = len(decode_client_batch(body))
    except MalformedBatch as error:
        fault, count = (error.reason, error.at), 0
    for writer in (python_batch_writer(), compiled_batch_writer()):
        if fault is None:
            assert writer.measure(body, 1, 0)[0] == count
            continue
        dst = bytearray(300)
        with pytest.raises(MalformedBatch) as caught:
            writer.measure(body, 1, 0)
        assert (caught.value.reason, caught.value.at) == fault
        with pytest.raises(MalformedBatch):
            write(writer, body, dst, 0)
        assert not any(dst)


@writers
def test_what_does_not_fit_is_refused(make: Callable[[], BatchWriter]) -> None:
    writer = make()
    dst = bytearray(300)
    with pytest.raises(ValueError, match="do not fit"):
        write(writer, VECTOR_I, dst, 100)
    with pytest.raises(ValueError, match="SYSFLAG"):
        writer.write(
            VECTOR_I, dst, 0, topic=b"T", queue_id=0, queue_offset=0, physical_offset=0, sys_flag=16, born_timestamp=0,
            born_host=V4.packed, store_timestamp=0, store_host=V4.packed, reconsume_times=0,
        )  # fmt: skip
    assert not any(dst)
    with pytest.raises(TopicTooLong):
        writer.measure(VECTOR_I, 32768, 0)
    with pytest.raises(PropertiesOverflow):
        writer.measure(encode_client_batch([(0, b"", b"\x02" * 32760)]), 1, 0, append_crc=True)
    with pytest.raises(PropertiesOverflow):
        encode_client_batch([(0, b"", bytes(32768))])
    assert tuple(writer.measure(b"", 1, 0)) == (0, 0)
    assert write(writer, b"", dst, 0) == []
