"""The format against stores that Apache RocketMQ 4.9.8 wrote."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.format import index_layout, message_id
from tandemmq.store.format.checkpoint import CHECKPOINT_SIZE, Checkpoint
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.index_layout import IndexHeader, file_size
from tandemmq.store.format.java import index_hash, index_key
from tandemmq.store.format.record import BLANK_SIZE, MAGIC_BLANK, decode_record, encode_record
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE
from tandemmq.store.format.walker import Stop, Walk, Walker, compiled_walker, python_walker
from tests.golden import golden_store
from tests.stored_messages import message_of

DELAYS = (1000, 2000, 3000, 3_600_000)
SLOTS, ENTRIES = 2000, 8000
QUEUE_FILE = 10_000
STORES = [
    "clean/store",
    "aged/store",
    "crash/store",
    "crash/store-after-java-recovery",
    "ha/master/store",
    "ha/slave/store",
]

walkers = pytest.mark.parametrize("make", [python_walker, compiled_walker])


def store(name: str) -> Path:
    set_name, _, rest = name.partition("/")
    path = golden_store(set_name) / rest
    if not path.is_dir():
        pytest.skip(f"the golden set {set_name} has no {rest}")
    return path


def walks(walker: Walker, path: Path) -> Iterator[tuple[bytes, int, Walk]]:
    """Each log file with its base and walk."""
    for file in sorted((path / "commitlog").iterdir()):
        data, base = file.read_bytes(), int(file.name)
        yield data, base, walker.walk(data, 0, len(data), base, check_crc=True, delay_levels=DELAYS)


def expected(set_name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((golden_store(set_name) / "expected.json").read_text())
    return content


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_every_record_is_made_again_byte_for_byte(name: str) -> None:
    """From the record itself, and from a message of its fields; the ending of the properties is part of their bytes."""
    count = 0
    for data, base, walk in walks(compiled_walker(), store(name)):
        assert walk.stop in (Stop.BLANK, Stop.ZERO, Stop.BAD_POSITION, Stop.BAD_MAGIC, Stop.BAD_SIZE, Stop.INCOMPLETE)
        for row in walk.rows():
            at = row.position - base
            record = decode_record(data, at)
            raw = data[at : at + row.size]
            assert record.encode() == raw
            again = encode_record(
                message_of(record), record.queue_offset, record.physical_offset, record.store_timestamp
            )
            assert again == raw
            count += 1
        if walk.stop == Stop.BLANK:
            free = int.from_bytes(data[walk.position : walk.position + 4], "big")
            assert (free, free >= BLANK_SIZE) == (len(data) - walk.position, True)
            assert data[walk.position + 4 : walk.position + 8] == MAGIC_BLANK.to_bytes(4, "big")
    assert count > 1000


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_both_walkers_agree(name: str) -> None:
    pairs = zip(walks(python_walker(), store(name)), walks(compiled_walker(), store(name)), strict=True)
    for (_, _, one), (_, _, other) in pairs:
        assert (one.position, one.stop) == (other.position, other.stop)
        assert one.rows() == other.rows()
        assert one.runs() == other.runs()


@pytest.mark.golden
def test_messages_are_what_the_broker_said_they_are() -> None:
    path = store("clean/store")
    files = {int(file.name): file.read_bytes() for file in (path / "commitlog").iterdir()}
    size = len(files[0])
    for message in expected("clean")["messages"]:
        host, offset = message_id.decode_offset_id(message["msgId"])
        assert offset == message["physicOffset"]
        record = decode_record(files[offset - offset % size], offset % size)
        assert record.store_host == host
        assert (record.size, record.store_timestamp) == (message["size"], message["storeTimestamp"])
        assert (record.topic, record.queue_id) == (message["storedTopic"], message["storedQueueId"])
        assert (record.queue_offset, record.sys_flag) == (message["storedQueueOffset"], message["storedSysFlag"])
        assert record.properties == message["storedProperties"]
        assert (len(record.body), crc31(record.body)) == (message["bodyLength"], message["bodyCrc32"])
        assert (record.flag, record.reconsume_times) == (message["flag"], message["reconsumeTimes"])


@pytest.mark.golden
@walkers
def test_rebuilt_consume_queues_are_the_same_files(make: Callable[[], Walker]) -> None:
    """Whole files: this store was never truncated, so nothing stale follows the last unit."""
    path = store("clean/store")
    queues: dict[tuple[str, int], bytearray] = defaultdict(bytearray)
    for _, _, walk in walks(make(), path):
        for run in walk.runs():
            queue = queues[run.topic, run.queue_id]
            assert run.first_queue_offset * UNIT_SIZE == len(queue)
            queue += run.units
    found = set()
    for directory in path.glob("consumequeue/*/*"):
        rebuilt = bytes(queues[directory.parent.name, int(directory.name)])
        found.add((directory.parent.name, int(directory.name)))
        files = sorted(directory.iterdir())
        stored = b"".join(file.read_bytes() for file in files)
        assert stored == rebuilt.ljust(len(files) * QUEUE_FILE, b"\0")
    assert found == set(queues)


@pytest.mark.golden
@walkers
def test_rebuilt_index_is_the_same_files(make: Callable[[], Walker]) -> None:
    """Whole files too. A new file's header is set as Java sets it on rolling: to the end of the file before."""
    path = store("clean/store")
    files = [bytearray(file_size(SLOTS, ENTRIES))]
    for _, _, walk in walks(make(), path):
        row, key = 0, 0
        while True:
            row, key = walk.index_into(files[-1], SLOTS, ENTRIES, row, key)
            if (row, key) == (walk.count, 0):
                break
            last = IndexHeader.unpack(files[-1])
            end, offset = last.end_timestamp, last.end_physical_offset
            files.append(bytearray(file_size(SLOTS, ENTRIES)))
            files[-1][: index_layout.HEADER_SIZE] = IndexHeader(end, end, offset, offset).pack()
    stored = [file.read_bytes() for file in sorted((path / "index").iterdir())]
    assert len(stored) == len(files)
    for one, other in zip(stored, files, strict=True):
        assert one == other


