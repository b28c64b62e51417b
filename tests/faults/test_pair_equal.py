"""A hundred thousand messages of all kinds over hundreds of files: master and slave hold the same bytes."""

import random
import threading
from pathlib import Path

import pytest

from tests.faults.harness import SEED
from tests.faults.pair import PATIENT, Node, Pair, stopped
from tests.faults.pair_checks import assert_index_equal, assert_logs_equal, assert_queues_equal
from tests.faults.pair_load import PUT_OK
from tests.interop.messages import TOPICS, Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MESSAGES = 100_000
SENDERS = 3
BATCH = 64


def send_mixed(node: Node, seed: int, number: int, failed: list[str]) -> None:
    """So many messages of all sizes, in all the ways there are; waits for the slave, and does not."""
    source, done, turn = Source(seed), 0, 0
    try:
        with node.client() as client:
            while done < number:
                turn += 1
                if turn % 4:
                    topic = TOPICS[turn % len(TOPICS)]
                    batches = [source.many(BATCH, topic) for _ in range(6)]
                    list(client.send_stream(topic, batches, queue_id=turn % 4, no_wait=turn % 3 == 0))
                    done += sum(map(len, batches))
                else:
                    messages = source.many(BATCH)
                    client.send_batch(messages)
                    done += len(messages)
                one = source.one()
                client.send(one.topic, one.body, tag=one.tag, keys=one.keys, properties=dict(one.properties))
                done += 1
    except Exception as error:  # noqa: BLE001 - the test looks at it
        failed.append(repr(error))


def send_all(node: Node, number: int, seed: int) -> None:
    """`number` messages by some senders at a time."""
    failed: list[str] = []
    senders = [
        threading.Thread(target=send_mixed, args=(node, seed * 100 + at, number // SENDERS, failed))
        for at in range(SENDERS)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert not failed


def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        send_all(pair.master, MESSAGES, SEED % 1_000)
        pair.wait_level()
        end = pair.master.role().max_offset
        with stopped(pair):
            master, slave = pair.master.root, pair.slave.root
            assert assert_logs_equal(master, slave, end, begin=0) == end
            assert len(pair.slave.files()) > 100
            assert assert_queues_equal(master, slave) > 100
            assert assert_index_equal(master, slave) > 10


def test_the_largest_messages(tmp_path: Path) -> None:
    """Bodies of four megabytes, many times the size of a frame: cut up on the way, whole at the slave."""
    chance, size = random.Random(SEED), 4 << 20
    settings = {**PATIENT, "mappedFileSizeCommitLog": 16 << 20, "maxMessageSize": size}
    with Pair(tmp_path, store=settings) as pair, pair.master.client() as client:
        for number in range(12):
            body = chance.randbytes(size - number)
            assert client.send("orders", body, keys=[f"large-{number}"]).status == PUT_OK
            assert client.send("orders", b"small").status == PUT_OK
        pair.wait_level()
        end = pair.master.role().max_offset
        with stopped(pair):
            assert assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0) > 12 * (size - 12)
            assert_queues_equal(pair.master.root, pair.slave.root)
