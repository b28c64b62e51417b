"""Records whose topic or queue id was changed by rot: no checksum covers them, and a queue is a directory.

One flipped bit makes an ``o`` a slash. Such a record is in no queue; the store opens, now and the next time, and every
other record is where it was.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.store.format.record import decode_record, encode_record
from tandemmq.store.format.unit import is_queue_name
from tests.campaigns import in_campaigns
from tests.stored_messages import message_of
from tests.unit.log.replica_kit import derived, log_of, master_log, message, opened

SIZES = [100, 700, 0, 3_000] * 25
STRANGE = {
    "a slash": (b"Top/c1", 1),
    "a NUL": (b"Top\0c1", 1),
    "the parent": (b"..", 1),
    "itself": (b".", 1),
    "nothing": (b"", 1),
    "a path out": (b"../../../x", 1),
    "too long": (b"x" * 127 + b"\xff" * 60, 1),
    "no UTF-8": (b"Top\xffc1", 1),
    "a negative queue": (b"Topic1", -5),
    "the least queue": (b"Topic1", -(1 << 31)),
}


async def log_with(root: Path, topic: bytes, queue_id: int) -> tuple[bytes, int]:
    """A master's log in which the second record names that queue, and its log offset."""
    log = bytearray(await master_log(root, SIZES))
    at = decode_record(log, 0).size
    old = decode_record(log, at)
    same = replace(message_of(old), topic="?" * len(topic), queue_id=queue_id)
    rest = old.size - len(encode_record(replace(same, body=b""), 0, 0, 0))
    record = encode_record(replace(same, body=bytes(rest)), old.queue_offset, at, old.store_timestamp)
    log[at : at + old.size] = record.replace(b"?" * len(topic), topic, 1)
    assert decode_record(log, at).queue_id == queue_id
    return bytes(log), at


def outside(root: Path) -> set[str]:
    """What stands beside the store's directory."""
    return {path.name for path in root.parent.iterdir()}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("manifest", [False, *in_campaigns(True)])
async def test_the_store_opens_again_and_again(tmp_path: Path, what: str, manifest: bool) -> None:
    """By recovery, by repair (without a manifest), and in later lives."""
    log, at = await log_with(tmp_path / "store", *STRANGE[what])
    root, sound = tmp_path / "store", derived(tmp_path / "store")
    for number, path in enumerate(sorted((root / "commitlog").iterdir())):
        size = path.stat().st_size
        path.write_bytes(log[number * size : (number + 1) * size].ljust(size, b"\0"))
    if not manifest:
        (root / "tandem.manifest").unlink()
        (root / "checkpoint").unlink()
        shutil.rmtree(root / "consumequeue")
    beside = outside(root)
    for life in range(3):
        store = opened(root, verify_whole_log_on_start=life == 1)
        await store.rebuilt()
        assert store.append(message(1_000 + life)).size
        queue = store.queue("Topic1", 1)
        assert queue is not None
        units = queue.read(0, 20) + queue.read(20, 20)
        if not manifest:  # else the unit that was written before the rot may be there
            assert all(unit.physical_offset != at for unit in units)
        await store.close()
        assert outside(root) == beside
        for name in (root / "consumequeue").rglob("*"):
            assert name.is_dir() or (name.parent.name.isdigit() and name.parent.parent.parent == root / "consumequeue")
    names = {name for name in derived(root) if name.startswith("consumequeue/")}
    assert names >= {name for name in sound if name.startswith("consumequeue/")}


@pytest.mark.parametrize("what", STRANGE)
async def test_a_slave_takes_such_records_as_they_are(tmp_path: Path, what: str) -> None:
    log, _ = await log_with(tmp_path / "master", *STRANGE[what])
    beside = outside(tmp_path / "slave")
    slave = opened(tmp_path / "slave", "SLAVE")
    slave.append_replica(0, memoryview(log))
    await slave._dispatcher.drain()
    assert (slave.dispatched_offset, log_of(slave), slave.flags.failed) == (len(log), log, False)
    await slave.close()
    again = opened(tmp_path / "slave", "SLAVE")
    assert log_of(again) == log
    await again.close()
    assert outside(tmp_path / "slave") == beside | {"slave"}


def test_which_queues_can_be() -> None:
    for name, queue_id in STRANGE.values():
        assert not is_queue_name(name.decode(errors="replace"), queue_id)
    for topic in ("T", "%RETRY%g", "订单", "x" * 255, "...", "a.b", " "):
        assert is_queue_name(topic, 0)
    assert not is_queue_name("x" * 256, 0)
    assert not is_queue_name("é" * 128, 0)
    assert is_queue_name("T", 0x7FFFFFFF)
