"""The worked examples of docs/spark.md, run word for word but for the directories and the address."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tandemmq.client import Outgoing, StoreClient
from tests.contract.store_process import StoreProcess
from tests.spark.test_stream_files import filled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
EXAMPLES: dict[str, str] = dict(re.findall(r"<!-- example: (\w+) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL))

EMBEDDED = {
    "mapped_file_size_commit_log": 64 << 20,
    "mapped_file_size_consume_queue": 6_000_000,
    "max_hash_slot_num": 500_000,
    "max_index_num": 2_000_000,
}
"""The sizes of a store that `tandem store` makes on a laptop: the command tells them from the log's."""


def example(name: str, root: Path, address: str = "") -> str:
    """The text of an example, about directories under ``root``."""
    return EXAMPLES[name].replace("/data/", f"{root}/").replace("localhost:8081", address)


def run(name: str, root: Path, session: "SparkSession", address: str = "") -> dict[str, Any]:
    """The names that an example in Python leaves."""
    names: dict[str, Any] = {"spark": session}
    exec(compile(example(name, root, address), f"docs/spark.md, example {name}", "exec"), names)
    return names


def commands(name: str, root: Path) -> list[list[str]]:
    """The commands of an example, `tandem` by this interpreter."""
    lines = [line.removeprefix("$ ").split() for line in example(name, root).splitlines()]
    return [
        [sys.executable, "-m", "tandemmq.cli.main", *line[1:]] if line[0] == "tandem" else line
        for line in lines
        if line
    ]


def messages(client: StoreClient) -> int:
    """How many messages a store has in its queues."""
    return sum(queue.max_offset for topic in client.queues().topics for queue in topic.queues)


def test_every_example_is_run() -> None:
    assert set(EXAMPLES) == {"key", "topics", "rebuild", "follow"}


def test_find_a_message_by_key_in_a_copied_log(
    tmp_path: Path, session: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    with filled(tmp_path / "live") as store, store.client() as client:
        client.send("orders", b"seventeen", keys=["order-17", "customer-4"])
        client.send("orders", b"eighteen", keys=["order-18"])
    shutil.copytree(store.directory / "commitlog", tmp_path / "copy" / "commitlog")
    names = run("key", tmp_path, session)
    assert [(row["topic"], row["body"]) for row in names["found"].collect()] == [("orders", b"seventeen")]
    assert "orders" in capsys.readouterr().out


def test_top_topics_by_bytes(tmp_path: Path, session: "SparkSession", capsys: pytest.CaptureFixture[str]) -> None:
    with filled(tmp_path / "live") as store, store.client() as client:
        for _ in range(10):
            client.send_encoded([Outgoing("large", bytes(1000)) for _ in range(50)])
    shutil.copytree(store.directory, tmp_path / "store")
    found = run("topics", tmp_path, session)["top"].collect()
    assert found[0]["topic"] == "large"
    assert found[0]["sum(size)"] > 500_000
    assert [row["sum(size)"] for row in found] == sorted((row["sum(size)"] for row in found), reverse=True)
    assert "large" in capsys.readouterr().out


def test_rebuild_what_was_lost(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")
    with StoreProcess(tmp_path / "store", **EMBEDDED) as store, store.client() as client:
        client.send_encoded([Outgoing("orders", b"one", keys=[f"order-{number}"]) for number in range(1000)])
        assert messages(client) == 1000  # dispatched, so on disk
    before = {path: path.read_bytes() for path in (tmp_path / "store" / "consumequeue").glob("*/*/*")}
    assert before
    for command in commands("rebuild", tmp_path):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    assert {path: path.read_bytes() for path in (tmp_path / "store" / "consumequeue").glob("*/*/*")} == before


def test_follow_a_live_store_into_parquet(tmp_path: Path, session: "SparkSession") -> None:
    with filled(tmp_path / "store") as store, store.client() as client:
        query = run("follow", tmp_path, session, store.address)["query"]
        try:
            client.send("late", b"after the query began")
            query.processAllAvailable()
        finally:
            query.stop()
        found = session.read.parquet(str(tmp_path / "parquet"))
        assert found.where("topic = 'late'").collect()[0]["body"] == b"after the query began"
        assert found.select("topic", "queue_id", "queue_offset").distinct().count() == found.count() == messages(client)
