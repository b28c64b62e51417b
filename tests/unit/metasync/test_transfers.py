"""Tables as pages and back, whole or not at all; what watchers get."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.metadata.transfers import BrokenTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import MetasyncStopping
from tandemmq.metasync.offset_tables import GroupQueueOffsets
from tandemmq.metasync.tables import Content, TableKind
from tandemmq.metasync.translate import (
    content_of,
    group_entry,
    group_message,
    pages,
    table_pages,
    topic_entry,
    topic_message,
)
from tandemmq.metasync.watchers import MOST_WAITING, Hub

VERSION = DataVersion(1, 2, 3)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
topic_entries = st.fixed_dictionaries(
    {
        "topicName": names,
        "readQueueNums": st.integers(0, 9) | json_values,
        "writeQueueNums": st.integers(0, 9),
        "perm": st.integers(0, 7) | json_values,
        "order": st.booleans(),
        "topicSysFlag": st.integers(0, 3),
        "topicFilterType": st.sampled_from(["SINGLE_TAG", "MULTI_TAG", "NEW_ONE"]) | json_values,
        "attributes": st.dictionaries(names, names, max_size=2) | json_values,
    },
    optional={"unknownField": json_values, "message.type": json_values},
)


def through(kind: TableKind, content: Content) -> Content:
    taking, transfer = table_pages(kind), None
    for page in pages(kind, content):
        assert transfer is None
        transfer = taking.take(pb.TablePage.FromString(page.SerializeToString()))
    assert transfer is not None
    return content_of(transfer)


@pytest.mark.slow
@given(st.dictionaries(names, topic_entries, max_size=3), st.dictionaries(names, json_values, max_size=2))
def test_9403_9404_9547_topics_come_through_as_they_are(entries: dict[str, Any], other: dict[str, Any]) -> None:
    """Whatever the master has: nothing is held to the rules that clients are held to. Java's validator refuses plain
    attributes when the slave re-adds its topics, after it has deleted them."""
    content = Content(VERSION, entries, other)
    assert through(TableKind.TOPICS, content) == content


def test_attributes_and_unknown_fields_of_groups_come_through() -> None:
    entry = group_entry(pb.SubscriptionGroupConfig(name="G", attributes={"plain": "x"}), None)
    entry |= {"groupRetryPolicy": {"type": "CUSTOMIZED"}, "subscriptionDataSet": [], "retryMaxTimes": 1 << 40}
    content = Content(VERSION, {"G": entry}, {"forbiddenTable": {"G": {"T": 1}}})
    assert through(TableKind.SUBSCRIPTION_GROUPS, content) == content


offsets = st.dictionaries(st.integers(0, 5), st.integers(-1, 1 << 62), max_size=3)


@given(
    st.dictionaries(st.builds("{}@{}".format, names, names), st.builds(GroupQueueOffsets, offsets, offsets), max_size=4)
)
def test_offsets_come_through(entries: dict[str, GroupQueueOffsets]) -> None:
    content = Content(VERSION, entries)
    assert through(TableKind.CONSUMER_OFFSETS, content) == content


def test_delay_offsets_come_through() -> None:
    content = Content(VERSION, {"1": 27, "18": 1 << 40})
    assert through(TableKind.DELAY_OFFSETS, content) == content


def large(count: int) -> Content:
    entry = topic_entry(pb.TopicConfig(name="t", attributes={"message.type": "FIFO"}), None)
    return Content(VERSION, {f"topic-{at}": {**entry, "topicName": f"topic-{at}"} for at in range(count)})


@pytest.mark.slow
def test_9616_size_is_no_limit_and_10195_all_pages_are_of_one_version() -> None:
    """Java's table is one frame of at most 16 MiB, its pages begin anew whenever the version changes between them."""
    content = large(30_000)
    found = list(pages(TableKind.TOPICS, content))
    assert len(found) > 5
    assert max(page.ByteSize() for page in found) < 512 * 1024
    assert {page.version.counter for page in found} == {3}
    assert through(TableKind.TOPICS, content) == content


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1, -1])
def test_a_table_with_a_page_missing_is_none(lost: int) -> None:
    found = list(pages(TableKind.TOPICS, large(20_000)))
    assert len(found) >= 3
    del found[lost]
    taking = table_pages(TableKind.TOPICS)
    try:
        outcome = [taking.take(page) for page in found]
    except BrokenTransfer:
        return
    assert lost == -1, "the stream ends before the last page"
    assert not any(outcome)


