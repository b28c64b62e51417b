"""A disk that is really full: a small tmpfs. Clear errors, no SIGBUS, reads go on; sends do once there is room."""

import asyncio
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.common.errors import Kind
from tandemmq.store.log import dispatch
from tandemmq.store.log.errors import DiskFull, StoreError
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.faults.harness import LOG_FILE, QUEUES, audit, body_of, intact, message, small_config, within
from tests.faults.test_bad_directories import everything_is_there

_libc = ctypes.CDLL(None, use_errno=True)
ROOM = 24 * LOG_FILE


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("filling a disk needs root: a small tmpfs is mounted")
    path = tmp_path / "disk"
    path.mkdir()
    if _libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", 0, f"size={ROOM}".encode()) != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield path
    finally:
        _libc.umount2(str(path).encode(), 2)  # MNT_DETACH


@pytest.mark.root
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ballast", [7 * LOG_FILE + 4096, *in_campaigns(0, 7 * LOG_FILE, 8 * LOG_FILE - 4096)])
async def test_sends_are_refused_while_the_disk_is_full_and_go_on_after(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, ballast: int
) -> None:
    """#2138, #4707, #2398: whatever the full disk hits first (the log, a queue, the index, the manifest)."""
    monkeypatch.setattr(dispatch, "_RETRY_SECONDS", 0.01)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(12 * LOG_FILE))
    (small_disk / "ballast").write_bytes(bytes(ballast))
    store = MessageStore.open(small_config(small_disk / "store", disk_space_warning_level_ratio=101))
    store.start()
    acked: dict[int, str] = {}
    refused: list[StoreError] = []
    number = 0

    async def send() -> None:
        nonlocal number
        value = f"c1-p0-{number}"
        number += 1
        try:
            appended = store.append(message(QUEUES[number % 6], value))
        except StoreError as error:
            refused.append(error)
            await asyncio.sleep(0.001)
            return
        if await store.wait_flushed(appended.end_offset):
            acked[appended.physical_offset] = value

    async def send_until_refused() -> None:
        while len(refused) < 20:
            await send()

    async def send_until_taken() -> None:
        before = len(acked)
        while len(acked) < before + 50:
            await send()

    await within(send_until_refused())
    assert {error.kind for error in refused} <= {Kind.DISK_FULL, Kind.DISK_FAILED, Kind.READ_ONLY}
    assert any(isinstance(error, DiskFull) for error in refused) or "No space left" in store.why_not_writable
    for physical, value in acked.items():
        record = intact(store.read_record(physical))
        assert record is not None
        assert record.body == body_of(value)
    filler.unlink()
    await within(send_until_taken())
    assert store.writable
    assert len((await audit(store)).records) >= len(acked)
    await store.close()
    assert not (small_disk / "store" / "abort").exists()
    await everything_is_there(small_disk / "store", len(acked))


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.timeout(300)
async def test_a_store_that_was_full_when_it_stopped_opens_again(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(bytes(14 * LOG_FILE))
    store = MessageStore.open(small_config(small_disk / "store", disk_space_warning_level_ratio=101))
    store.start()
    acked = number = 0
    while store.writable:
        try:
            appended = store.append(message(QUEUES[number % 6], f"c1-p0-{number}"))
        except StoreError:
            break
        number += 1
        acked += await store.wait_flushed(appended.end_offset)
    assert acked
    await store.close()
    (small_disk / "filler").unlink()
    await everything_is_there(small_disk / "store", acked)
