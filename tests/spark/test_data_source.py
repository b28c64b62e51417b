"""`spark.read.format("commitlog")` in a real session."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tandemmq.spark.data_source import CommitLogDataSource
from tandemmq.store.format.record import encode_record
from tests.campaigns import in_campaigns
from tests.contract.store_process import StoreProcess
from tests.golden import copy_of, golden_store
from tests.spark.rows import COLUMNS, Row, rows_of_log
from tests.spark.streams import Load as Sending
from tests.spark.test_record_batches import filled, log_of, message, write_log

PUSHING = "spark.sql.python.filterPushdown.enabled"
Load = Callable[..., DataFrame]


@pytest.fixture(scope="module")
def spark(session: SparkSession) -> SparkSession:
    session.dataSource.register(CommitLogDataSource)
    return session


@pytest.fixture
def load(spark: SparkSession) -> Load:
    def load(path: Path, schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("commitlog").options(**options)
        return (reader.schema(schema) if schema else reader).load(str(path))

    return load


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two files of 4 KiB, 32 messages; queue offset n in each file stands for message n."""
    files: list[bytes] = []
    for base in (0, 4096):
        pairs = [
            {"KEYS": f"k{n} all", "UNIQ_KEY": f"u{base}-{n}"} | ({"TAGS": f"t{n % 3}"} if n % 2 else {})
            for n in range(16)
        ]
        files.append(filled(log_of(*[message(b"%d" % n, **one) for n, one in enumerate(pairs)], base=base), 4096))
    root = tmp_path_factory.mktemp("store")
    write_log(root / "commitlog", *files)
    return root


def collected(frame: DataFrame) -> list[Row]:
    rows = [row.asDict() for row in frame.collect()]
    for row in rows:
        if row.get("body") is not None:
            row["body"] = bytes(row["body"])
    return sorted(rows, key=lambda row: row["physical_offset"])


def without_zone(rows: list[Row]) -> list[Row]:
    """Spark gives times in the session's zone (UTC), and does not say so."""
    times = ("store_timestamp", "born_timestamp")
    return [row | {name: row[name].astimezone().replace(tzinfo=None) for name in times if row[name]} for row in rows]


def numbers(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.select("queue_offset").collect())


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.parametrize("name", ["torn/body-flip-old", *in_campaigns("clean")])
def test_a_golden_store_row_for_row(load: Load, name: str) -> None:
    group, _, variant = name.partition("/")
    root = golden_store(group) / variant / "store"
    frame = load(root)
    assert tuple(frame.columns) == COLUMNS
    assert collected(frame) == without_zone(rows_of_log(root / "commitlog"))


def test_columns_by_schema_and_by_option(load: Load, log: Path) -> None:
    by_schema = load(log, "size int, topic string")
    by_option = load(log, columns="size,topic")
    assert by_schema.columns == by_option.columns == ["size", "topic"]
    assert by_schema.count() == by_option.count() == 32
    assert by_schema.collect() == by_option.collect()
    assert load(log, columns="is_valid").where("is_valid").count() == 32


def test_conditions_of_options(load: Load, log: Path) -> None:
    assert numbers(load(log, where="tags = 't1' AND physical_offset < 4096")) == [1, 7, 13]
    assert numbers(load(log, key="k3")) == [3, 3]
    assert numbers(load(log, key="u0-3")) == [3]
    assert load(log, key="all", topic="T").count() == 32
    assert load(log, topic="U,V").count() == 0


def test_bounds(load: Load, log: Path) -> None:
    places = [row["physical_offset"] for row in collected(load(log, columns="physical_offset"))]
    for start, end in ((0, 9000), (1, 4097), (places[3], places[20]), (places[3] + 1, places[20] + 1), (8192, 9000)):
        frame = load(log, startingOffsets=start, endingOffsets=end, columns="physical_offset")
        assert [row["physical_offset"] for row in collected(frame)] == [one for one in places if start <= one < end]
    frame = load(log, startingTimestamp=1_700_000_000_003, endingTimestamp="1700000000005")
    assert numbers(frame) == [3, 3, 4, 4]
    assert load(log, startingOffsets="earliest", endingOffsets="latest").count() == 32