def page(**fields: Any) -> pb.TablePage:
    version = pb.DataVersion(counter=1)
    return pb.TablePage(**{"table": pb.TOPICS, "version": version, "whole": True, "last": True, **fields})


@pytest.mark.parametrize(
    "bad",
    [
        page(table=pb.DELAY_OFFSETS),
        page(whole=False),
        page(total=1),
        page(total=1, topics=[pb.TopicConfig(name="a", other_json="{")]),
        page(total=1, topics=[pb.TopicConfig(name="a", other_json="[1]")]),
        page(other_json="[]"),
        page(total=2, topics=[pb.TopicConfig(name="a"), pb.TopicConfig(name="a")]),
    ],
)
def test_pages_that_make_no_sense(bad: pb.TablePage) -> None:
    with pytest.raises(BrokenTransfer):
        content_of(table_pages(TableKind.TOPICS).take(bad) or pytest.fail("it was no whole transfer"))


def test_what_a_client_gives_is_what_it_gets() -> None:
    asked = pb.TopicConfig(name="T", read_queues=3, write_queues=2, perm=4, order=True, filter_type=pb.MULTI_TAG)
    asked.attributes["message.type"] = "FIFO"
    asked.other_json = '{"x": 1}'
    entry = topic_entry(asked, None)
    answered = topic_message("T", entry)
    assert topic_entry(answered, None) == entry
    assert json.loads(answered.other_json) == {"x": 1}
    kept = topic_entry(pb.TopicConfig(name="T"), entry)
    assert (kept["x"], kept["readQueueNums"], kept["writeQueueNums"], kept["perm"]) == (1, 16, 16, 6)
    assert "x" not in topic_entry(pb.TopicConfig(name="T", other_json=""), entry)


def test_defaults_are_rocketmq_s() -> None:
    made = group_message("G", group_entry(pb.SubscriptionGroupConfig(name="G"), None))
    assert (made.retry_queues, made.retry_max_times, made.which_broker_when_consume_slowly) == (1, 16, 1)
    assert made.consume_enable
    assert made.consume_broadcast_enable
    assert made.consume_from_min_enable
    assert made.notify_consumer_ids_changed_enable
    assert made.consume_timeout_minutes == 15
    assert made.other_json == ""


async def test_a_watcher_gets_the_table_then_the_keys_that_changed() -> None:
    hub = Hub()
    watcher = hub.join([TableKind.TOPICS])
    hub.tell(TableKind.TOPICS, ["early"])
    assert await watcher.next() == (TableKind.TOPICS, None)
    for _ in range(1_000):
        hub.tell(TableKind.TOPICS, ["a"])
    hub.tell(TableKind.TOPICS, ["b"])
    hub.tell(TableKind.DELAY_OFFSETS, ["1"])
    assert await watcher.next() == (TableKind.TOPICS, {"a", "b"})


async def test_a_slow_watcher_gets_the_whole_table_and_no_endless_backlog() -> None:
    hub = Hub()
    watcher = hub.join([TableKind.TOPICS])
    await watcher.next()
    for at in range(MOST_WAITING + 1):
        hub.tell(TableKind.TOPICS, [str(at)])
    assert await watcher.next() == (TableKind.TOPICS, None)
    hub.tell(TableKind.TOPICS, ["next"])
    assert await watcher.next() == (TableKind.TOPICS, {"next"})
    hub.stop()
    with pytest.raises(MetasyncStopping):
        await watcher.next()
    with pytest.raises(MetasyncStopping):
        await hub.join([TableKind.TOPICS]).next()
    hub.leave(watcher)
