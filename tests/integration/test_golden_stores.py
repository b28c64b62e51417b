"""Stores that a real RocketMQ 4.9.8 wrote, opened by ours: what that broker answered, we answer, and where it lost,
we do not.

``expected.json`` of each set holds the real broker's answers. The damaged variants of ``torn`` are compared with
what RocketMQ made of them: at least as much must be there.
"""

import asyncio
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import decode_record
from tandemmq.store.format.unit import is_blank
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.errors import FileSizeMismatch
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.golden import copy_of, golden_store

FOREVER = 4_102_444_800_000
VARIANTS = [
    "tail-zero",
    "body-flip",
    "body-flip-old",
    "cq-topic-deleted",
    "index-deleted",
    "checkpoint-deleted",
    "no-abort",
    "no-abort-cq-deleted",
    "log-gap",
    "cq-tail-zero",
]


def config_for(root: Path) -> StoreConfig:
    """The sizes that the golden broker was configured with."""
    return StoreConfig(
        root,
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=10_000,
        max_hash_slot_num=2_000,
        max_index_num=8_000,
        message_delay_levels=(1_000, 2_000, 3_000, 3_600_000),
        file_reserved_time=1_000_000,
        prefault_bytes=0,
    )


def expected(set_name: str) -> dict[str, Any]:
    """What the real broker answered."""
    document: dict[str, Any] = json.loads((golden_store(set_name) / "expected.json").read_text())
    return document


def with_store(root: Path, check: Callable[[MessageStore], None]) -> None:
    """Open ``root``, wait for rebuilds, run ``check``, close; open again and check once more."""

    async def once() -> None:
        store = MessageStore.open(config_for(root))
        store.start()
        try:
            await asyncio.wait_for(store.rebuilt(), 60)
            check(store)
        finally:
            await store.close()

    asyncio.run(once())
    asyncio.run(once())


def record_crc(store: MessageStore, offset: int, size: int | None = None) -> int | None:
    """CRC-32 of a whole record as served, None where it is not served."""
    data = store.read_record(offset, size)
    return None if data is None else zlib.crc32(data)