def test_a_bound_leaves_out_ranges(load: Load, log: Path) -> None:
    assert load(log).rdd.getNumPartitions() == 2
    assert load(log, where="physical_offset >= 4096").rdd.getNumPartitions() == 1
    assert load(log, startingOffsets=8192).count() == 0


def test_one_frame_in_several_queries_with_different_filters(spark: SparkSession, load: Load, log: Path) -> None:
    """Spark keeps what it has pushed into a Python data source: so nothing is pushed, whatever the session says."""
    for pushing in ("true", "false"):
        spark.conf.set(PUSHING, pushing)
        try:
            frame = load(log)
            assert frame.where("queue_offset = 3").count() == 2
            assert frame.count() == 32
            assert frame.where("queue_offset < 2").union(frame.where("tags = 't1'")).count() == 4 + 6
        finally:
            spark.conf.unset(PUSHING)


def test_filters_are_pushed_where_it_is_asked_for(spark: SparkSession, load: Load, log: Path) -> None:
    spark.conf.set(PUSHING, "true")
    try:
        for where, count in (
            ("queue_offset = 3", 2),
            ("physical_offset >= 4096 AND queue_offset IN (1, 2)", 2),
            ("tags IS NULL", 16),
            ("tags <> 't1'", 10),
            ("tags <=> 't1' AND NOT (sys_flag = 0)", 6),
            ("topic LIKE 'T%' AND unique_key LIKE '%-3'", 2),
            ("store_timestamp > timestamp'2023-11-14 22:13:20.003'", 24),
            ("is_valid AND size > 100 AND array_contains(keys, 'k3')", 2),
        ):
            plain, pushed = load(log).where(where), load(log, pushFilters="true").where(where)
            assert pushed.count() == plain.count() == count, where
        pushed = load(log, pushFilters="true").where("physical_offset >= 4096")
        assert "Filter" not in pushed._jdf.queryExecution().executedPlan().toString().replace("RuntimeFilters", "")
        assert pushed.rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset(PUSHING)


def test_pushing_wants_sparks_setting(load: Load, log: Path) -> None:
    with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
        load(log, pushFilters="true").count()


def test_aggregates(load: Load, log: Path) -> None:
    (row,) = load(log, columns="topic,size").groupBy("topic").agg(f.count("*").alias("n"), f.sum("size")).collect()
    assert row["n"] == 32
    found = load(log).where(f.array_contains("keys", "k3")).select(f.decode("body", "utf-8"), "properties").collect()
    assert [row[0] for row in found] == ["3", "3"]
    assert found[0]["properties"]["KEYS"] == "k3 all"


@pytest.mark.parametrize(
    ("options", "schema", "told"),
    [
        ({"startingOfset": "1"}, None, "Did you mean startingOffsets?"),
        ({"columns": "tpoic"}, None, "no column 'tpoic'"),
        ({}, "topic string, siez int", "no column 'siez'"),
        ({}, "size long", "Column size is int, not bigint"),
        ({"startingOffsets": "latest"}, None, "only a stream"),
        ({"maxOffsetsPerTrigger": "5"}, None, "spark.readStream"),
        ({"where": "size >"}, None, "its end"),
        ({"startingTimestamp": str(10**18)}, None, "no calendar"),
    ],
)
def test_what_cannot_be_is_told(load: Load, log: Path, options: dict[str, str], schema: str | None, told: str) -> None:
    with pytest.raises(PySparkException) as caught:
        load(log, schema, **options).count()
    assert told in str(caught.value)


