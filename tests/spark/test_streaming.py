"""Streams in Spark: what arrives in a sink is what the log holds, each message once."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.store_process import StoreProcess
from tests.faults.harness import records_on_disk
from tests.golden import golden_store
from tests.spark.streams import GAVE_UP, STARTS, Load, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PATIENCE = 300


@pytest.fixture(autouse=True)
def _registered(session: "SparkSession") -> None:
    from tandemmq.spark.data_source import CommitLogDataSource

    session.dataSource.register(CommitLogDataSource)


def stream(session: "SparkSession", **options: object) -> "DataFrame":
    reading = session.readStream.format("commitlog")
    for name, value in options.items():
        reading = reading.option(name, str(value))
    return reading.load()


@contextmanager
def running(frame: "DataFrame", place: Path, **trigger: Any) -> "Iterator[StreamingQuery]":
    """A query into Parquet below ``place``, stopped at the end."""
    writing = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = _started(writing.trigger(**trigger) if trigger else writing, str(place / "out"))
    try:
        yield query
    finally:
        query.stop()


def _started(writing: "DataStreamWriter", out: str) -> "StreamingQuery":
    """The query, once its source is there or has failed."""
    query = writing.start(out)
    for _ in range(STARTS):
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(0.02)
        if GAVE_UP not in str(query.exception()):
            break
        query = writing.start(out)
    return query


def read_now(frame: "DataFrame", place: Path) -> "list[dict[str, Any]]":
    """Run a query over all there is now; the progress of its micro-batches."""
    with running(frame, place, availableNow=True) as query:
        assert query.awaitTermination(PATIENCE)
        return [dict(json.loads(progress.json)) for progress in query.recentProgress]


def bodies(session: "SparkSession", place: Path) -> list[int]:
    """The numbers in the bodies that have arrived."""
    if not (place / "out" / "_spark_metadata").is_dir():
        return []
    return [int(row["body"]) for row in session.read.schema("body binary").parquet(str(place / "out")).collect()]


def wait_until(condition: Callable[[], object], query: "StreamingQuery") -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        failure = query.exception()
        assert failure is None, failure
        time.sleep(0.05)


@pytest.mark.golden
@pytest.mark.slow
def test_a_log_arrives_once_and_whole(session: "SparkSession", tmp_path: Path) -> None:
    root = golden_store("clean") / "store"
    found = list(records_on_disk(root))
    wanted = [(offset, record.topic, record.queue_offset, record.body) for offset, _, record in found]
    end = found[-1][0] + len(found[-1][1])
    frame = stream(session, path=root, columns="physical_offset,topic,queue_offset,body", maxOffsetsPerTrigger=5000)
    progress = read_now(frame, tmp_path)
    assert max(batch["numInputRows"] for batch in progress) == 5000
    arrived = session.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row[0], row[1], row[2], bytes(row[3])) for row in arrived) == wanted
    assert sum(batch["numInputRows"] for batch in read_now(frame, tmp_path)) == 0, "nothing is new"
    source = progress[-1]["sources"][0]
    assert source["endOffset"] == source["latestOffset"] == {"offset": end}


def test_a_live_store_is_followed(session: "SparkSession", tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        load = Load(store.address, "orders")
        load.start()
        frame = stream(session, path=store.directory, store=store.address, columns="body,topic")
        with running(frame, tmp_path) as query:
            wait_until(lambda: len(load.sent) > 2000, query)
            load.stop()
            wait_until(lambda: set(bodies(session, tmp_path)) >= load.sent, query)
        assert Counter(bodies(session, tmp_path)) == Counter(load.sent)


@pytest.mark.slow
def test_a_store_is_followed_over_the_network(session: "SparkSession", tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        load = Load(store.address, "orders", pause=0.02)
        load.start()
        frame = stream(session, store=store.address, columns="body", maxOffsetsPerTrigger=3000)
        with running(frame, tmp_path) as query:
            wait_until(lambda: len(load.sent) > 500, query)
            load.stop()
            with store.client() as client:
                send(client, "later", 1_000_000, 100)
            wanted = load.sent | set(range(1_000_000, 1_000_100))
            wait_until(lambda: set(bodies(session, tmp_path)) >= wanted, query)
        assert Counter(bodies(session, tmp_path)) == Counter(wanted)


def ways(store: StoreProcess) -> dict[str, dict[str, object]]:
    """Options to read from a store's files, and over the network."""
    return {"files": {"path": store.directory, "store": store.address}, "network": {"store": store.address}}


def by_place(frame: "DataFrame") -> "list[Row]":
    return sorted(frame.collect(), key=lambda row: row["physical_offset"])


@pytest.mark.slow
def test_a_stream_has_the_rows_of_the_table(session: "SparkSession", tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        for first in range(0, 2000, 500):
            send(client, "orders", first, 500, queues=3)
        send(client, "payments", 0, 100)
        table = session.read.format("commitlog").option("store", store.address).load(str(store.directory))
        wanted = by_place(table)
        for way, options in ways(store).items():
            progress = read_now(stream(session, maxOffsetsPerTrigger=1300, **options), tmp_path / way)
            assert [batch["numInputRows"] for batch in progress if batch["numInputRows"]] == [1300, 800]
            arrived = session.read.schema(table.schema).parquet(str(tmp_path / way / "out"))
            assert by_place(arrived) == wanted


@pytest.mark.slow
def test_options_of_the_table_are_those_of_the_stream(session: "SparkSession", tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 500)
        send(client, "payments", 0, 100)
        for way, options in ways(store).items():
            frame = stream(session, topic="orders", where="queue_offset < 10", columns="queue_id,topic", **options)
            read_now(frame, tmp_path / way)
            arrived = session.read.parquet(str(tmp_path / way / "out"))
            assert arrived.columns == ["queue_id", "topic"]
            assert Counter(arrived.collect()) == {(0, "orders"): 10, (1, "orders"): 10}


@pytest.mark.slow
def test_what_cannot_be_read_fails_the_query_and_says_why(session: "SparkSession", tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        send(client, "orders", 0, 500)
        read_now(stream(session, path=store.directory, columns="body"), tmp_path / "query")
        with pytest.raises(StreamingQueryException, match="give it the path, as before"):
            read_now(stream(session, store=store.address, columns="body"), tmp_path / "query")
        address = store.address
    with pytest.raises(StreamingQueryException, match=f"store at {address} does not answer"):
        read_now(stream(session, store=address, columns="body"), tmp_path / "other")
    with pytest.raises(StreamingQueryException, match="A stream has no endingOffsets"):
        read_now(stream(session, store=address, endingOffsets=5), tmp_path / "third")