def check_messages(store: MessageStore, messages: list[dict[str, Any]], but: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Every acknowledged message is served with the same bytes, offsets and id, but for those at the physical
    offsets ``but``.
    """
    for message in messages:
        offset = message["physicOffset"]
        if offset in but:
            continue
        data = store.read_record(offset)
        assert data is not None, f"record at {offset} is gone"
        record = decode_record(data)
        assert encode_offset_id(record.store_host, offset) == message["msgId"]
        assert record.physical_offset == offset
        if "recordCrc32" in message:
            assert (zlib.crc32(data), len(data)) == (message["recordCrc32"], message["size"])
            assert (record.topic, record.queue_id) == (message["storedTopic"], message["storedQueueId"])
            assert record.queue_offset == message["storedQueueOffset"]
            assert record.properties == message["storedProperties"]


def check_queues(store: MessageStore, queues: dict[str, Any]) -> None:
    """Every unit the real broker had is there, at its offset."""
    for topic, by_id in queues.items():
        for queue_id, answer in by_id.items():
            queue = store.queue(topic, int(queue_id))
            if answer["max"] == 0:
                continue
            assert queue is not None, f"{topic}/{queue_id} is gone"
            assert queue.max_offset >= answer["max"], f"{topic}/{queue_id}"
            for entry in answer["entries"]:
                if isinstance(entry, dict):  # a pull that the broker refused: the topic is not in its table
                    continue
                offset, physical, size, crc = entry
                unit = queue.unit(offset)
                assert unit is not None
                assert (unit.physical_offset, unit.size) == (physical, size)
                assert queue.min_offset <= offset
                assert record_crc(store, physical, size) == crc


def check_key_queries(store: MessageStore, queries: list[dict[str, Any]], *, at_least: bool = False) -> None:
    """Key queries over all time find the same records (or, after damage, at least those)."""
    for query in queries:
        if query["begin"] != 0 or query["end"] != FOREVER:
            continue  # RocketMQ's time ranges are too narrow by up to a second (trap T8)
        log_min = store.commit_log.min_offset
        hits = set(store.query_index(query["topic"], query["key"], 0, FOREVER))
        found = sorted(hit for hit in hits if hit >= log_min)
        wanted = query["physicOffsets"]
        if at_least or len(wanted) >= query["maxNum"]:
            assert set(wanted) <= set(found), query
        else:
            assert found == wanted, query


def check_every_record_has_its_unit(store: MessageStore, messages: list[dict[str, Any]], but: set[int]) -> None:
    """No acknowledged message is missing in its queue (the real broker leaves some out after damage)."""
    for message in messages:
        data = store.read_record(message["physicOffset"])
        if data is None or message["physicOffset"] in but:
            continue
        record = decode_record(data, verify=False)
        queue = store.queue(record.topic, record.queue_id)
        assert queue is not None
        unit = queue.unit(record.queue_offset)
        assert unit is not None
        assert not is_blank(unit)
        assert (unit.physical_offset, unit.size) == (record.physical_offset, record.size)


def check_every_key_is_indexed(store: MessageStore, messages: list[dict[str, Any]], but: set[int]) -> None:
    """Every key of every readable message leads to it (the real broker loses index entries after a crash, trap T7)."""
    for message in messages:
        data = store.read_record(message["physicOffset"])
        if data is None or message["physicOffset"] in but:
            continue
        record = decode_record(data, verify=False)
        for key in filter(None, [record.unique_key, *record.keys]):
            assert message["physicOffset"] in set(store.query_index(record.topic, key, 0, FOREVER)), (record.topic, key)


@pytest.mark.parametrize("set_name", ["aged", *in_campaigns("clean")])
def test_a_clean_store_answers_as_the_real_broker_did(set_name: str, tmp_path: Path) -> None:
    """``clean`` and ``aged``: same records, same queues, same ids, same key hits, same log bounds."""
    want = expected(set_name)
    root = copy_of(golden_store(set_name) / "store", tmp_path)
    deleted = set(want.get("deletedMessages", []))

    def check(store: MessageStore) -> None:
        assert (store.commit_log.min_offset, store.commit_log.max_offset) == (
            want["commitLogMinOffset"],
            want["commitLogMaxOffset"],
        )
        assert store.damage == []
        check_messages(store, want["messages"], deleted)
        check_queues(store, want["queues"])
        check_key_queries(store, want["keyQueries"])
        check_every_record_has_its_unit(store, want["messages"], deleted)
        check_every_key_is_indexed(store, want["messages"], deleted)

    with_store(root, check)


@pytest.mark.slow
def test_a_crashed_store_has_all_that_the_real_broker_recovered_and_its_whole_index(tmp_path: Path) -> None:
    """``crash``: RocketMQ loses 1,821 of 14,420 index entries here although all messages exist; we keep them."""
    want = expected("crash")
    root = copy_of(golden_store("crash") / "store", tmp_path)

    def check(store: MessageStore) -> None:
        java = want["afterJavaRecovery"]
        assert store.commit_log.max_offset == java["commitLogMaxOffset"]
        check_messages(store, want["messages"])
        check_queues(store, java["queues"])
        check_key_queries(store, java["keyQueries"], at_least=True)
        check_every_record_has_its_unit(store, want["messages"], set())
        check_every_key_is_indexed(store, want["messages"], set())
        assert sum(count - 1 for _, count in store.index_counts()) == 14_420

    with_store(root, check)


@pytest.mark.slow
@pytest.mark.parametrize(
    "set_name", ["torn/tail-zero", *in_campaigns("crash", "torn/body-flip", "torn/cq-topic-deleted")]
)
def test_a_store_that_the_real_broker_recovered_opens_too(set_name: str, tmp_path: Path) -> None:
    """What RocketMQ's recovery left behind, stale bytes and all: at least what it then answered is there."""
    name, _, variant = set_name.partition("/")
    messages = expected("crash")["messages"]
    java = expected(name)["variants"][variant]["afterJavaRecovery"] if variant else expected(name)["afterJavaRecovery"]
    root = copy_of(golden_store(name) / variant / "store-after-java-recovery", tmp_path)
    lost = set(java["ackedNotReadable"])

    def check(store: MessageStore) -> None:
        check_messages(store, messages, lost)
        check_queues(store, java["queues"] if variant != "cq-topic-deleted" else {})
        check_every_record_has_its_unit(store, messages, lost)
        check_every_key_is_indexed(store, messages, lost)

    with_store(root, check)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [VARIANTS[0], *in_campaigns(*VARIANTS[1:])])
