"""Following a store over the network: the same rows as its files have, each in exactly one micro-batch."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import ClientError, RequestFailed, StoreUnreachable
from tandemmq.spark.errors import BadJobOption, MissingLog
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streaming import CommitLogStreamReader
from tandemmq.spark.streams import stream_queues
from tandemmq.spark.streams.stream_queues import QueueFollower
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.spark.streams import batch_rows, follow, log_files, reader, send, together

pytestmark = pytest.mark.slow

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")


def by_place(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row["physical_offset"])


def follower(store: str = "127.0.0.1:1") -> QueueFollower:
    return QueueFollower(SourceOptions(path=None, store=store), store)


def test_rows_are_those_of_the_files(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store", max_pull_messages=70) as store, store.client() as client:
        for first in range(0, 3000, 500):
            send(client, "orders", first, 500, queues=3)
            send(client, "payments", first, 200, queues=1)
        local = together(follow(reader(path=store.directory)))
        for limit in (None, 333):
            remote = follow(reader(store=store.address), limit)
            assert by_place(together(remote)) == by_place(local)
            assert limit is None or {len(batch) for batch in remote[:-1]} == {limit}
        only = together(follow(reader(store=store.address, topic="payments")))
        assert only == [row for row in local if row["topic"] == "payments"]


def test_spans_longer_than_a_task_are_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_queues, "MESSAGES_PER_TASK", 64)
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 500, queues=3)
        stream = reader(("body",), store=store.address)
        start = stream.initialOffset()
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        assert len(stream.partitions(start, end)) == -(-500 // 64)
        assert sorted(int(row["body"]) for row in batch_rows(stream, start, end)) == list(range(500))


def test_a_batch_ends_where_it_was_planned(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 500, queues=1)
        stream = reader(("queue_offset",), store=store.address)
        for begin, end in ((0, 1), (7, 333), (0, 500)):
            found = batch_rows(stream, {"orders": {"0": begin}}, {"orders": {"0": end}})
            assert [row["queue_offset"] for row in found] == list(range(begin, end))


def test_new_topics_and_queues_are_followed(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        stream = reader(("topic", "queue_id", "body"), store=store.address, startingOffsets="latest")
        start = stream.initialOffset()
        assert start == {}
        assert follow(stream, None, start) == []
        send(client, "orders", 0, 10, queues=1)
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        assert end == {"orders": {"0": 10}}
        send(client, "orders", 10, 10, queues=2)
        send(client, "payments", 0, 5, queues=1)
        found = together(follow(stream, None, end))
        assert len(found) == 15
        assert {(row["topic"], row["queue_id"]) for row in found} == {("orders", 0), ("orders", 1), ("payments", 0)}


def test_a_stream_begins_at_a_time(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 100)
        time.sleep(0.02)
        when = time.time_ns() // 1_000_000
        send(client, "orders", 100, 100)
        stream = reader(("body",), store=store.address, startingTimestamp=when)
        assert stream.initialOffset() == {"orders": {"0": 50, "1": 50}}
        assert sorted(int(row["body"]) for row in together(follow(stream))) == list(range(100, 200))


def test_shares_are_fair_and_exact() -> None:
    queues = follower()
    start = {"a": {"0": 5, "1": 0}, "b": {"0": 7}}
    end = {"a": {"0": 105, "1": 10, "2": 50}, "b": {"0": 7}}
    cut = queues.within(start, end, 80)
    assert cut == {"a": {"0": 55, "1": 5, "2": 25}, "b": {"0": 7}}
    taken = 0
    while (cut := queues.within(start, end, 7)) != start:
        taken += sum(stop - start.get(t, {}).get(q, 0) for t, qs in cut.items() for q, stop in qs.items())
        start = cut
    assert (start, taken) == (end, 160)


def test_documents_have_one_order() -> None:
    queues = follower()
    document = queues.after({"b": {"10": 1, "9": 2}}, {"a": {"0": 1}, "b": {"2": 1}})
    assert str(document) == "{'a': {'0': 1}, 'b': {'2': 1, '9': 2, '10': 1}}"


def test_a_queue_that_got_shorter_is_an_error(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 100, queues=1)
        with pytest.raises(MissingLog, match="lost its last messages"):
            follow(reader(store=store.address), None, {"orders": {"0": 200}})
        with pytest.raises(MissingLog, match=r"Offsets 100 to 200 of queue 0 of topic orders"):
            batch_rows(reader(store=store.address), {"orders": {"0": 50}}, {"orders": {"0": 200}})
        stream = reader(("body",), store=store.address, failOnDataLoss="false")
        with pytest.warns(UserWarning, match="lost"):
            assert follow(stream, None, {"orders": {"0": 200}}) == [[]]


def test_expired_messages_are_an_error_or_left_out(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        for first in range(0, 3000, 500):
            send(client, "orders", first, 500, queues=1)
        store.stop()
        log_files(store.directory)[0].unlink()
        store.start()
        with pytest.raises(MissingLog, match="expired before they were read"):
            follow(reader(store=store.address), None, {"orders": {"0": 0}})
        stream = reader(("queue_offset",), store=store.address, failOnDataLoss="false")
        with pytest.warns(UserWarning, match="expired before"):
            found = together(follow(stream, None, {"orders": {"0": 0}}))
        first = stream.initialOffset()["orders"]["0"]
        assert first > 0
        assert [row["queue_offset"] for row in found] == list(range(first, 3000))


def test_a_flipped_byte_is_an_invalid_row(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 100, queues=1)
        with log_files(store.directory)[0].open("r+b") as file:
            file.seek(client.pull("orders", 0, 50).records[0].physical_offset + 88)
            file.write(b"X")
        found = together(follow(reader(("queue_offset", "is_valid"), store=store.address)))
        assert [row["queue_offset"] for row in found if not row["is_valid"]] == [50]
        assert len(found) == 100


def test_a_task_reads_on_through_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        StoreProcess(tmp_path / "store", max_pull_messages=10, grpc_port=free_port()) as store,
        store.client() as client,
    ):
        for first in range(0, 2000, 500):
            send(client, "orders", first, 500, queues=1)
        stream = reader(("queue_offset",), store=store.address)
        store.stop(signal.SIGKILL)
        monkeypatch.setattr(stream_queues, "TASK_PATIENCE_SECONDS", 200.0)
        starting = threading.Timer(1.0, store.start)  # the task has asked in vain before
        starting.start()
        try:
            found = batch_rows(stream, {"orders": {"0": 0}}, {"orders": {"0": 2000}})
        finally:
            starting.join()
        assert [row["queue_offset"] for row in found] == list(range(2000))
        store.stop()
        monkeypatch.setattr(stream_queues, "TASK_PATIENCE_SECONDS", 1.0)
        with pytest.raises(StoreUnreachable):
            batch_rows(stream, {"orders": {"0": 0}}, {"orders": {"0": 2000}})


def ask_until(stream: CommitLogStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """Ask for news until there are some."""
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline:
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        if end != start:
            return end
    return start


def test_a_store_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StoreProcess(tmp_path / "store", grpc_port=free_port()) as store, store.client() as client:
        send(client, "orders", 0, 10, queues=1)
        for options in ({"store": store.address}, {"store": store.address, "path": store.directory}):
            stream = reader(**options)
            start = stream.initialOffset()
            store.stop()
            with pytest.warns(UserWarning, match="does not answer"):
                assert stream.latestOffset(start, stream.getDefaultReadLimit()) == start
            with pytest.raises(ClientError, match=store.address):
                reader(**options).initialOffset()
            link = stream._follower._link  # type: ignore[attr-defined]
            patience = link._patience
            monkeypatch.setattr(link, "_patience", 0.7)
            with pytest.raises(StoreUnreachable, match=store.address):
                ask_until(stream, start)
            monkeypatch.setattr(link, "_patience", patience)
            store.start()
            end = ask_until(stream, start)
            assert len(batch_rows(stream, start, end)) == 10
            stream.stop()


def test_what_is_no_stream_of_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadJobOption, match="give it the path"):
        reader(store="127.0.0.1:1").partitions({"offset": 1}, {"offset": 2})
    with StoreProcess(tmp_path / "store") as store, pytest.raises(RequestFailed, match="no topic"):
        batch_rows(reader(store=store.address), {"nothing": {"0": 0}}, {"nothing": {"0": 2}})
