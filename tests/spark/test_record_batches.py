"""Batches of the data source, without Spark: row for row what the readable decoder finds."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from tandemmq.spark.reading.log_files import LogFile, list_log_files
from tandemmq.spark.reading.range_reading import BadRecords, batches_of_records, proven, read_range
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.source import record_batches as batches_module
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.planning import last_written
from tandemmq.spark.source.schema import SCHEMA, arrow_schema, choose
from tandemmq.spark.source.where import parse_where
from tandemmq.store.format import properties
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.record import Message, decode_record, encode_blank, encode_record, head_size
from tandemmq.store.format.sysflag import STORE_HOST_V6
from tests.golden import golden_store
from tests.spark.rows import COLUMNS, Row, moment, row_of, rows_of_file, rows_of_log, stretch
from tests.unit.format.logs import V4, V6, damaged_logs, logs

pytestmark = pytest.mark.slow

ALL = ScanWanted(arrow_schema(SCHEMA))
_CAMEL = {
    "size": "size",
    "born_host": "bornHost",
    "store_host": "storeHost",
    "store_timestamp": "storeTimestamp",
    "born_timestamp": "bornTimestamp",
}
_STORED = {
    "topic": "storedTopic",
    "queue_id": "storedQueueId",
    "queue_offset": "storedQueueOffset",
    "sys_flag": "storedSysFlag",
    "properties": "storedProperties",
}
SETS = {
    "clean": "clean/store",
    "aged": "aged/store",
    "crash": "crash/store",
    "recovered": "crash/store-after-java-recovery",
}


def plain(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """The rows, in log order; maps as dictionaries."""
    rows = []
    for batch in batches:
        batch.validate(full=True)
        rows += batch.to_pylist()
    for row in rows:
        if row.get("properties") is not None:
            row["properties"] = dict(row["properties"])
    return sorted(rows, key=lambda row: row.get("physical_offset") or 0)


def read(root: Path, wanted: ScanWanted = ALL, range_size: int = 1 << 30, **how: bool) -> Iterator[pa.RecordBatch]:
    files = list_log_files(root)
    last = last_written(files).start
    for log_range in split(files, range_size):
        yield from read_range(ReadRange(log_range, last=log_range.file.start >= last, **how), wanted)


def write_log(directory: Path, *files: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(files):
        (directory / f"{number * len(files[0]):020d}").write_bytes(data)
    return directory


def filled(data: bytes, size: int) -> bytes:
    """A file of ``size`` bytes that ends with a blank."""
    return data + encode_blank(size - len(data)) + bytes(size - len(data) - 8)


def message(body: bytes = b"body", **pairs: str) -> Message:
    return Message("T", 0, body, properties.encode(pairs), born_host=V4, store_host=V6)


def log_of(*messages: Message, base: int = 0) -> bytes:
    log = b""
    for number, one in enumerate(messages):
        log += encode_record(one, number, base + len(log), 1_700_000_000_000 + number)
    return log


@pytest.mark.golden
@pytest.mark.parametrize("name", ["clean", "aged", "crash", "recovered"])
@pytest.mark.parametrize("range_size", [1 << 30, 150_000])
def test_golden_stores_row_for_row(name: str, range_size: int) -> None:
    group, store = SETS[name].split("/")
    root = golden_store(group) / store
    expected = rows_of_log(root / "commitlog")
    assert plain(read(root, range_size=range_size)) == expected
    assert len(expected) > 1000


def damaged_stores() -> list[str]:
    return sorted(path.name for path in golden_store("torn").iterdir() if (path / "store" / "commitlog").is_dir())


@pytest.mark.golden
@pytest.mark.slow
def test_damaged_golden_stores_row_for_row() -> None:
    bad = 0
    for name in damaged_stores():
        root = golden_store("torn") / name / "store"
        sizes = {path.stat().st_size for path in (root / "commitlog").iterdir()}
        if len(sizes - {0}) > 1:  # the set with a cut file: refused, see test_data_source
            continue
        expected = rows_of_log(root / "commitlog")
        assert plain(read(root, range_size=200_000)) == expected, name
        bad += sum(not row["is_valid"] for row in expected)
    assert bad


@pytest.mark.golden
def test_the_clean_store_has_what_the_broker_has_answered() -> None:
    root = golden_store("clean")
    rows = {row["message_id"]: row for row in plain(read(root / "store"))}
    messages = json.loads((root / "expected.json").read_text())["messages"]
    for sent in messages:
        row = rows[sent["msgId"]]
        assert row["physical_offset"] == sent["physicOffset"]
        assert len(row["body"]) == sent["bodyLength"]
        assert crc31(row["body"]) == sent["bodyCrc32"]
        for name in ("size", "born_host", "store_host"):
            assert row[name] == sent[_CAMEL[name]]
        for name in ("topic", "queue_id", "queue_offset", "sys_flag", "properties"):
            assert row[name] == sent[_STORED[name]]
        for name in ("store_timestamp", "born_timestamp"):
            assert row[name] == moment(sent[_CAMEL[name]])
        assert row["unique_key"] == sent["storedProperties"].get("UNIQ_KEY")
        assert row["tags"] == sent["storedProperties"].get("TAGS")
        assert " ".join(row["keys"]) == sent["storedProperties"].get("KEYS", "")
    assert len(messages) == 6673


@given(logs())
@settings(max_examples=150, deadline=None)
def test_any_valid_records(log: tuple[bytes, int]) -> None:
    """Malformed text too, and properties that become equal by decoding."""
    data, base = log
    expected, at = [], 0
    for row in rows_of_file(data, base, last=True):
        if row["is_valid"]:
            expected.append(row)
            at += row["size"]
    found = plain(batches_of_records(data[:at], ALL))
    assert found == expected


@given(damaged_logs(), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_any_damage(tmp_path_factory: pytest.TempPathFactory, log: tuple[bytes, int], parts: int) -> None:
    data, base = log
    if len(data) < 100:
        return
    path = tmp_path_factory.mktemp("log") / f"{base:020d}"
    path.write_bytes(data)
    file = LogFile(path, base, len(data))
    cuts = [base + len(data) * part // parts for part in range(parts + 1)]
    for last in (True, False):
        found: list[pa.RecordBatch] = []
        for number in range(parts):
            piece = LogRange(number, file, cuts[number], cuts[number + 1], number == 0)
            found += read_range(ReadRange(piece, last=last), ALL)
        assert plain(found) == rows_of_file(data, base, last=last)


@pytest.mark.parametrize("column", COLUMNS)
def test_one_column_alone(tmp_path: Path, column: str) -> None:
    log = log_of(message(KEYS="a b", TAGS="t", UNIQ_KEY="u"), message(b""))
    root = write_log(tmp_path, filled(log, 4096))
    rows = rows_of_log(root)
    found = [row for batch in read(root, ScanWanted(arrow_schema(choose([column])))) for row in batch.to_pylist()]
    if column == "properties":
        found = [{column: dict(row[column])} for row in found]
    assert found == [{column: row[column]} for row in rows]


def test_a_message_in_a_body_is_no_row(tmp_path: Path) -> None:
    """A sender who knows where the body will stand puts a whole valid record there, and the range begins before it."""
    first = log_of(message(b"first"))
    inner_at = len(first) + head_size(STORE_HOST_V6) + 1000
    inner = encode_record(message(b"forged"), 9, inner_at, 5)
    outer = encode_record(message(bytes(1000) + inner + bytes(500)), 1, len(first), 6)
    behind = encode_record(message(b"behind"), 2, len(first) + len(outer), 7)
    data = first + outer + behind
    assert decode_record(data, inner_at).body == b"forged"
    root = write_log(tmp_path, filled(data, 1 << 14))
    (file,) = list_log_files(root)
    wanted = ScanWanted(arrow_schema(choose(["physical_offset", "body"])))
    places = [0, len(first), len(first) + len(outer)]
    for cut in (len(first) + 10, inner_at - 5, inner_at, inner_at + 1, len(data) - 10):
        pieces = (LogRange(0, file, 0, cut, True), LogRange(1, file, cut, file.end, False))
        found = [plain(read_range(ReadRange(piece, last=True), wanted)) for piece in pieces]
        assert [row["physical_offset"] for part in found for row in part] == places
        assert [row["body"] for row in found[1]] == ([b"behind"] if cut <= places[2] else [])


def test_where_a_range_far_inside_a_file_begins(tmp_path: Path) -> None:
    """A long row of records before it is proof enough; where that is torn, the whole file is."""
    body = bytes(range(256)) * 256
    record = len(encode_record(message(body), 0, 0, 0))
    count = 600
    data = bytearray(b"".join(encode_record(message(body), n, n * record, n) for n in range(count)))
    path = tmp_path / f"{0:020d}"
    begin = 500 * record - 7
    for hole in (None, 497 * record + 50, 3 * record + 200):
        if hole is not None:
            data[hole : hole + 20] = bytes(20)
        path.write_bytes(data)
        (file,) = list_log_files(tmp_path)
        found = proven(LogRange(1, file, begin, file.end, False))
        assert found is not None
        assert (found.begin, found.exact) == (500 * record, True)


def test_a_record_at_the_wrong_place_is_told_where_it_stands(tmp_path: Path) -> None:
    """Left behind by a truncation, say; its checksum is right (trap T1)."""
    log = log_of(message(b"one"))
    stale = encode_record(message(b"stale"), 5, 77_777, 3)
    after = encode_record(message(b"after"), 1, len(log) + 2 * len(stale), 4)
    again = encode_record(message(b"stale"), 6, 77_777 + len(stale), 3)
    root = write_log(tmp_path, filled(log + stale + again + after, 4096))
    rows = plain(read(root))
    assert [(row["physical_offset"], row["body"], row["is_valid"]) for row in rows] == [
        (0, b"one", True),
        (len(log), b"stale", False),
        (len(log) + len(stale), b"stale", False),
        (len(log) + 2 * len(stale), b"after", True),
    ]
    assert rows == rows_of_log(root)
    assert [row["body"] for row in plain(read(root, damaged=False))] == [b"one", b"after"]


def test_what_reaches_beyond_the_end_of_a_live_log_is_left_out(tmp_path: Path) -> None:
    whole, half = log_of(message(b"whole")), message(b"half")
    data = whole + encode_record(half, 1, len(whole), 2)
    root = write_log(tmp_path, data + bytes(4096 - len(data)))
    (file,) = list_log_files(root)
    for limit, count in ((len(whole), 1), (len(whole) + 50, 1), (len(data) - 1, 1), (len(data), 2)):
        piece = LogRange(0, file, 0, limit, True)
        assert len(plain(read_range(ReadRange(piece, limit, last=True), ALL))) == count


def test_a_record_that_is_finished_while_it_is_read_is_no_damage(tmp_path: Path) -> None:
    """Without the store's word on where its log ends, a reader may meet a record half written, and one behind it."""
    whole = log_of(message(b"first"), message(b"second"), message(b"third"))
    half = bytearray(whole)
    half[half.index(b"second")] ^= 1
    root = write_log(tmp_path, filled(bytes(half), 4096))
    (file,) = list_log_files(root)
    reading = read_range(ReadRange(LogRange(0, file, 0, file.end, True), last=True), ALL)
    found = [next(reading)]
    with file.path.open("r+b") as written:
        written.write(whole)
    found += reading
    assert [(row["body"], row["is_valid"]) for row in plain(found)] == [
        (b"first", True),
        (b"second", True),
        (b"third", True),
    ]


