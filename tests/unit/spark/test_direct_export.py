"""The export without Spark: every valid message once, a file for each topic and day, nothing half done."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: the extra `export`")

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tandemmq.common.files.file_system import LocalFileSystem
from tandemmq.spark import direct_export
from tandemmq.spark.direct_export import export_directly
from tandemmq.spark.errors import BadJobOption, UnreadableTopics
from tandemmq.spark.export import ExportFailed, ExportRequest
from tandemmq.spark.source.record_batches import ARROW_TYPES
from tests.integration.test_cli import tandem
from tests.unit.spark.midnight import NEW_YEAR, keep, midnight_log


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = tmp_path / "store" / "commitlog" / f"{0:020d}"
    log.parent.mkdir(parents=True)
    log.write_bytes(midnight_log().ljust(4096, b"\0"))
    return tmp_path / "store"


def rows(out: Path) -> list[dict[str, object]]:
    found = ds.dataset(out, format="parquet", partitioning=ds.partitioning(flavor="hive")).to_table().to_pylist()
    return sorted(found, key=lambda row: row["physical_offset"])


def files(out: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(out)) for path in out.rglob("part-*"))


def test_by_topic_and_day(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told: list[tuple[int, int]] = []
    report = export_directly(ExportRequest(store, str(out)), lambda done, total: told.append((done, total)))
    assert (report.messages, report.damaged, report.files, report.log_bytes) == (5, 1, 4, len(midnight_log()))
    assert report.bytes == sum(path.stat().st_size for path in out.rglob("part-*"))
    assert told[-1] == (4096, 4096)
    assert files(out) == [
        "topic=%25RETRY%25g%2F1/day=2025-12-31",
        "topic=orders/day=2025-12-31",
        "topic=orders/day=2026-01-01",
        "topic=rest/day=2026-01-01",
    ]
    assert [(row["topic"], row["day"], row["body"]) for row in rows(out)] == [
        ("orders", "2025-12-31", b"body 0"),
        ("%RETRY%g/1", "2025-12-31", b"body 1"),
        ("orders", "2026-01-01", b"body 2"),
        ("orders", "2026-01-01", b"body 3"),
        ("rest", "2026-01-01", b"body 5"),
    ]
    first = rows(out)[0]
    assert first["store_timestamp"] == datetime(2026, 1, 1, tzinfo=UTC) - timedelta(milliseconds=2)
    assert first["keys"] == ["k"]
    assert first["properties"] == [("KEYS", "k")]
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith("topic=")) == ["_SUCCESS"]


def test_the_columns_are_those_of_the_table(store: Path, tmp_path: Path) -> None:
    export_directly(ExportRequest(store, str(tmp_path / "out")))
    (path,) = (tmp_path / "out" / "topic=rest").rglob("part-*")
    assert pq.read_schema(path).names == [name for name in ARROW_TYPES if name not in ("topic", "is_valid")]


def test_some_topics_times_and_columns(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ExportRequest(
        store, str(out), topics=("orders",), begin=NEW_YEAR, end=NEW_YEAR + 1, columns=("physical_offset", "keys")
    )
    assert export_directly(asked).messages == 1
    (row,) = rows(out)
    assert sorted(row) == ["day", "keys", "physical_offset", "topic"]


def test_what_is_there_is_kept_added_to_or_replaced(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_directly(ExportRequest(store, str(out)))
    with pytest.raises(BadJobOption, match="something in"):
        export_directly(ExportRequest(store, str(out)))
    again = ExportRequest(store, str(out), topics=("orders",), begin=NEW_YEAR, mode="append")
    assert export_directly(again).files == 1
    assert len(rows(out)) == 5 + 2
    export_directly(ExportRequest(store, str(out), topics=("orders",), begin=NEW_YEAR + 1, mode="overwrite"))
    bodies = [row["body"] for row in rows(out)]
    assert bodies == [b"body 0", b"body 1", b"body 3", b"body 5"]  # the other topic and day stay


@pytest.mark.parametrize("limit", ["_GROUP_BYTES", "_GATHERED_BYTES", "FILE_BYTES", "_OPEN_FILES"])
def test_what_has_no_room_in_memory_or_in_a_file_goes_on_in_another(
    store: Path, tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_export, limit, 0 if limit == "_OPEN_FILES" else 1)
    monkeypatch.setattr("tandemmq.spark.reading.range_reading._ROWS", 1)  # a batch is one record
    out = tmp_path / "out"
    report = export_directly(ExportRequest(store, str(out)))
    assert [row["body"] for row in rows(out)] == [b"body 0", b"body 1", b"body 2", b"body 3", b"body 5"]
    assert report.files == len(files(out)) >= 4


def test_a_failure_leaves_nothing_half_done(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(ExportFailed, match="No space left on device"):
        export_directly(ExportRequest(store, str(out)))
    assert list(out.iterdir()) == []


def test_files_are_on_the_disk_before_they_take_the_place_of_others(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export_directly(ExportRequest(store, str(out)))
    old = set(out.rglob("part-*"))
    synced: list[str] = []

    class SyncWatchingFiles(LocalFileSystem):
        def sync(self, fd: int) -> None:
            synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
            super().sync(fd)

        def rename(self, source: Path, target: Path) -> None:
            assert source.name in synced
            assert old <= set(out.rglob("part-*"))
            super().rename(source, target)

    monkeypatch.setattr(direct_export, "LOCAL", SyncWatchingFiles())
    asked = ExportRequest(store, str(out), topics=("rest",), mode="overwrite")
    assert export_directly(asked).files == 1
    (new,) = set(out.rglob("part-*")) - old
    assert synced == [new.name]
    assert len(old - set(out.rglob("part-*"))) == 1


@pytest.mark.slow
def test_the_command_needs_no_spark(store: Path, tmp_path: Path) -> None:
    done = tandem("export", str(store), str(tmp_path / "out"), "--json", environment={"JAVA_HOME": "/nowhere"})
    assert done.code == 0, done.err
    assert json.loads(done.out)["messages"] == 5
    refused = tandem("export", str(store), str(tmp_path / "out"))
    assert refused.code == 2
    assert "append" in refused.err


HOUR_MS = 3_600_000


@pytest.mark.parametrize("columns", [(), ("queue_offset",)])
def test_what_a_topic_does_not_keep_is_left_out(store: Path, tmp_path: Path, columns: tuple[str, ...]) -> None:
    """Of the topic alone; what is damaged is counted as before."""
    keep(store, orders="2", rest="-1")
    now = NEW_YEAR + 2 * HOUR_MS + 1  # the third message is 2 h and 1 ms old, the fourth just 2 h
    report = export_directly(ExportRequest(store, str(tmp_path / "out"), columns=columns, now_ms=now))
    assert (report.messages, report.damaged) == (3, 1)
    assert files(tmp_path / "out") == [
        "topic=%25RETRY%25g%2F1/day=2025-12-31",
        "topic=orders/day=2026-01-01",
        "topic=rest/day=2026-01-01",
    ]


def test_a_topic_table_that_cannot_be_read_is_no_empty_one(store: Path, tmp_path: Path) -> None:
    keep(store, orders="2")
    (store / "config" / "topics.json").write_bytes(b"{")
    with pytest.raises(UnreadableTopics, match=r"topics\.json"):
        export_directly(ExportRequest(store, str(tmp_path / "out")))
    (store / "config" / "topics.json").rename(store / "config" / "topics.json.bak")
    keep(store, orders="1000000")
    assert export_directly(ExportRequest(store, str(tmp_path / "out"))).messages == 5


def test_the_copy_of_a_metadata_services_table_comes_first(store: Path, tmp_path: Path) -> None:
    keep(store, orders="1")
    (store / "config" / "topics.json").rename(store / "tandem.topics")
    keep(store, orders="-1", rest="1")
    assert export_directly(ExportRequest(store, str(tmp_path / "out"))).messages == 2