@pytest.mark.golden
def test_queries_find_at_least_what_the_broker_found() -> None:
    path = store("clean/store")
    index = [file.read_bytes() for file in sorted((path / "index").iterdir())]
    for query in expected("clean")["keyQueries"]:
        key_hash = index_hash(index_key(query["topic"], query["key"]))
        found = [
            offset
            for file in index
            for offset in index_layout.find(file, SLOTS, ENTRIES, key_hash, query["begin"], query["end"])
        ]
        assert set(query["physicOffsets"]) <= set(found)


@pytest.mark.golden
def test_t5_blank_units_in_a_queue_that_begins_late() -> None:
    """Where an expired log's queues were begun anew, Java fills up with (0, 7FFFFFFF, 0)."""
    path = golden_store("torn")
    queues = path.glob("**/store-after-java-recovery/consumequeue/*/*/*")
    assert any(file.read_bytes().startswith(BLANK_UNIT) for file in queues)


@pytest.mark.golden
def test_t1_what_java_recovery_leaves_behind_is_not_walked() -> None:
    """After Java cut the log, old bytes stay; a walk only takes records that stand where they say."""
    for _, base, walk in walks(compiled_walker(), store("crash/store-after-java-recovery")):
        positions = [row.position for row in walk.rows()]
        assert positions == sorted(positions)
        assert not positions or positions[0] == base


@pytest.mark.golden
@pytest.mark.parametrize("name", STORES)
def test_checkpoints_are_made_again(name: str) -> None:
    path = store(name) / "checkpoint"
    data = path.read_bytes()
    assert len(data) == CHECKPOINT_SIZE
    checkpoint = Checkpoint.decode(data)
    assert checkpoint.encode() == data
    assert checkpoint.logics > 0
