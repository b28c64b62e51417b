"""Files beside the log that were damaged: each is reported, what it said is found again, and nothing else changes."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tandemmq.common.documents.sealed import seal
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import UnusableDirectory
from tandemmq.store.log.marks.checkpoint_file import CheckpointFile
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver
from tests.unit.log.replica_kit import config, message, opened

DEEP = b"[" * 100_000


class Told(NullObserver):
    """What was told of files."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def unusable(self, file: str) -> None:
        self.files.append(file)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def deep(path: Path) -> None:
    path.write_bytes(DEEP)


def as_sealed(**document: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(seal(document))

    return write


def flip_in_log(root: Path, offset: int) -> None:
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[offset] ^= 1
    log.write_bytes(data)


async def filled(root: Path) -> None:
    """A store with rot in its log that it knows of."""
    store = opened(root)
    places = [store.append(message(number)) for number in range(30)]
    await store.close()
    flip_in_log(root, places[3].physical_offset + 90)
    (root / "tandem.manifest").unlink()
    (root / "checkpoint").unlink()
    store = opened(root)
    assert len(store.damage) == 1
    await store.close()


@pytest.mark.parametrize("spoil", [flip, deep, as_sealed(version=9), as_sealed(version=1, position=-5)])
async def test_a_manifest_that_cannot_be_used_is_reported(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    await filled(tmp_path)
    spoil(tmp_path / "tandem.manifest")
    told = Told()
    store = MessageStore.open(config(tmp_path), observer=told)
    assert told.files == ["tandem.manifest"]
    assert any("tandem.manifest cannot be used" in note for note in store.recovery.notes)
    assert len(store.damage) == 1
    store.start()
    await store.close()
    again = opened(tmp_path)
    assert again._parts.problems == []
    await again.close()


BAD_RANGES: list[dict[str, object]] = [
    {"begin": -1, "end": 5, "kind": "rot", "reason": ""},
    {"begin": 5, "end": 5, "kind": "rot", "reason": ""},
    {"begin": "0", "end": 5, "kind": "rot", "reason": ""},
    {"begin": 0, "end": 5},
]


@pytest.mark.parametrize(
    "spoil",
    [flip, deep, Path.unlink, as_sealed(version=9, ranges=[]), *(as_sealed(ranges=[entry]) for entry in BAD_RANGES)],
)
async def test_damage_that_was_forgotten_is_found_again(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """The manifest is current: without the list nobody would look where the damage is."""
    await filled(tmp_path)
    store = opened(tmp_path)
    known = store.damage
    await store.close()
    spoil(tmp_path / "tandem.damage")
    told = Told()
    store = MessageStore.open(config(tmp_path), observer=told)
    assert told.files == ["tandem.damage"]
    assert [(one.begin, one.end) for one in store.damage] == [(one.begin, one.end) for one in known]
    store.start()
    await store.close()
    again = opened(tmp_path)
    assert again._parts.problems == []
    assert [(one.begin, one.end) for one in again.damage] == [(one.begin, one.end) for one in known]
    await again.close()


@pytest.mark.parametrize("at", [0, 8])
async def test_a_checkpoint_of_the_far_future_makes_no_message_of_the_far_future(tmp_path: Path, at: int) -> None:
    await filled(tmp_path)
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    newest = struct.unpack_from(">q", data, 8)[0]
    struct.pack_into(">q", data, at, newest | 1 << 60)
    (tmp_path / "checkpoint").write_bytes(data)
    store = opened(tmp_path)
    appended = store.append(message(40))
    assert newest <= appended.store_timestamp < newest + 3_600_000
    await store.close()


@pytest.mark.parametrize(
    "epochs", [[], [[2, 0], [2, 5]], [[2, 0], [1, 5]], [[1, -1]], [[True, 0]], [[1.5, 0]], [["1", 0]], [[1 << 63, 0]]]
)
async def test_epochs_that_cannot_be_true_are_refused(tmp_path: Path, epochs: list[list[int]]) -> None:
    await filled(tmp_path)
    as_sealed(version=1, role=None, fenced_by=0, epochs=epochs)(tmp_path / "tandem.epoch")
    with pytest.raises(UnusableDirectory, match=r"tandem\.epoch"):
        opened(tmp_path)


@pytest.mark.parametrize("bit", range(32 * 8, 40 * 8))
def test_a_changed_confirmed_offset_is_not_believed(tmp_path: Path, bit: int) -> None:
    """It says what consumers may see."""
    CheckpointFile(tmp_path, LocalDisk()).write(5, 5, 5)
    assert not CheckpointFile(tmp_path, LocalDisk()).value.is_changed
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    (tmp_path / "checkpoint").write_bytes(data)
    assert CheckpointFile(tmp_path, LocalDisk()).value.is_changed


async def test_forgotten_damage_at_the_end_of_the_log_is_no_torn_tail(tmp_path: Path) -> None:
    """Nothing valid follows it, but the manifest says that it was durable once."""
    store = opened(tmp_path)
    first, second = store.append(message(6)), store.append(message(12))
    await store.close()
    for at in (first.physical_offset, second.physical_offset):
        flip_in_log(tmp_path, at + 100)
        (tmp_path / "tandem.manifest").unlink()
        (tmp_path / "checkpoint").unlink()
        store = opened(tmp_path)  # the first is rot, since the second follows; the second is a torn tail
        await store.close()
    assert (store.commit_log.max_offset, len(store.damage)) == (second.physical_offset, 1)
    (tmp_path / "tandem.damage").unlink()
    for _ in range(2):
        store = opened(tmp_path)
        queue = store.queue("Topic0", 0)
        assert queue is not None
        assert (store.commit_log.max_offset, queue.max_offset) == (second.physical_offset, 1)
        assert [(one.begin, one.end) for one in store.damage] == [(0, second.physical_offset)]
        await store.close()
    store = opened(tmp_path)
    assert store.append(message(3)).physical_offset == second.physical_offset
    await store.close()


async def test_the_number_of_a_damaged_record_is_not_given_again_where_queue_and_damage_list_are_lost(
    tmp_path: Path,
) -> None:
    """Only the manifest knows it then. It is read although the whole log is walked to find the damage again."""
    store = opened(tmp_path)
    places = [store.append(message(number)) for number in range(30)]
    await store.close()
    flip_in_log(tmp_path, places[24].physical_offset + 90)  # the last of Topic0, queue 0
    (tmp_path / "tandem.manifest").unlink()
    await opened(tmp_path).close()
    shutil.rmtree(tmp_path / "consumequeue")
    store = opened(tmp_path)
    await store.rebuilt()
    await store.close()
    (tmp_path / "tandem.damage").unlink()
    store = opened(tmp_path)
    await store.rebuilt()
    assert store.append(message(24)).queue_offset == places[24].queue_offset + 1
    await store.close()