def test_rot_before_the_end_of_a_live_log_is_a_row(tmp_path: Path) -> None:
    data = bytearray(log_of(message(b"whole"), message(b"rotten")))
    data[data.index(b"rotten")] ^= 1
    root = write_log(tmp_path, bytes(data) + bytes(4096 - len(data)))
    (file,) = list_log_files(root)
    piece = LogRange(0, file, 0, len(data), True)
    rows = plain(read_range(ReadRange(piece, len(data), last=True), ALL))
    assert [row["is_valid"] for row in rows] == [True, False]
    assert rows[1]["physical_offset"] + rows[1]["size"] == len(data)


def test_conditions_and_keys(tmp_path: Path) -> None:
    log = log_of(
        message(b"0", KEYS="a b", TAGS="x"),
        message(b"1", UNIQ_KEY="a"),
        message(b"2", KEYS="ab", TAGS="y"),
        message(b"3"),
        message(b"4", KEYS=" b  a "),
        message(b"5", KEYS="ä", TAGS="ä"),
    )
    root = write_log(tmp_path, filled(log, 4096))
    schema = arrow_schema(choose(["body"]))

    def bodies(where: str = "", key: str | None = None) -> str:
        wanted = ScanWanted(schema, parse_where(where) if where else (), key)
        return b"".join(row["body"] for row in plain(read(root, wanted))).decode()

    assert bodies(key="a") == "014"
    assert bodies(key="ä") == "5"
    assert bodies(key="c") == ""
    assert bodies("tags = 'x'", key="a") == "0"
    assert bodies("topic = 'T' AND tags IS NULL AND is_valid") == "134"
    assert bodies("topic LIKE 'U%'") == ""
    assert bodies("NOT is_valid") == ""
    assert bodies("tags > 'x'") == "25"
    assert bodies("store_timestamp >= '2023-11-14T22:13:20.003Z'") == "345"
    assert bodies("size > 100 AND physical_offset = 0 AND sys_flag = 32") == "0"


