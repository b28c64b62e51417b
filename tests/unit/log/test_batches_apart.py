"""Batches that are laid out apart, and written by one system call."""

import errno
import mmap
from pathlib import Path

import pytest

from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import DiskFailed
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments import commit_log
from tandemmq.store.log.segments.commit_log import EncodedBatch
from tests.faults.faulty_disk import Fault, FaultyDisk

HOST = Host("10.0.0.1", 10911)
BATCH = EncodedBatch(
    "orders",
    1,
    encode_client_batch([(number, bytes([number]) * 1_000, b"KEYS\x01%d\x02" % number) for number in range(40)]),
    HOST,
    HOST,
    5,
)


class _Clock:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1_760_000_000_000


def _open(root: Path, disk: LocalDisk | None = None) -> MessageStore:
    config = StoreConfig(root, mapped_file_size_commit_log=1 << 20, compiled_walker="never")
    return MessageStore.open(config, clock=_Clock(), disk=disk or LocalDisk())


def _small(body: bytes) -> Message:
    return Message("orders", 1, body, b"", 0, 0, 5, HOST, HOST)


def _bytes(store: MessageStore) -> bytes:
    return store.commit_log.files.files[0].map[: store.commit_log.max_offset]


async def test_the_bytes_are_those_of_the_mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apart = _open(tmp_path / "apart")
    places = [apart.append_batch(BATCH), apart.append(_small(b"between")), apart.append_batch(BATCH)]
    monkeypatch.setattr(commit_log, "LEAST_APART", 1 << 30)
    mapped = _open(tmp_path / "mapped")
    assert places == [mapped.append_batch(BATCH), mapped.append(_small(b"between")), mapped.append_batch(BATCH)]
    assert _bytes(apart) == _bytes(mapped)
    await apart.close()
    await mapped.close()


async def test_nothing_is_left_of_a_batch_that_was_written_by_half(tmp_path: Path) -> None:
    """A later start would find its first messages, of which the sender heard that they are not stored."""
    disk = FaultyDisk()
    store = _open(tmp_path, disk)
    store.append(_small(b"before"))
    end = store.commit_log.max_offset
    disk._fault = Fault("pwrite", disk.counts["pwrite"] + 1, errno.EIO)
    with pytest.raises(DiskFailed, match="Cannot write 4.,... bytes"):
        store.append_batch(BATCH)
    file = store.commit_log.files.files[0]
    assert not any(file.map[end:])
    assert store.commit_log.max_offset == end
    store.append(_small(b"after"))
    assert store.append_batch(BATCH).first_queue_offset == 2
    await store.close()
    again = _open(tmp_path)
    assert again.commit_log.offsets["orders", 1] == 42
    await again.close()


async def test_what_was_written_by_half_is_not_removed_through_the_mapping(tmp_path: Path) -> None:
    """A page that a failing disk does not give ends the process when it is touched (SIGBUS)."""
    disk = FaultyDisk()
    store = _open(tmp_path, disk)
    store.append(_small(b"before"))
    file = store.commit_log.files.files[0]
    whole, file.map = file.map, mmap.mmap(file.fd, file.size, access=mmap.ACCESS_READ)
    disk._fault = Fault("pwrite", disk.counts["pwrite"] + 1, errno.EIO)
    with pytest.raises(DiskFailed, match="Cannot write"):
        store.append_batch(BATCH)
    assert not any(file.map[store.commit_log.max_offset :])
    file.map = whole
    assert store.append_batch(BATCH).first_queue_offset == 1
    await store.close()


class _DyingDisk(LocalDisk):
    """From some time on it writes half of what it is given, and then nothing any more."""

    dying = False
    left = 1

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        if not self.dying:
            super().pwrite(fd, data, offset)
            return
        if self.left:
            self.left -= 1
            super().pwrite(fd, data[: len(data) // 2], offset)
        raise OSError(errno.EIO, "made to fail")


@pytest.mark.parametrize("left", [0, 1])
async def test_no_more_is_taken_where_a_half_cannot_be_removed(tmp_path: Path, left: int) -> None:
    """It would count after a record that ends where it begins. Where nothing was written, nothing has to go."""
    disk = _DyingDisk()
    disk.left = left
    store = _open(tmp_path, disk)
    store.append(_small(b"before"))
    store.catch_up()
    disk.dying = True
    with pytest.raises(DiskFailed, match="Cannot write"):
        store.append_batch(BATCH)
    assert store.writable is not bool(left)
    disk.dying = False
    await store.close()


async def test_a_full_file_is_not_kept_for_a_batch_that_was_written_to_it(tmp_path: Path) -> None:
    """Kept, its blocks were not freed when it expired, until another file took a batch, or the store was started."""
    store = _open(tmp_path)
    store.append_batch(BATCH)
    log = store.commit_log
    while len(log.files.files) < 2:
        store.append(_small(b"x" * 100_000))
    full = store.commit_log.files.files[0].path
    mapped = Path("/proc/self/maps")
    assert str(full) in mapped.read_text()
    store.catch_up()
    await store.wait_flushed(log.max_offset)
    log.files.drop_first()
    assert str(full) not in mapped.read_text()
    await store.close()
