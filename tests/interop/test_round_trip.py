"""A store goes from ours to RocketMQ and back, twice, and each shows what the other has stored."""

from pathlib import Path

import pytest

from tandemmq.store.broker.topics import LocalTopicTable
from tandemmq.store.delivery.journal.journal_format import JOURNAL_TOPIC
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import StoreLocked
from tandemmq.store.log.message_store import MessageStore
from tests.interop.messages import (
    TOPICS,
    Contents,
    Sent,
    Source,
    contents_at,
    found_at_rocketmq,
    own_keys,
    send_to_ours,
    send_to_rocketmq,
    viewed_by_id,
)
from tests.interop.ours import config_of, inspect, service
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]


def write_ours(root: Path, seed: int, number: int, *more_topics: str) -> list[Sent]:
    """Our service takes messages and is stopped cleanly."""
    with service(root, auto_create_topic_enable=not more_topics) as store:
        with store.client() as client:
            sent = list(send_to_ours(client, Source(seed, [*TOPICS, *more_topics]), number))
        assert store.stop() == 0
    return sent


def compare(remoting: Remoting, ours: Contents, sent: list[Sent]) -> None:
    """RocketMQ shows what we show: by queue, by id, by key."""
    theirs = contents_at(remoting, list(ours.queues))
    theirs.be_whole()
    theirs.be_the_same_as(ours)
    viewed_by_id(remoting, sent[::5])
    sample = sent[::7]
    assert found_at_rocketmq(remoting, sample) == own_keys(sample)


def inspect_clean(root: Path, sent: list[Sent]) -> Contents:
    """Ours opens what was closed cleanly: nothing is missing, nothing is repaired."""
    report, contents = inspect(root, sent)
    assert report.clean_exit
    assert (report.cut_bytes, report.damage, report.queues_to_rebuild, report.notes) == (0, [], 0, [])
    assert report.index_complete
    contents.be_whole()
    contents = Contents({key: queue for key, queue in contents.queues.items() if key[0] != JOURNAL_TOPIC})
    assert contents.count == len(sent)
    assert not (root / "broken").exists()
    return contents


def topics_of_file(root: Path) -> dict[str, tuple[int, int, int]]:
    """The topic table as ours reads it: read queues, write queues, permissions."""
    table = LocalTopicTable(root, LocalDisk(), SystemClock())
    return {topic.name: (topic.read_queues, topic.write_queues, topic.perm) for topic in table.all()}


def topics_of(remoting: Remoting) -> dict[str, tuple[int, int, int]]:
    """The topic table as RocketMQ tells it."""
    return {
        name: (topic["readQueueNums"], topic["writeQueueNums"], topic["perm"])
        for name, topic in remoting.topics().items()
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_there_and_back_twice(tmp_path: Path, version: str) -> None:
    """Messages and topics of both; meanwhile a running broker keeps ours out."""
    need_rocketmq(version)
    root = tmp_path / "store"
    sent = write_ours(root, 1, 900)
    for seed in (2, 4):
        before, topics = inspect_clean(root, sent), topics_of_file(root)
        assert set(TOPICS) <= topics.keys()
        with RocketMQ(version, root).serving() as remoting:
            compare(remoting, before, sent)
            assert topics.items() <= topics_of(remoting).items()
            with pytest.raises(StoreLocked):
                MessageStore.open(config_of(root))
            made = f"made_by_rocketmq_{seed}"
            sent += send_to_rocketmq(remoting, Source(seed), 300)
            sent += send_to_rocketmq(remoting, Source(seed + 10, [made]), 20)
            queues = sorted({(one.topic, one.queue_id) for one in sent})
            after, topics = contents_at(remoting, queues), topics_of(remoting)
        kept = topics_of_file(root)
        assert topics.items() <= kept.items()
        assert all(name.startswith("RMQ_SYS_") for name in kept.keys() - topics.keys())  # made while it shut down
        assert topics[made][:2] == (4, 4)
        inspect_clean(root, sent).be_the_same_as(after)
        sent += write_ours(root, seed + 1, 300, made)
    inspect_clean(root, sent)
