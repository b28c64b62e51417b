"""The store's copy of the topic table: what it creates is durable at once, what metasync says replaces it whole."""

import asyncio
import errno
import threading
from pathlib import Path

import pytest

from tandemmq.common.documents.java_json import loads
from tandemmq.metadata.transfers import BrokenTransfer, TablePages
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.metasync_link import topics_of


class BrokenDisk(LocalDisk):
    """A disk that is full, when told so."""

    full = False

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().pwrite(fd, data, offset)


def topic(name: str, queues: int = 4) -> TopicConfig:
    return TopicConfig(name, queues, queues)


def names(table: WatchedTopicTable) -> set[str]:
    return {one.name for one in table.all()}


def opened(root: Path) -> WatchedTopicTable:
    return WatchedTopicTable(root, LocalDisk())


async def test_it_begins_with_what_config_topics_json_says(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "topics.json").write_text('{"topicConfigTable":{"a":{"readQueueNums":2,"writeQueueNums":2,"new":1}}}')
    before = (config / "topics.json").read_bytes()
    table = opened(tmp_path)
    assert names(table) == {"a"}
    await table.save()
    assert (config / "topics.json").read_bytes() == before
    (config / "topics.json").write_text("{")
    assert names(opened(tmp_path)) == {"a"}, "from now on its own copy counts"


def test_it_begins_with_the_backup_of_a_bad_table_and_never_with_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (config / "topics.json").write_text("")
    with pytest.raises(UnreadableTable, match=r"topics\.json"):
        opened(tmp_path)
    (config / "topics.json.bak").write_text('{"topicConfigTable":{"a":{}}}')
    assert names(opened(tmp_path)) == {"a"}


def test_an_unreadable_copy_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "tandem.topics").write_text("")
    with pytest.raises(UnreadableTable, match=r"tandem\.topics"):
        opened(tmp_path).get("a")


async def test_what_is_added_is_durable_at_once_and_waits(tmp_path: Path) -> None:
    table = opened(tmp_path)
    told: list[bool] = []
    table.added.listen(lambda: told.append(True))
    await table.add([topic("a"), topic("b")])
    await table.add([])
    assert told == [True]
    again = opened(tmp_path)
    assert names(again) == {"a", "b"}
    assert again.waiting == [topic("a"), topic("b")]


async def test_a_full_disk_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    disk = BrokenDisk()
    table = WatchedTopicTable(tmp_path, disk)
    await table.add([topic("a")])
    disk.full = True
    with pytest.raises(TableNotSaved, match="No space left"):
        await table.add([topic("b")])
    assert names(table) == {"a"}
    table.replace([topic("c")], "1")
    with pytest.raises(TableNotSaved):
        await table.save()
    assert table.unsaved
    disk.full = False
    await table.save()
    assert names(opened(tmp_path)) == {"a", "c"}


async def test_a_whole_table_replaces_all_but_what_waits(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.replace([topic("old"), topic("kept")], "0/1/1")
    await table.add([topic("mine"), topic("both", 4)])
    table.replace([topic("kept", 8), topic("both", 2)], "0/2/2")
    assert names(table) == {"kept", "mine", "both"}
    assert table.get("kept") == topic("kept", 8)
    assert table.get("both") == topic("both", 2), "the metadata service has it: its configuration counts"
    assert [one.name for one in table.waiting] == ["mine"]
    table.accepted([topic("mine", 16)])
    assert table.waiting == []
    assert table.get("mine") == topic("mine", 16)


async def test_changes(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.replace([topic("a"), topic("b")], "0/1/1")
    await table.add([topic("mine")])
    table.change([topic("c")], ["a", "mine", "nobody"], "0/2/2")
    assert names(table) == {"b", "c", "mine"}
    table.change([topic("mine", 9)], [], "0/3/3")
    assert table.waiting == []
    await table.save()
    document = loads((tmp_path / "tandem.topics").read_bytes())
    assert document["version"] == "0/3/3"
    assert set(document["topicConfigTable"]) == {"b", "c", "mine"}


def page(*topics: pb.TopicConfig) -> pb.TablePage:
    total = len(topics)
    return pb.TablePage(
        table=pb.TOPICS, version=pb.DataVersion(counter=1), whole=True, last=True, total=total, topics=topics
    )


def test_a_whole_table_of_the_metadata_service_is_applied(tmp_path: Path) -> None:
    table = opened(tmp_path)
    followed = topics_of(table)
    pages = TablePages({followed.kind: followed.read_page})
    transfer = pages.take(page(pb.TopicConfig(name="a"), pb.TopicConfig(name="b")))
    assert transfer is not None
    followed.apply(transfer)
    assert names(table) == {"a", "b"}
    assert table.get("a") == topic("a", 16)


def test_a_topic_that_makes_no_sense(tmp_path: Path) -> None:
    followed = topics_of(opened(tmp_path))
    with pytest.raises(BrokenTransfer):
        TablePages({followed.kind: followed.read_page}).take(page(pb.TopicConfig(name="a", read_queues=-1)))


class HeldDisk(LocalDisk):
    """A disk whose syncs wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.reached = threading.Event()
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.reached.set()
        self.syncs += 1
        assert self.go_on.wait(60)
        super().sync(fd)


async def test_a_slow_disk_holds_up_who_makes_topics_and_nobody_else(tmp_path: Path) -> None:
    disk = HeldDisk()
    table = WatchedTopicTable(tmp_path, disk)
    table.replace([topic("known")], "0/1/1")
    saving = asyncio.create_task(table.save())
    await asyncio.to_thread(disk.reached.wait, 60)
    adding = [asyncio.create_task(table.add([topic("new"), topic(f"new{number}")])) for number in range(50)]
    await asyncio.sleep(0)
    table.change([topic("other")], [], "0/2/2")  # the loop goes on: it is not held by the thread that writes
    assert names(table) == {"known", "other"}, "what is not durable is not there"
    disk.go_on.set()
    async with asyncio.timeout(60):
        await asyncio.gather(saving, *adding)
    assert disk.syncs == 2, "all that came meanwhile were written together"
    again = opened(tmp_path)
    assert {"new", "new0", "new49"} <= names(again)
    assert len(again.waiting) == 51


async def test_what_the_metadata_service_says_while_a_topic_is_written_counts(tmp_path: Path) -> None:
    disk = HeldDisk()
    table = WatchedTopicTable(tmp_path, disk)
    adding = asyncio.create_task(table.add([topic("both"), topic("mine")]))
    await asyncio.to_thread(disk.reached.wait, 60)
    table.replace([topic("both", 9)], "0/1/1")
    disk.go_on.set()
    await asyncio.wait_for(adding, 60)
    assert table.get("both") == topic("both", 9)
    assert [one.name for one in table.waiting] == ["mine"]
    assert table.unsaved
    await table.save()
    again = opened(tmp_path)
    assert again.get("both") == topic("both", 9)
    assert [one.name for one in again.waiting] == ["mine"]