def test_conditions_on_what_is_no_record(tmp_path: Path) -> None:
    log = log_of(message())
    root = write_log(tmp_path, filled(log + b"\x07" * 64 + log_of(message(), base=len(log) + 64), 4096))
    for where, count in (("NOT is_valid", 1), ("topic IS NULL", 1), ("size = 64", 1), ("topic <> 'x'", 2)):
        assert len(plain(read(root, ScanWanted(ALL.schema, parse_where(where))))) == count, where
    assert plain(read(root, ScanWanted(ALL.schema, key="k"))) == []
    assert stretch(len(log), len(log) + 64) in plain(read(root))


def test_moments_that_no_calendar_has_are_null() -> None:
    """The checksum covers the body alone, so times may be anything."""
    for ms in (1 << 62, -(1 << 63), 253_402_300_800_000, -62_135_596_800_001):
        (row,) = plain(batches_of_records(encode_record(message(), 0, 0, ms), ALL))
        assert (row["store_timestamp"], row["is_valid"]) == (None, True)
    (row,) = plain(batches_of_records(encode_record(message(), 0, 0, 253_402_300_799_999), ALL))
    assert row["store_timestamp"].year == 9999


def test_batches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "BATCH_BYTES", 100_000)
    log = log_of(*[message(bytes(30_000)) for _ in range(10)], message(bytes(200_000)), message(b""))
    sizes = [batch.num_rows for batch in batches_of_records(log, ALL)]
    assert sum(sizes) == 12
    assert max(sizes) == 3


