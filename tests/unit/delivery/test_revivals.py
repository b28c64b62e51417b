"""What was popped at a RocketMQ broker and not acknowledged comes again; what was acknowledged does not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.port import Wish
from tandemmq.store.delivery.retries.java_pops import BadPop, PopKey, read_acknowledged, read_checkpoint
from tandemmq.store.format import properties
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.edges.clock import SystemClock
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

LOG = "rmq_sys_REVIVE_LOG_DefaultCluster"
POSITION = Place("CID_RMQ_SYS_REVIVE_GROUP", LOG, 0)
GROUP, TOPIC = "workers", "orders"


def checkpoint(start: int, number: int, popped: int, invisible: int = 10, **other: Any) -> bytes:
    entry = {"bm": 0, "bn": "b", "c": GROUP, "it": invisible, "n": number, "pt": popped, "q": 0, "ro": 0, "so": start}
    return json.dumps({**entry, "t": TOPIC, **other}).encode()


def acknowledgement(start: int, offset: int, popped: int, **other: Any) -> bytes:
    entry = {"ao": offset, "bn": "b", "c": GROUP, "pt": popped, "q": 0, "so": start, "t": TOPIC}
    return json.dumps({**entry, **other}).encode()


def note(at: DeliveringStore, tag: str, body: bytes) -> None:
    at.store.append(Message(LOG, 0, body, properties.encode({"TAGS": tag}), store_host=HOST))


async def group_has_popped(root: Path, messages: int = 6) -> int:
    """A directory in which a group stands behind its messages; gives when they were popped."""
    popped = SystemClock().now_ms() - 60_000
    async with delivering(root) as at:
        await at.broker.topics.add([TopicConfig(LOG, 1, 1), TopicConfig(TOPIC, 1, 1)])
        await at.delivery.receive(Wish(GROUP, TOPIC))
        await at.send(TOPIC, messages)
        at.store.catch_up()
        await at.delivery.commit(GROUP, TOPIC, 0, messages)
        note(at, "ck", checkpoint(0, 4, popped))
        note(at, "ck", checkpoint(4, 1, popped + 1, d=[0, 1]))
        note(at, "ack", acknowledgement(0, 1, popped))
        note(at, "bAck", acknowledgement(0, 2, popped, aol=[2, 3, 77]))
        note(at, "ack", acknowledgement(4, 4, popped + 1))
        note(at, "ack", acknowledgement(9, 9, popped))
        note(at, "ck", b"{")
        note(at, "ck", checkpoint(0, 1, popped + 120_000, invisible=3_600_000))
    return popped


async def receive(at: DeliveringStore, wait_ms: int = 20_000) -> list[tuple[int, int]]:
    """Queue offset of the origin, number of the delivery."""
    found: list[tuple[int, int]] = []
    while True:
        batch = await at.delivery.receive(Wish(GROUP, TOPIC, wait_ms=wait_ms))
        batch.sent(lambda: True)
        if not batch.messages:
            return sorted(found)
        for one in batch.messages:
            record = decode_record(one.record)
            assert record.topic == f"%RETRY%{GROUP}"
            assert record.properties["RETRY_TOPIC"] == TOPIC
            found.append((int(record.properties["ORIGIN_MESSAGE_ID"][16:], 16), one.number))
        wait_ms = 2_500


@pytest.mark.slow
async def test_what_was_popped_and_not_acknowledged_comes_again_once(tmp_path: Path) -> None:
    await group_has_popped(tmp_path)
    async with delivering(tmp_path) as at:
        queue = at.store.queue(TOPIC, 0)
        assert queue is not None
        units = queue.read(0, 6)
        assert await receive(at) == [(units[0].physical_offset, 2), (units[5].physical_offset, 2)]
        copy = at.killed(tmp_path.with_name("copy"))
    for root in (tmp_path, copy):
        async with delivering(root) as at:
            await asyncio.sleep(2.5)
            retries = at.store.queue(f"%RETRY%{GROUP}", 0)
            assert retries is not None
            assert retries.max_offset == 2
            progress = at.delivery.ledger.progress(POSITION)
            assert progress is not None
            assert progress.cursor == 1, "RocketMQ reads on behind this"


async def test_it_goes_on_where_rocketmq_stood(tmp_path: Path) -> None:
    await group_has_popped(tmp_path)
    offsets = tmp_path / "config" / "consumerOffset.json"
    document = json.loads(offsets.read_text())
    del document["tandemJournal"]
    document["offsetTable"][f"{LOG}@{POSITION.group}"] = {"0": 0}
    offsets.write_text(json.dumps(document))
    async with delivering(tmp_path) as at:
        queue = at.store.queue(TOPIC, 0)
        assert queue is not None
        assert await receive(at) == [(queue.read(5, 1)[0].physical_offset, 2)]


def test_checkpoints_of_old_and_new() -> None:
    pop = read_checkpoint(checkpoint(10, 3, 5, 7, bm=2), 1)
    assert (pop.key, pop.due_ms, pop.open) == (PopKey(TOPIC, GROUP, 0, 10, 5), 12, [10, 12])
    assert read_checkpoint(checkpoint(10, 3, 5, d=[0, 4, 9]), 1).open == [10, 14, 19]
    old = {"ackOffset": 3, "startOffset": 1, "consumerGroup": "g", "topic": "t", "queueId": 2, "popTime": 9}
    assert read_acknowledged(json.dumps(old).encode()) == (PopKey("t", "g", 2, 1, 9), [3])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"{}",
        checkpoint(0, 128, 0),
        checkpoint(-1, 1, 0),
        checkpoint(0, 1, 0, t=""),
        checkpoint(0, 1, 0, d=["x"]),
        checkpoint(0, 1, 0, bm="x"),
    ],
)
def test_bad_notes_are_refused(body: bytes) -> None:
    with pytest.raises(BadPop):
        read_checkpoint(body, 0)
    with pytest.raises(BadPop):
        read_acknowledged(b"{" + body)
