"""`tandem data inspect`: store directories in use, closed, written by Java, and damaged."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tests.golden import golden_store

FILE_SIZE = 64 << 10


def inspect(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tandemmq.cli.main", "inspect", str(directory), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr
    return done


def document(directory: Path) -> Any:
    return json.loads(inspect(directory, "--json").stdout)


async def fill(root: Path, messages: int = 300) -> MessageStore:
    """A small store with two topics, still open."""
    config = StoreConfig(
        root, mapped_file_size_commit_log=FILE_SIZE, mapped_file_size_consume_queue=2000, max_hash_slot_num=100,
        max_index_num=400, compiled_walker="never",
    )  # fmt: skip
    store = MessageStore.open(config)
    store.start()
    host = Host("127.0.0.1", 10911)
    for number in range(messages):
        topic = "orders" if number % 3 else "bills"
        properties = encode({"KEYS": f"key-{number}", "TAGS": "t"})
        store.append(Message(topic, number % 2, b"x" * 400, properties, born_host=host, store_host=host))
        await asyncio.sleep(0)
    return store


async def filled(root: Path) -> Path:
    """The same, closed."""
    await (await fill(root)).close()
    return root


async def test_a_store_that_was_closed(tmp_path: Path) -> None:
    found = document(await filled(tmp_path / "s"))
    assert (found["records"], found["in_use"], found["clean_exit"]) == (300, False, True)
    assert (found["min_offset"], found["damage"], found["problems"]) == (0, [], [])
    assert found["first_record"]["queue_offset"] == 0
    assert found["last_record"]["keys"] == ["key-299"]
    messages = {topic["topic"]: sum(queue["messages"] for queue in topic["queues"]) for topic in found["topics"]}
    assert messages == {"bills": 100, "orders": 200}
    assert sum(one["entries"] for one in found["index"]) == 300


async def test_in_words(tmp_path: Path) -> None:
    told = inspect(await filled(tmp_path / "s"))
    assert told.returncode == 0
    assert "closed cleanly" in told.stdout
    assert ["orders", "1", "0", "100", "100"] in [line.split()[:5] for line in told.stdout.splitlines()]
    assert "No damage" in told.stdout


def test_a_directory_of_nodes_names_the_stores_in_it(tmp_path: Path) -> None:
    for name in ("slave", "master", "demo/master"):
        (tmp_path / name / "commitlog").mkdir(parents=True)
    told = inspect(tmp_path)
    assert told.returncode == 1
    stores = f"{tmp_path}/master, {tmp_path}/slave, {tmp_path}/demo/master"
    assert f"(There are stores in it: {stores}.)" in told.stderr


async def test_a_store_in_use_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    store = await fill(tmp_path / "s")
    told = await asyncio.to_thread(inspect, tmp_path / "s", "--json")
    assert told.returncode == 0
    assert json.loads(told.stdout)["in_use"] is True
    await store.close()
    assert document(tmp_path / "s")["in_use"] is False


async def test_nothing_is_changed(tmp_path: Path) -> None:
    root = await filled(tmp_path / "s")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}
    inspect(root)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()} == before


async def test_a_flipped_bit_is_damage_and_the_records_behind_it_are_counted(tmp_path: Path) -> None:
    root = await filled(tmp_path / "s")
    log = root / "commitlog" / f"{0:020d}"
    whole = bytearray(log.read_bytes())
    begin = 0
    for _ in range(10):
        begin += int.from_bytes(whole[begin : begin + 4], "big")
    whole[begin + 200] ^= 1
    log.write_bytes(whole)
    told = inspect(root, "--json")
    found = json.loads(told.stdout)
    assert told.returncode == 1
    assert [(one["kind"], one["begin_offset"]) for one in found["damage"]] == [("rot", begin)]
    assert found["records"] == 299
    in_words = inspect(root)
    assert in_words.returncode == 1
    assert f"damage: rot at log offsets {begin:,}-" in in_words.stdout


async def test_a_torn_end_is_damage(tmp_path: Path) -> None:
    root = await filled(tmp_path / "s")
    end = document(root)["max_offset"]
    log = root / "commitlog" / f"{end - end % FILE_SIZE:020d}"
    with log.open("r+b") as file:
        file.seek(end % FILE_SIZE)
        file.write(bytes.fromhex("000001F4DAA320A7") + b"half a record")
    told = inspect(root, "--json")
    assert told.returncode == 1
    assert [one["kind"] for one in json.loads(told.stdout)["damage"]] == ["torn"]


async def test_a_lost_queue_is_a_problem(tmp_path: Path) -> None:
    root = await filled(tmp_path / "s")
    shutil.rmtree(root / "consumequeue" / "bills")
    told = inspect(root, "--json")
    assert told.returncode == 1
    assert "100 units are missing" in json.loads(told.stdout)["problems"][0]


def test_what_is_no_store(tmp_path: Path) -> None:
    told = inspect(tmp_path)
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith("tandem: ")
    assert "no store directory" in told.stderr
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.golden
def test_a_store_that_java_wrote() -> None:
    store = next(path.parent for path in golden_store("clean").rglob("commitlog"))
    found = document(store)
    assert found["records"] > 0
    assert (found["damage"], found["problems"]) == ([], [])