def test_no_store_there(load: Load, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no commit log"):
        load(tmp_path).count()


@pytest.mark.golden
def test_a_cut_file_is_refused(load: Load) -> None:
    with pytest.raises(PySparkException, match="one is cut"):
        load(golden_store("torn") / "short-file" / "store").count()


@pytest.mark.golden
def test_missing_data_is_an_error_or_a_warning(load: Load, tmp_path: Path) -> None:
    root = copy_of(golden_store("aged") / "store", tmp_path)
    expected = len(rows_of_log(root / "commitlog"))
    first, second, *_ = sorted((root / "commitlog").iterdir())
    with pytest.raises(PySparkException, match=f"begins at offset {int(first.name):,}, not at 0"):
        load(root, startingOffsets=0).count()
    assert load(root, startingOffsets=0, failOnDataLoss="false").count() == expected
    assert load(root).count() == expected
    shutil.move(second, tmp_path)
    with pytest.raises(PySparkException, match="No file of the log"):
        load(root).count()
    assert load(root, failOnDataLoss="false").count() == len(rows_of_log(root / "commitlog"))
    assert load(root, endingOffsets=int(second.name)).count() > 0


def test_a_file_that_expires_meanwhile(load: Load, log: Path, tmp_path: Path) -> None:
    shutil.copytree(log / "commitlog", tmp_path / "commitlog")
    for name, count in (("true", None), ("false", 16)):
        frame = load(tmp_path, failOnDataLoss=name)
        assert frame.rdd.getNumPartitions() == 2  # it is planned
        (tmp_path / "commitlog" / f"{0:020d}").rename(tmp_path / "expired")
        if count is None:
            with pytest.raises(PySparkException, match="expired since the query was planned"):
                frame.count()
        else:
            assert frame.count() == count
        (tmp_path / "expired").rename(tmp_path / "commitlog" / f"{0:020d}")


def test_damage(load: Load, tmp_path: Path) -> None:
    good = log_of(message(b"good"))
    bad = bytearray(encode_record(message(b"bad"), 1, len(good), 5))
    bad[bad.index(b"bad")] ^= 1
    nonsense = b"\x07" * 50
    last = encode_record(message(b"last"), 2, len(good) + len(bad) + 50, 6)
    root = write_log(tmp_path, filled(good + bytes(bad) + nonsense + last, 4096))
    rows = collected(load(root))
    assert [row["is_valid"] for row in rows] == [True, False, False, True]
    assert (rows[1]["message_id"] is None, rows[1]["queue_offset"]) == (False, 1)
    assert (rows[2]["message_id"], rows[2]["size"]) == (None, 50)
    assert load(root, includeDamaged="false").count() == 2
    assert load(root, checkCrc="false").where("is_valid").count() == 3
    assert load(root, where="NOT is_valid", columns="size").count() == 2


@pytest.mark.slow
def test_a_live_store(load: Load, tmp_path: Path) -> None:
    """While it takes messages: each that was acknowledged before is there, nothing damaged, nothing twice."""
    with StoreProcess(tmp_path / "store") as store:
        sending = Sending(store.address, "live")
        sending.start()
        found: set[int] = set()
        for options in ({"store": store.address}, {}, {"store": store.address, "rangeSize": "65536"}):
            before = set(sending.sent)
            frame = load(store.directory, columns="body,is_valid,physical_offset", topic="live", **options)
            rows = collected(frame)
            numbers = [int(row["body"]) for row in rows]
            assert all(row["is_valid"] for row in rows)
            assert len(set(numbers)) == len(numbers)
            assert found | before <= set(numbers)
            found = set(numbers)
        sending.stop()
        assert load(store.directory, store=store.address, topic="live", where="NOT is_valid").count() == 0
        told = "The log of .* ends at .*, its files in .* do before"
        (tmp_path / "store" / "commitlog").rename(tmp_path / "moved")
        try:
            (tmp_path / "copy").mkdir()
            first = min((tmp_path / "moved").iterdir())
            shutil.copy(first, tmp_path / "copy")
            with pytest.raises(PySparkException, match=told):
                load(tmp_path / "copy", store=store.address).count()
        finally:
            (tmp_path / "moved").rename(tmp_path / "store" / "commitlog")


def test_a_store_that_does_not_answer(load: Load, log: Path) -> None:
    with pytest.raises(PySparkException, match="StoreUnreachable"):
        load(log, store="127.0.0.1:1").count()
