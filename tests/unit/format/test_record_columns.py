"""The compiled columns against the readable twins: decode_record, properties.decode, Host, encode_offset_id."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.store.format import properties as props
from tandemmq.store.format.compiled.record_columns import Longs, RecordColumns, Spans, renumbered
from tandemmq.store.format.compiled.walker import CompiledWalker
from tandemmq.store.format.host import Host
from tandemmq.store.format.java import decode_utf8
from tandemmq.store.format.message import Message
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record, encode_record
from tests.campaigns import examples
from tests.unit.format.logs import V4, V6, logs

WALKER = CompiledWalker()

hosts = st.one_of(
    st.builds(Host, st.ip_addresses(), st.integers(-0x80000000, 0x7FFFFFFF)),
    st.builds(
        # Zeros in every place and number, which is what the short form of IPv6 is about.
        lambda parts, port: Host(b"".join(part.to_bytes(2, "big") for part in parts), port),
        st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF, 0x20, 0xABC]), min_size=8, max_size=8),
        st.integers(0, 65535),
    ),
)
segments = st.one_of(
    st.tuples(st.sampled_from(["a", "b", "ab", "ba", "名", "KEYS", "x" * 70]), st.text(max_size=4)).map(
        lambda pair: f"{pair[0]}\x01{pair[1]}".encode("utf-8", "replace")
    ),
    st.binary(max_size=6),
)
property_strings = st.lists(segments, max_size=40).map(b"\x02".join).filter(lambda data: not data.endswith(b"\0"))


def columns_of(log: bytes, base: int = 0) -> tuple[RecordColumns, list[Record]]:
    """The columns of a log, and its records by the readable decoder."""
    walk = WALKER.walk(log, 0, len(log), base, check_crc=True)
    records, at = [], 0
    for _ in range(walk.count):
        records.append(decode_record(log, at))
        at += records[-1].size
    return RecordColumns(walk), records


def log_with(**fields: object) -> bytes:
    message = Message(**({"topic": "T", "queue_id": 0, "body": b"b", "born_host": V4, "store_host": V4} | fields))  # type: ignore[arg-type]
    return encode_record(message, 7, 0, 1_700_000_000_000)


def texts(columns: RecordColumns, spans: Spans) -> list[bytes | None]:
    pieces = columns.gather(spans).pieces()
    return [piece if there else None for piece, there in zip(pieces, spans.present.tolist(), strict=True)]


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def lenient(values: list[bytes | None]) -> list[bytes | None]:
    """Decoded as Java does, for comparing with what the twin has decoded."""
    return [None if value is None else decode_utf8(value).encode() for value in values]


def pairs_of(columns: RecordColumns, chosen: Longs) -> list[dict[str, str]]:
    maps = columns.split_properties(columns.properties(chosen))
    names, values = maps.names.pieces(), maps.values.pieces()
    ends = maps.maps.tolist()
    found = []
    for begin, end in itertools.pairwise(ends):
        assert len(set(names[begin:end])) == end - begin, "a name that is there twice"
        both = zip(names[begin:end], values[begin:end], strict=True)
        found.append({decode_utf8(name): decode_utf8(value) for name, value in both})
    return found


def keys_of(columns: RecordColumns, chosen: Longs) -> list[list[str]]:
    found = columns.split_keys(columns.keys(chosen))
    pieces, ends = found.items.pieces(), found.lists.tolist()
    return [[decode_utf8(key) for key in pieces[begin:end]] for begin, end in itertools.pairwise(ends)]


def check(columns: RecordColumns, records: list[Record], chosen: Longs) -> None:
    wanted = [records[row] for row in chosen.tolist()]
    for name in (
        *("physical_offset", "size", "queue_id", "queue_offset", "sys_flag", "store_timestamp", "born_timestamp"),
        "reconsume_times",
    ):
        assert getattr(columns, name)(chosen).tolist() == [getattr(record, name) for record in wanted], name
    assert texts(columns, columns.topic(chosen)) == [record.topic_bytes for record in wanted]
    assert texts(columns, columns.body(chosen)) == [record.body for record in wanted]
    assert texts(columns, columns.properties(chosen)) == [record.properties_bytes for record in wanted]
    assert lenient(texts(columns, columns.tags(chosen))) == [encoded(record.tags) for record in wanted]
    unique = lenient(texts(columns, columns.unique_key(chosen)))
    assert unique == [encoded(record.unique_key) for record in wanted]
    assert keys_of(columns, chosen) == [record.keys for record in wanted]
    assert columns.born_host(chosen).pieces() == [str(record.born_host).encode() for record in wanted]
    assert columns.store_host(chosen).pieces() == [str(record.store_host).encode() for record in wanted]
    ids = [encode_offset_id(record.store_host, record.physical_offset).encode() for record in wanted]
    assert columns.message_id(chosen).pieces() == ids
    assert pairs_of(columns, chosen) == [record.properties for record in wanted]


@examples(10, 300, logs(), st.data())
def test_every_field_is_that_of_the_readable_decoder(log: tuple[bytes, int], data: st.DataObject) -> None:
    columns, records = columns_of(*log)
    check(columns, records, columns.all_rows())
    some = data.draw(st.sets(st.sampled_from(range(len(records)))) if records else st.just(set()))
    check(columns, records, np.array(sorted(some), np.int64))


@examples(40, 500, property_strings)
def test_properties_follow_the_rules_of_javas_parser(string: bytes) -> None:
    columns, (record,) = columns_of(log_with(properties=string))
    assert pairs_of(columns, columns.all_rows()) == [props.decode(string)]
    check(columns, [record], columns.all_rows())


@pytest.mark.parametrize(
    ("string", "pairs"),
    [
        (b"a\x01b\x02", {"a": "b"}),
        (b"a\x01b", {"a": "b"}),
        (b"a\x01b\x01c\x02", {"a": "b\x01c"}),
        (b"a\x011\x02b\x012\x02a\x013\x02", {"a": "3", "b": "2"}),
        (b"a\x011\x02a\x01\x02", {"a": "1"}),
        (b"\x01b\x02a\x02\x02c\x01", {}),
        (b"", {}),
    ],
)
def test_properties_one_by_one(string: bytes, pairs: dict[str, str]) -> None:
    columns, _ = columns_of(log_with(properties=string))
    (found,) = pairs_of(columns, columns.all_rows())
    assert list(found.items()) == list(pairs.items())


def test_many_names_that_share_a_bit_are_still_told_apart() -> None:
    many = {f"{number:03d}": str(number) for number in range(1000)}
    columns, _ = columns_of(log_with(properties=props.encode(many) + props.encode({"500": "again"})))
    assert pairs_of(columns, columns.all_rows()) == [many | {"500": "again"}]


@examples(40, 300, st.lists(st.tuples(hosts, hosts), min_size=1, max_size=5))
def test_hosts_and_ids_are_written_as_everywhere(pairs: list[tuple[Host, Host]]) -> None:
    log = b""
    for born, store in pairs:
        log += encode_record(Message("T", 0, b"", b"", born_host=born, store_host=store), 0, len(log), 1)
    columns, records = columns_of(log)
    check(columns, records, columns.all_rows())


@pytest.mark.parametrize("store", [True, False])
def test_a_mapped_address_counts_as_ipv4(store: bool) -> None:
    """RocketMQ's Java would have written 4 bytes; somebody's code wrote 16."""
    log = bytearray(log_with(**{"store_host" if store else "born_host": V6}))
    at = 64 if store else 48
    log[at : at + 16] = bytes(10) + b"\xff\xff\x7f\x00\x00\x01"
    columns, records = columns_of(bytes(log))
    check(columns, records, columns.all_rows())
    host = columns.store_host if store else columns.born_host
    assert host(columns.all_rows()).pieces() == [b"127.0.0.1:50000"]


def test_records_that_do_not_stand_where_they_say() -> None:
    columns, (record,) = columns_of(log_with())
    moved = RecordColumns(columns._walk, np.array([1000]))
    assert moved.physical_offset(moved.all_rows()).tolist() == [1000]
    assert moved.message_id(moved.all_rows()).pieces() == [encode_offset_id(record.store_host, 1000).encode()]


def test_what_is_taken_outlives_the_buffer() -> None:
    log = bytearray(log_with(body=b"kept", properties=b"KEYS\x01a b\x02"))
    columns = RecordColumns(WALKER.walk(log, 0, len(log), 0, check_crc=True))
    chosen = columns.all_rows()
    bodies, keys = columns.gather(columns.body(chosen)), columns.split_keys(columns.keys(chosen))
    sizes = columns.size(chosen)
    log[:] = bytes(len(log))
    assert (bodies.pieces(), keys.items.pieces(), sizes.tolist()) == ([b"kept"], [b"a", b"b"], [len(log)])


def test_an_empty_walk_has_empty_columns() -> None:
    columns = RecordColumns(WALKER.walk(bytes(100), 0, 100, 0, check_crc=True))
    check(columns, [], columns.all_rows())


@pytest.mark.slow
@given(logs(), st.data())
@settings(max_examples=100)
def test_records_picked_out_of_a_log_keep_their_offsets(log: tuple[bytes, int], data: st.DataObject) -> None:
    _, records = columns_of(*log)
    picked = [record for record in records if data.draw(st.booleans())]
    copy, physical = renumbered(b"".join(record.encode() for record in picked) + data.draw(st.binary(max_size=60)))
    walk = WALKER.walk(copy, 0, len(copy), 0, check_crc=True)
    assert walk.count == len(picked)
    columns = RecordColumns(walk, physical)
    check(columns, picked, columns.all_rows())
