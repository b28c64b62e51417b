"""Many records of a queue in one piece: what lies one after the other comes as it is, and nothing else does."""

from pathlib import Path

from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch

HOST = Host("127.0.0.1", 10911)


def opened(tmp_path: Path) -> MessageStore:
    return MessageStore.open(StoreConfig(tmp_path, mapped_file_size_commit_log=1 << 20, compiled_walker="always"))


def put(store: MessageStore, queue_id: int, count: int) -> None:
    blob = encode_client_batch([(0, b"%d" % number * 50, b"TAGS\x01a\x02") for number in range(count)])
    store.append_batch(EncodedBatch("bulk", queue_id, blob, HOST, HOST))


def read(store: MessageStore, queue_id: int, offset: int, messages: int, size: int) -> list[int] | None:
    queue = store.queue("bulk", queue_id)
    assert queue is not None
    found = store.read_bulk(queue, offset, messages, size)
    if found is None:
        return None
    count, data = found
    offsets, at = [], 0
    while at < len(data):
        record = decode_record(data, at)
        assert (record.topic, record.queue_id) == ("bulk", queue_id)
        offsets.append(record.queue_offset)
        at += record.size
    assert len(offsets) == count
    return offsets


async def test_neighbours_are_read_up_to_the_limits(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, 0, 100)
    assert read(store, 0, 0, 1000, 1 << 20) == list(range(100))
    assert read(store, 0, 30, 40, 1 << 20) == list(range(30, 70))
    size = len(store.read_record(0) or b"")
    assert read(store, 0, 0, 1000, 5 * size) == list(range(5))
    assert read(store, 0, 0, 1000, 6 * size - 1) == list(range(5))
    await store.close()


async def test_what_is_not_that_simple_is_left_to_others(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, 0, 100)
    for _ in range(50):
        put(store, 1, 1)
        put(store, 2, 1)
    put(store, 0, 100)
    assert read(store, 0, 95, 1000, 1 << 20) is None, "other queues' records lie between"
    assert read(store, 1, 0, 1000, 1 << 20) is None
    assert read(store, 0, 0, 5, 1 << 20) is None, "too few"
    assert read(store, 0, 0, 1000, 10) is None, "not even one fits"
    await store.close()


async def test_a_unit_that_lies_about_its_record_is_not_believed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, 0, 100)
    queue = store.queue("bulk", 0)
    assert queue is not None
    assert read(store, 0, 0, 1000, 1 << 20) == list(range(100))
    path = queue.files[0]
    data = bytearray(path.read_bytes())
    data[50 * 20 + 19] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    assert read(store, 0, 0, 1000, 1 << 20) is None
    assert read(store, 0, 0, 50, 1 << 20) == list(range(50))
    await store.close()
