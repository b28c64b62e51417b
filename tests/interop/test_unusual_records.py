"""Records that a Python client does not send today, but a store may hold: RocketMQ reads them as we do."""

import asyncio
import time
import zlib
from pathlib import Path

import pytest

from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.format import properties as names
from tandemmq.store.format import sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Message
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tests.interop.messages import Contents, contents_at
from tests.interop.ours import config_of, contents_of, with_store
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

V4, V6 = Host("127.0.0.1", 10911), Host("2001:db8::17", 10911)
DELAYED, WOKEN = "SCHEDULE_TOPIC_XXXX", "woken"
LONG = "%RETRY%" + "g" * 190
"""Longer than 127 bytes: a record of the second version, which RocketMQ 4 does not know."""


def unusual(version: str) -> list[Message]:
    """One of each kind, and some of them again."""
    body = zlib.compress(b"compressed by its producer " * 40)
    ways = [
        Message("t", 0, b"", b"", born_host=V4, store_host=V4),
        Message("t", 0, b"from v6", names.encode({names.KEYS: "a b"}), born_host=V6, store_host=V4),
        Message("t", 1, b"at v6", names.encode({names.TAGS: "A"}), born_host=V6, store_host=V6),
        Message("t", 1, body, names.encode({"a": "b"}), sys_flag=sysflag.COMPRESSED, born_host=V4, store_host=V4),
        Message("t", 1, b"flags", b"", flag=-7, born_timestamp=17, born_host=V4, store_host=V6, reconsume_times=3),
        Message("t", 2, b"no end", names.encode({"last": "value"}, trailing=False), born_host=V4, store_host=V4),
        Message("t", 2, b"committed", b"", sys_flag=sysflag.TRANSACTION_COMMIT, born_host=V4, store_host=V4),
        Message("t", 2, b"prepared", b"", sys_flag=sysflag.TRANSACTION_PREPARED, born_host=V4, store_host=V4),
        Message("t", 2, b"rolled back", b"", sys_flag=sysflag.TRANSACTION_ROLLBACK, born_host=V4, store_host=V4),
        Message("t", 3, bytes(range(256)) * 160, b"", born_host=V4, store_host=V4),
    ]
    if not version.startswith("4"):
        ways.append(Message(LONG, 0, b"long", names.encode({names.KEYS: "k"}), born_host=V4, store_host=V4))
    return ways * 9


def delayed(level: int) -> Message:
    """A message for later, as RocketMQ stores it."""
    later = {names.DELAY: str(level), names.REAL_TOPIC: WOKEN, names.REAL_QID: "0", names.TAGS: "A"}
    return Message(DELAYED, level - 1, b"later", names.encode(later), born_host=V4, store_host=V4)


@pytest.mark.parametrize("version", VERSIONS)
def test_unusual_records(tmp_path: Path, version: str) -> None:
    """RocketMQ 5 checks each record by our checksum over the whole of it; RocketMQ 4 sees records with and without."""
    need_rocketmq(version)
    checksums = not version.startswith("4")
    root = tmp_path / "store"
    seen: list[Contents] = []

    def fill(store: MessageStore) -> None:
        for message in unusual(version):
            store.append(message)
        store.append_messages([delayed(18)])

    def delay_one(store: MessageStore) -> None:
        store.append(delayed(1))

    with_store(config_of(root, append_crc=True), fill)
    if not checksums:
        with_store(config_of(root), fill)
    with_store(config_of(root, append_crc=True), delay_one)
    table = LocalTopicTable(root, LocalDisk(), SystemClock())
    asyncio.run(table.add([TopicConfig(name, 4, 4) for name in ("t", WOKEN, LONG)]))
    with_store(config_of(root), lambda store: seen.append(contents_of(store)))
    seen[0].be_whole()
    assert {name for name, _ in seen[0].queues} == {message.topic for message in [*unusual(version), delayed(1)]}

    broker = RocketMQ(version, root)
    if checksums:  # as after a crash, when it reads the log
        broker = RocketMQ(version, root, enabledAppendPropCRC="true", forceVerifyPropCRC="true")
        (root / "abort").touch()
    broker.start()
    try:
        with broker.connect() as remoting:
            contents_at(remoting, list(seen[0].queues)).be_the_same_as(seen[0])
            deadline = time.monotonic() + 200
            while remoting.bounds(WOKEN, 0)[1] == 0 and time.monotonic() < deadline:
                time.sleep(0.2)
            woken = list(remoting.pull_all(WOKEN, 0))
            assert [(record.body, record.tags) for record in woken] == [(b"later", "A")]
    finally:
        broker.kill()

    with_store(config_of(root), lambda store: seen.append(contents_of(store)))
    after = seen[1].queues.pop((WOKEN, 0))
    assert [record.encode() for record in after.records.values()] == [record.encode() for record in woken]
    seen[1].be_the_same_as(seen[0])
