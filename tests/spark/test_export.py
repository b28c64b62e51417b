"""Export to Parquet: every valid message once, in the directory of its topic and day."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

from pyspark.sql import SparkSession

from tandemmq.spark.errors import BadJobOption, NotAStore
from tandemmq.spark.export import ExportRequest, check, export
from tests.golden import golden_store
from tests.spark.rows import Row, rows_of_log
from tests.spark.test_record_batches import filled, write_log
from tests.unit.spark.midnight import NEW_YEAR, keep, midnight_log


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_log(tmp_path / "store" / "commitlog", filled(midnight_log(), 4096))
    return tmp_path / "store"


def written(out: Path) -> list[Row]:
    partitioning = ds.partitioning(flavor="hive")
    rows: list[Row] = ds.dataset(out, format="parquet", partitioning=partitioning).to_table().to_pylist()
    return sorted(rows, key=lambda row: row["physical_offset"])


def test_by_topic_and_day(session: SparkSession, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = export(session, ExportRequest(store, str(out)))
    assert (report.messages, report.damaged, report.files, report.log_bytes) == (5, 1, 4, len(midnight_log()) + 8)
    assert report.bytes == sum(path.stat().st_size for path in out.rglob("part-*"))
    folders = sorted(str(path.parent.relative_to(out)) for path in out.rglob("part-*"))
    assert folders == [
        "topic=%25RETRY%25g%2F1/day=2025-12-31",
        "topic=orders/day=2025-12-31",
        "topic=orders/day=2026-01-01",
        "topic=rest/day=2026-01-01",
    ]
    assert [(row["topic"], row["day"], row["body"]) for row in written(out)] == [
        ("orders", "2025-12-31", b"body 0"),
        ("%RETRY%g/1", "2025-12-31", b"body 1"),
        ("orders", "2026-01-01", b"body 2"),
        ("orders", "2026-01-01", b"body 3"),
        ("rest", "2026-01-01", b"body 5"),
    ]
    assert "is_valid" not in written(out)[0]


def test_what_a_topic_does_not_keep_is_left_out(session: SparkSession, store: Path, tmp_path: Path) -> None:
    keep(store, orders="2", rest="-1")
    report = export(session, ExportRequest(store, str(tmp_path / "out"), now_ms=NEW_YEAR + 7_200_001))
    assert (report.messages, report.damaged) == (3, 1)
    assert [row["body"] for row in written(tmp_path / "out")] == [b"body 1", b"body 3", b"body 5"]


@pytest.mark.slow
def test_some_topics_times_and_columns(session: SparkSession, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ExportRequest(
        store, str(out), topics=("orders",), begin=NEW_YEAR, end=NEW_YEAR + 1, columns=("physical_offset", "keys")
    )
    assert export(session, asked).messages == 1
    (row,) = written(out)
    assert sorted(row) == ["day", "keys", "physical_offset", "topic"]


@pytest.mark.slow
def test_what_is_there_is_kept_added_to_or_replaced(session: SparkSession, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(session, ExportRequest(store, str(out)))
    with pytest.raises(BadJobOption, match="something in"):
        export(session, ExportRequest(store, str(out)))
    again = ExportRequest(store, str(out), topics=("orders",), begin=NEW_YEAR, mode="append")
    assert export(session, again).files == 1
    assert len(written(out)) == 5 + 2
    replaced = ExportRequest(store, str(out), topics=("orders",), begin=NEW_YEAR + 1, mode="overwrite")
    export(session, replaced)
    bodies = [row["body"] for row in written(out)]
    assert bodies == [b"body 0", b"body 1", b"body 3", b"body 5"]  # the other topic and day stay


@pytest.mark.slow
@pytest.mark.golden
def test_a_golden_store(session: SparkSession, tmp_path: Path) -> None:
    root = golden_store("clean") / "store"
    report = export(session, ExportRequest(root, str(tmp_path / "out")))
    expected = rows_of_log(root / "commitlog")
    found = written(tmp_path / "out")
    assert report.messages == len(expected) == len(found)
    for row, wanted in zip(found, expected, strict=True):
        assert row["day"] == f"{wanted['store_timestamp']:%Y-%m-%d}"
        row = row | {"properties": dict(row["properties"]), "is_valid": True}
        del row["day"]
        assert row == wanted


def test_what_cannot_be_is_told_before_spark_starts(store: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAStore):
        check(ExportRequest(tmp_path / "nowhere", str(tmp_path / "out")))
    with pytest.raises(BadJobOption, match="no mode"):
        check(ExportRequest(store, str(tmp_path / "out"), mode="replace"))
    with pytest.raises(BadJobOption, match="topic is no column"):
        check(ExportRequest(store, str(tmp_path / "out"), columns=("topic",)))
    (tmp_path / "file").touch()
    with pytest.raises(BadJobOption, match="no directory"):
        check(ExportRequest(store, str(tmp_path / "file"), mode="append"))


@pytest.mark.slow
def test_the_command(store: Path, tmp_path: Path) -> None:
    tandem = str(Path(sys.executable).with_name("tandem"))
    command = [tandem, "export", str(store), str(tmp_path / "out"), "--master", "local[1]"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["messages"] == 5
    assert len(written(tmp_path / "out")) == 5
    refused = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert refused.returncode == 2
    assert "--mode" in refused.stderr or "append" in refused.stderr