def test_records_from_a_store() -> None:
    """Picked out of a log, one of them rotten."""
    picked = [encode_record(message(b"picked"), n, offset, n) for n, offset in enumerate((500, 90, 7_000_000))]
    rows = plain(batches_of_records(b"".join(picked), ALL))
    expected = [row_of(decode_record(one)) for one in picked]
    assert rows == sorted(expected, key=lambda row: row["physical_offset"])
    picked[1] = picked[1].replace(b"picked", b"pickle")
    rows = plain(batches_of_records(b"".join(picked), ALL))
    assert [row["is_valid"] for row in rows] == [False, True, True]
    assert len(plain(batches_of_records(b"".join(picked), ALL, damaged=False))) == 2
    assert len(plain(batches_of_records(b"".join(picked), ALL.also(Condition("body", "is null"))))) == 0
    with pytest.raises(BadRecords):
        plain(batches_of_records(b"".join(picked)[:-1], ALL))


def test_a_next_file_made_ahead_is_no_sign_of_damage(tmp_path: Path) -> None:
    log = log_of(message(b"one"), message(b"two"))
    root = write_log(tmp_path, log + bytes(4096 - len(log)), bytes(4096), bytes(4096))
    assert [row["body"] for row in plain(read(root))] == [b"one", b"two"]
    assert rows_of_log(root) == plain(read(root))
    # A record after a lost page says that the files before were full, and what they miss is lost.
    late = encode_record(message(b"late"), 2, 4096 + 1000, 5)
    root = write_log(tmp_path, log + bytes(4096 - len(log)), bytes(1000) + late + bytes(3096 - len(late)), bytes(4096))
    rows = plain(read(root))
    assert [(row["physical_offset"], row["is_valid"]) for row in rows[2:]] == [
        (len(log), False),
        (4096, False),
        (5096, True),
    ]
    assert rows_of_log(root) == rows
