"""Watchers while tables change all the time: whole tables only, and in the end the right one."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.members.groups import GroupConfig, WatchedGroupTable
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.metasync_link import MetasyncLink
from tests.campaigns import in_campaigns
from tests.faults.proxy import Proxy
from tests.metasync_process import MetasyncProcess, wait_until

PLAIN = Dialer(ServerSettings(), None, "metasyncTlsTrustCertPath")
ALWAYS = {f"always-{at}" for at in range(50)}


def put(process: MetasyncProcess, *names: str) -> None:
    with process.stub() as stub:
        topics = [pb.TopicConfig(name=name, read_queues=2, write_queues=2) for name in names]
        stub.PutTopics(pb.PutTopicsRequest(topics=topics), wait_for_ready=True, timeout=60)


def transfers(stream: Any) -> Iterator[tuple[pb.TablePage, dict[str, pb.TopicConfig], list[str]]]:
    topics: dict[str, pb.TopicConfig] = {}
    deleted: list[str] = []
    for page in stream:
        topics |= {topic.name: topic for topic in page.topics}
        deleted += page.deleted
        if page.last:
            assert page.total == len(topics) + len(deleted)
            yield page, topics, deleted
            topics, deleted = {}, []


class Follower(threading.Thread):
    """A watcher that keeps a table, and every table that it ever had."""

    def __init__(self, process: MetasyncProcess) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.table: set[str] = set()
        self.counters: list[int] = []
        self.lost: list[set[str]] = []
        """Tables without those topics that were there all the time."""

    def run(self) -> None:
        with self.process.stub() as stub:
            try:
                for page, topics, deleted in transfers(stub.Watch(pb.WatchRequest(tables=[pb.TOPICS]))):
                    self.table = set(topics) if page.whole else (self.table - set(deleted)) | set(topics)
                    self.counters.append(page.version.counter)
                    if not self.table >= ALWAYS:
                        self.lost.append(self.table)
            except grpc.RpcError:
                return


@pytest.mark.timeout(300)
@pytest.mark.parametrize("topics", [100, *in_campaigns(500)])
def test_6424_9984_watchers_never_see_a_half_table_during_many_changes(
    master: MetasyncProcess, slave: MetasyncProcess, topics: int
) -> None:
    """On the master and on the slave, which takes over whole tables meanwhile."""
    put(master, *ALWAYS)
    wait_until(lambda: slave.names() == ALWAYS, "copied")
    followers = [Follower(process) for process in (master, master, slave, slave)]
    for follower in followers:
        follower.start()
    with master.stub() as stub:
        for at in range(topics):
            stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name=f"passing-{at}")]))
            stub.DeleteTopics(pb.DeleteTopicsRequest(names=[f"passing-{at - 5}"]))
    expected = ALWAYS | {f"passing-{at}" for at in range(topics - 5, topics)}
    for follower in followers:
        wait_until(lambda follower=follower: follower.table == expected, "the last table")  # type: ignore[misc]
        assert follower.lost == []
        assert follower.counters == sorted(follower.counters)


def opened(tmp_path: Path) -> WatchedTopicTable:
    root = tmp_path / "store"
    root.mkdir(exist_ok=True)
    return WatchedTopicTable(root, LocalDisk())


def names(table: WatchedTopicTable) -> set[str]:
    return {one.name for one in table.all()}


async def until(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"not in time: {what}"
        await asyncio.sleep(0.02)


async def test_the_store_s_table_follows_and_tells_what_it_created(master: MetasyncProcess, tmp_path: Path) -> None:
    put(master, "theirs", "both")
    table = opened(tmp_path)
    await table.add([TopicConfig("mine", 4, 4), TopicConfig("both", 4, 4)])
    link = MetasyncLink(master.address, table, PLAIN)
    link.start()
    await until(lambda: names(table) == {"theirs", "both", "mine"} and not table.waiting, "in step")
    assert table.get("both") == TopicConfig("both", 2, 2), "what the metadata service had counts"
    assert master.names() == {"theirs", "both", "mine"}
    await table.add([TopicConfig("later", 4, 4)])
    assert table.get("later") is not None
    await until(lambda: not table.waiting, "told")
    assert "later" in master.names()
    with master.stub() as stub:
        stub.DeleteTopics(pb.DeleteTopicsRequest(names=["theirs"]))
    await until(lambda: "theirs" not in names(table), "deleted here too")
    await link.close()
    assert not table.unsaved
    assert names(opened(tmp_path)) == {"both", "mine", "later"}


async def test_the_store_runs_on_without_metasync(master: MetasyncProcess, tmp_path: Path) -> None:
    put(master, "a")
    table = opened(tmp_path)
    link = MetasyncLink(master.address, table, PLAIN)
    link.start()
    await until(lambda: link.connected, "connected")
    master.stop()
    await until(lambda: not link.connected, "the loss is noticed")
    assert names(table) == {"a"}
    await table.add([TopicConfig("meanwhile", 4, 4)])
    assert names(opened(tmp_path)) == {"a", "meanwhile"}, "durable at once, without metasync"
    master.start()
    await until(lambda: link.connected and not table.waiting, "back, and told")
    assert master.names() == {"a", "meanwhile"}
    await link.close()


async def test_half_transfers_do_not_touch_the_store_s_table(master: MetasyncProcess, tmp_path: Path) -> None:
    many = {f"topic-{at}" for at in range(9_000)}
    put(master, *sorted(many))
    table = opened(tmp_path)
    seen: set[int] = set()
    with Proxy(master.address) as proxy:
        link = MetasyncLink(proxy.address, table, PLAIN)
        link.start()
        for cut in (1_000, 50_000, 200_000):
            proxy.reset_after(cut)
            await until(lambda: not link.connected, "cut")
            seen.add(len(names(table)))
        proxy.reset_after(1 << 40)
        await until(lambda: names(table) == many, "all of it")
        await link.close()
    assert seen <= {0, len(many)}


async def test_the_store_s_groups_follow_too(master: MetasyncProcess, tmp_path: Path) -> None:
    policy = '{"groupRetryPolicy":{"customizedRetryPolicy":{"next":[1,2,3000]},"type":"CUSTOMIZED"}}'
    with master.stub() as stub:
        theirs = pb.SubscriptionGroupConfig(name="theirs", retry_max_times=3, other_json=policy)
        stub.PutGroups(pb.PutGroupsRequest(groups=[theirs]))
    topics, groups = opened(tmp_path), WatchedGroupTable(tmp_path / "store", LocalDisk())
    deleted: list[frozenset[str]] = []
    groups.removed.listen(lambda: deleted.append(groups.gone))
    mine = GroupConfig("mine", retry_max_times=2, consume_message_orderly=True, attributes={"a": "b"})
    await groups.add([mine])
    link = MetasyncLink(master.address, topics, PLAIN, groups)
    link.start()
    await until(lambda: groups.get("theirs") and groups.get("mine") and not groups.waiting, "in step")
    assert groups.get("theirs") == GroupConfig("theirs", retry_max_times=3, retry_policy=(1, 2, 3000))
    assert groups.get("mine") == mine
    with master.stub() as stub:
        there = {one.name: one for one in stub.ListGroups(pb.ListGroupsRequest()).groups}
        assert (there["mine"].retry_max_times, there["mine"].consume_message_orderly) == (2, True)
        stub.DeleteGroups(pb.DeleteGroupsRequest(names=["theirs"]))
    await until(lambda: deleted == [frozenset({"theirs"})], "deleted here too")
    await link.close()
    again = WatchedGroupTable(tmp_path / "store", LocalDisk())
    assert {one.name for one in again.all()} == {one.name for one in groups.all()}
    assert again.get("mine") == mine
    assert again.gone == {"theirs"}, "until somebody has seen to it"
    again.settled({"theirs"})
    await again.save()
    assert WatchedGroupTable(tmp_path / "store", LocalDisk()).gone == frozenset()