def test_a_damaged_store_has_at_least_what_the_real_broker_recovered(variant: str, tmp_path: Path) -> None:
    """Each damaged copy: what RocketMQ still answered, we answer, and every message that is readable is in its
    queue and index.
    """
    want = expected("torn")["variants"][variant]
    java = want["afterJavaRecovery"]
    messages = expected("crash")["messages"]
    root = copy_of(golden_store("torn") / variant / "store", tmp_path)
    gone = not_restorable(variant, want, messages)

    def check(store: MessageStore) -> None:
        readable = {m["physicOffset"] for m in messages if store.read_record(m["physicOffset"]) is not None}
        by_java = {m["physicOffset"] for m in messages} - set(java["ackedNotReadable"])
        assert len(by_java) == java["ackedReadable"]
        assert by_java <= readable
        check_messages(store, messages, gone)
        check_queues(store, {} if "deleted" in variant else java["queues"])
        check_key_queries(store, java["keyQueries"], at_least=True)
        check_every_record_has_its_unit(store, messages, gone)
        check_every_key_is_indexed(store, messages, gone)

    with_store(root, check)


def not_restorable(variant: str, want: dict[str, Any], messages: list[dict[str, Any]]) -> set[int]:
    """Physical offsets of the messages whose bytes are really gone: for these nobody can do anything."""
    damage = want["damage"]
    if variant == "log-gap":
        begin = int(damage["file"])
        return {m["physicOffset"] for m in messages if begin <= m["physicOffset"] < begin + (1 << 20)}
    return {damage["recordAt"]} if "recordAt" in damage else set()


def test_the_442_messages_behind_a_flipped_byte_are_kept(tmp_path: Path) -> None:
    """RocketMQ cuts the log at the first bad record and loses everything behind it; we read around the one record."""
    want = expected("torn")["variants"]["body-flip"]
    root = copy_of(golden_store("torn") / "body-flip" / "store", tmp_path)
    lost_by_java = set(want["afterJavaRecovery"]["ackedNotReadable"])
    assert len(lost_by_java) == 442

    def check(store: MessageStore) -> None:
        restored = {offset for offset in lost_by_java if store.read_record(offset) is not None}
        assert restored >= lost_by_java - {want["damage"]["recordAt"]}
        assert [(found.begin, found.kind) for found in store.damage] == [(want["damage"]["recordAt"], "rot")]

    with_store(root, check)


def test_the_units_of_a_deleted_queue_are_restored_from_the_log(tmp_path: Path) -> None:
    """RocketMQ leaves 720 messages of a deleted consume queue in no queue; ours has every one of them again."""
    want = expected("torn")["variants"]["cq-topic-deleted"]
    root = copy_of(golden_store("torn") / "cq-topic-deleted" / "store", tmp_path)
    not_in_any_queue = set(want["afterJavaRecovery"]["ackedNotInAnyQueue"])
    assert len(not_in_any_queue) == 720

    def check(store: MessageStore) -> None:
        there = {
            unit.physical_offset for queue in store.queues() for unit in queue_units(store, queue.topic, queue.queue_id)
        }
        assert not_in_any_queue <= there

    with_store(root, check)


def queue_units(store: MessageStore, topic: str, queue_id: int) -> list[Any]:
    """All units of a queue that are no blanks."""
    queue = store.queue(topic, queue_id)
    assert queue is not None
    units: list[Any] = []
    while queue.min_offset + len(units) < queue.max_offset:
        units += queue.read(queue.min_offset + len(units), 4_096)
    return [unit for unit in units if not is_blank(unit)]


def test_a_cut_log_file_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    """``short-file``: RocketMQ does not start either; we say which file, which setting, and what to do."""
    root = copy_of(golden_store("torn") / "short-file" / "store", tmp_path)
    before = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and path.name != "lock"}
    with pytest.raises(FileSizeMismatch, match="00000000000014680064.*mappedFileSizeCommitLog"):
        MessageStore.open(config_for(root))
    after = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and path.name != "lock"}
    assert after == before
