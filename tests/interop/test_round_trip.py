"""A store goes from ours to RocketMQ and back, twice, and each shows what the other has stored."""

from pathlib import Path

import pytest

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
from tests.interop.rocketmq import VERSIONS, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(300)]


def write_ours(root: Path, seed: int, number: int) -> list[Sent]:
    """Our service takes messages and is stopped cleanly."""
    with service(root) as store:
        with store.client() as client:
            sent = list(send_to_ours(client, Source(seed), number))
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
    assert contents.count == len(sent)
    assert not (root / "broken").exists()
    return contents


@pytest.mark.parametrize("version", VERSIONS)
def test_there_and_back_twice(tmp_path: Path, version: str) -> None:
    need_rocketmq(version)
    root = tmp_path / "store"
    sent = write_ours(root, 1, 1_200)
    for seed in (2, 4):
        before = inspect_clean(root, sent)
        with RocketMQ(version, root).serving() as remoting:
            compare(remoting, before, sent)
            assert TOPICS_OF_OURS <= remoting.topics().keys()
            with pytest.raises(StoreLocked):
                MessageStore.open(config_of(root))
            sent += send_to_rocketmq(remoting, Source(seed), 400)
            after = contents_at(remoting, list(before.queues))
            after.be_whole()
        inspect_clean(root, sent).be_the_same_as(after)
        sent += write_ours(root, seed + 1, 300)
    inspect_clean(root, sent)


TOPICS_OF_OURS = set(TOPICS)
