"""The topic table: RocketMQ's file, read tolerantly, written safely, never mistaken for an empty one."""

import json
import os
from pathlib import Path

import pytest

from tandemmq.common.documents import java_json
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tests.unit.broker.broker_kit import SetClock

JAVA = b"""{
\t"dataVersion":{
\t\t"counter":7,
\t\t"stateVersion":0,
\t\t"timestamp":1700000000000
\t},
\t"futureTable":{0:{"a":-1}, 12:"3:4"},
\t"topicConfigTable":{
\t\t"orders":{
\t\t\t"attributes":{"+message.type":"NORMAL"},
\t\t\t"order":false,
\t\t\t"perm":6,
\t\t\t"readQueueNums":8,
\t\t\t"topicFilterType":"SINGLE_TAG",
\t\t\t"topicName":"orders",
\t\t\t"topicSysFlag":0,
\t\t\t"writeQueueNums":4
\t\t}
\t}
}"""


def table(root: Path, disk: LocalDisk | None = None) -> LocalTopicTable:
    return LocalTopicTable(root, disk or LocalDisk(), SetClock(5))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "topics.json"
    file.write_bytes(JAVA)
    return file


async def test_a_file_of_javas_is_read_and_its_unknown_fields_are_kept(tmp_path: Path, written: Path) -> None:
    topics = table(tmp_path)
    orders = topics.get("orders")
    assert orders is not None
    assert (orders.read_queues, orders.write_queues, orders.readable, orders.writable) == (8, 4, True, True)
    await topics.add([TopicConfig("bills", 2, 2)])
    document = json.loads(written.read_bytes())
    assert document["futureTable"] == {"0": {"a": -1}, "12": "3:4"}
    assert document["dataVersion"] == {"counter": 8, "stateVersion": 0, "timestamp": 5}
    assert document["topicConfigTable"]["orders"] == json.loads(JAVA[JAVA.index(b'"orders":') + 9 : -3])
    assert document["topicConfigTable"]["bills"]["readQueueNums"] == 2
    assert java_json.loads((tmp_path / "config" / "topics.json.bak").read_bytes()) == java_json.loads(JAVA)
    again = table(tmp_path)
    assert {topic.name for topic in again.all()} == {"orders", "bills"}


def test_bare_integer_keys_are_quoted_and_strings_left_alone() -> None:
    text = b'{"a {1:2}":{0:12,-1 : {"x":"\\"{3:4"}},"l":[1,2]}'
    assert java_json.loads(text) == {"a {1:2}": {"0": 12, "-1": {"x": '"{3:4'}}, "l": [1, 2]}


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    assert list(table(tmp_path).all()) == []
    assert not (tmp_path / "config").exists(), "reading writes nothing"


BAD = {
    "empty": b"",
    "cut": JAVA[:100],
    "not UTF-8": b"\xff" + JAVA,
    "a list": b"[]",
    "no table": b'{"dataVersion":{}}',
    "table is null": b'{"topicConfigTable":null}',
    "topic is a number": b'{"topicConfigTable":{"a":1}}',
    "queues are a text": b'{"topicConfigTable":{"a":{"readQueueNums":"8"}}}',
    "queues are negative": b'{"topicConfigTable":{"a":{"readQueueNums":-8}}}',
}


@pytest.mark.parametrize("name", BAD)
def test_an_unreadable_file_is_refused_or_its_back_up_taken(tmp_path: Path, written: Path, name: str) -> None:
    written.write_bytes(BAD[name])
    with pytest.raises(UnreadableTable, match=r"topics\.json"):
        table(tmp_path)
    backup = written.with_name("topics.json.bak")
    backup.write_bytes(JAVA)
    assert table(tmp_path).get("orders") is not None
    backup.write_bytes(b"{")
    with pytest.raises(UnreadableTable):
        table(tmp_path)
    assert written.read_bytes() == BAD[name], "left for people to look at"


def test_a_missing_file_with_a_back_up(tmp_path: Path, written: Path) -> None:
    """What RocketMQ leaves when it dies between its two renames."""
    written.rename(written.with_name("topics.json.bak"))
    assert table(tmp_path).get("orders") is not None


class FailingDisk(LocalDisk):
    """A disk on which the n-th operation that changes something fails."""

    def __init__(self, fail_at: int) -> None:
        self.left = fail_at

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(28, os.strerror(28))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        self._count()
        super().pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def sync_dir(self, path: Path) -> None:
        self._count()
        super().sync_dir(path)


@pytest.mark.parametrize("fail_at", range(1, 9))
async def test_whatever_fails_a_whole_table_is_left(tmp_path: Path, written: Path, fail_at: int) -> None:
    topics = table(tmp_path, FailingDisk(fail_at))
    with pytest.raises(TableNotSaved, match="No space"):
        await topics.add([TopicConfig("bills", 2, 2)])
    assert topics.get("bills") is None, "in memory the old one"
    after = {topic.name for topic in table(tmp_path).all()}
    assert "orders" in after, "on disk the old or the new one, never half of one"
    await topics.add([TopicConfig("bills", 2, 2)])
    assert {topic.name for topic in table(tmp_path).all()} == {"orders", "bills"}
