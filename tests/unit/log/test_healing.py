"""Damaged stretches of a log are put right with a peer's bytes, or stay reported."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import RepairRefused
from tandemmq.store.log.marks import abort_file
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.damage import DamagedRange
from tests.campaigns import examples
from tests.quiet import wait_for_files_ahead
from tests.unit.log.replica_kit import FILE_SIZE, config, derived, log_of, master_log, opened

SIZES = [100, 3_000, 0, 700, 9_000] * 12


async def chunks(data: bytes, size: int = 1_000) -> AsyncIterator[bytes]:
    """The peer's bytes as they may come."""
    for at in range(0, len(data), size):
        yield data[at : at + size]
        await asyncio.sleep(0)


def records(log: bytes) -> list[tuple[int, int]]:
    """Begin and end of each record."""
    found, at = [], 0
    while at + 8 <= len(log):
        size = int.from_bytes(log[at : at + 4], "big")
        if log[at + 4 : at + 8] == bytes.fromhex("CBD43194"):
            at += size
            continue
        found.append((at, at + size))
        at += size
    return found


def damage(root: Path, at: int, data: bytes = b"rotten") -> None:
    """Change bytes of a log whose store is closed."""
    start = at - at % FILE_SIZE
    with (root / "commitlog" / f"{start:020d}").open("r+b") as file:
        file.seek(at - start)
        file.write(data[: start + FILE_SIZE - at])


def reopened(root: Path, **options: Any) -> MessageStore:
    """The store, having read all of its log."""
    return opened(root, verify_whole_log_on_start=True, **options)


async def test_rot_of_one_record_is_healed_and_derived_files_are_as_before(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    before = derived(tmp_path / "a")
    begin, end = records(log)[21]
    damage(tmp_path / "a", begin + 120)
    store = reopened(tmp_path / "a")
    await store.rebuilt()
    assert [(known.begin, known.end) for known in store.damage] == [(begin, end)]
    assert store.read_record(begin) is None
    healed = await store.healing.heal(begin, end, "a test", chunks(log[begin:end]))
    assert healed.records == 1
    assert 0 < healed.replaced_bytes <= 6
    assert store.damage == []
    assert store.read_record(begin) == log[begin:end]
    assert log_of(store) == log
    await store.close()
    again = reopened(tmp_path / "a")
    assert again.damage == []
    assert log_of(again) == log
    await again.close()
    assert derived(tmp_path / "a") == before


async def test_units_and_entries_of_a_record_that_was_never_dispatched_are_made(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    before = derived(tmp_path / "a")
    begin, end = records(log)[21]
    damage(tmp_path / "a", begin + 120)
    for name in ("tandem.manifest", "checkpoint"):
        (tmp_path / "a" / name).unlink()
    for path in sorted((tmp_path / "a").glob("consumequeue/*/*/*")) + sorted((tmp_path / "a" / "index").iterdir()):
        path.unlink()
    store = reopened(tmp_path / "a")
    await store.rebuilt()
    assert len(list(store.query_index("Topic0", "key21", 0, 1 << 60))) == 0
    await store.healing.heal(begin, end, "a test", chunks(log[begin:end]))
    assert list(store.query_index("Topic0", "key21", 0, 1 << 60)) == [begin]
    await store.close()
    assert derived(tmp_path / "a") == before


@pytest.mark.parametrize("what", ["rotten too", "short", "long", "shifted", "other", "half a record"])
async def test_what_does_not_mend_is_refused_and_the_damage_stays(tmp_path: Path, what: str) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    other = await master_log(tmp_path / "b", [*SIZES[:21], 90, *SIZES[22:]])
    begin, _ = records(log)[20]
    first_end = records(log)[20][1]
    _, end = records(log)[21]
    damage(tmp_path / "a", begin + 120)
    damage(tmp_path / "a", first_end + 4)
    store = reopened(tmp_path / "a")
    here = log_of(store)
    assert [(known.begin, known.end) for known in store.damage] == [(begin, end)]
    good = log[begin:end]
    data = {
        "rotten too": good[:130] + b"!" + good[131:],
        "short": good[: first_end - begin],
        "long": good + b"!",
        "shifted": good[1:] + b"!",
        "other": other[begin:end],
        "half a record": good[:-3],
    }[what]
    with pytest.raises(RepairRefused):
        await store.healing.heal(begin, end, "a test", chunks(data))
    assert [(known.begin, known.end) for known in store.damage] == [(begin, end)]
    assert log_of(store) == here
    await store.close()
    again = opened(tmp_path / "a")
    assert [(known.begin, known.end) for known in again.damage] == [(begin, end)]
    await again.healing.heal(begin, end, "a test", chunks(good))
    assert again.damage == []
    assert log_of(again) == log
    await again.close()


async def test_a_record_that_is_valid_here_is_never_replaced(tmp_path: Path) -> None:
    """The peer's record may be valid too: whose store time is right, no checksum tells."""
    log = await master_log(tmp_path / "a", SIZES)
    begin, end = records(log)[21]
    store = opened(tmp_path / "a")
    store._parts.note_damage(DamagedRange(begin, end, "rot", "somebody was wrong"))
    changed = bytearray(log[begin:end])
    changed[63] ^= 1
    healed = await store.healing.heal(begin, end, "a test", chunks(bytes(changed)))
    assert healed.replaced_bytes == 0
    assert log_of(store) == log
    assert store.damage == []
    await store.close()


async def test_what_is_not_damaged_is_refused(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    begin, end = records(log)[21]
    store = opened(tmp_path / "a")
    for one in ((begin, end), (0, len(log)), (-1, 5), (end, begin)):
        with pytest.raises(RepairRefused, match="not known as a damaged"):
            await store.healing.heal(*one, "a test", chunks(log[begin:end]))
    assert log_of(store) == log
    await store.close()


async def test_a_look_that_begins_within_a_record_finds_no_rot(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    store = reopened(tmp_path / "a")
    begin, end = records(log)[3]
    found = await store.healing.examine(begin + 1, end, note=True)
    assert found.good_until < end
    assert not store.damage
    await store.close()


async def test_rot_right_behind_rot_is_noted_as_well(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    store = reopened(tmp_path / "a")
    places = records(log)[3:5]
    for begin, end in places:
        damage(tmp_path / "a", begin + 4)
        await store.healing.examine(begin, end, note=True)
    assert [(one.begin, one.end) for one in store.damage] == places
    await store.close()


async def test_a_walk_ends_where_known_damage_lies_within_a_record(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    store = reopened(tmp_path / "a")
    begin, end = records(log)[3]
    store._parts.note_damage(DamagedRange(begin + 1, end, "rot", "noted by somebody who was wrong"))
    for stop in (end - 1, end, records(log)[4][1]):
        found = await store.healing.examine(begin, stop)
        assert found.good_until == begin
        assert found.damage is not None
    await store.close()


async def test_a_stretch_over_several_files_is_healed(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    all_of_them = records(log)
    begin = next(begin for begin, _ in all_of_them if begin > FILE_SIZE // 2)
    end = next(begin for begin, _ in all_of_them if begin > 2 * FILE_SIZE + 5_000)
    for at in range(begin, end, 50):
        damage(tmp_path / "a", at, bytes(at % 7 for _ in range(40)))
    store = reopened(tmp_path / "a")
    assert store.damage
    while store.damage:  # one for each file
        one = store.damage[0]
        await store.healing.heal(one.begin, one.end, "a test", chunks(log[one.begin : one.end], 100_000))
    assert log_of(store) == log
    await store.close()
    again = reopened(tmp_path / "a")
    assert again.damage == []
    await again.close()


async def test_a_slaves_damaged_tail_is_kept_reported_and_fetched_again(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    slave = opened(tmp_path / "b", "SLAVE")
    slave.append_replica(0, memoryview(log))
    await slave.close()
    begin, end = records(log)[-2]
    for at in (begin, end):
        damage(tmp_path / "b", at + 100)
    again = opened(tmp_path / "b", "SLAVE", verify_whole_log_on_start=True)
    assert again.commit_log.max_offset == begin
    assert [(one.begin, one.kind) for one in again.recovery.damage] == [(begin, "torn")]
    (kept,) = (tmp_path / "b" / "broken").iterdir()
    assert kept.name == f"{begin:020d}.broken"
    assert kept.read_bytes()[:100] == log[begin : begin + 100]
    again.append_replica(begin, memoryview(log)[begin:])
    assert log_of(again) == log
    await again.close()


async def test_half_a_record_at_the_end_of_a_slaves_log_is_no_damage(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    begin, end = records(log)[-1]
    slave = opened(tmp_path / "b", "SLAVE")
    slave.append_replica(0, memoryview(log)[: end - 1_000])
    copied = tmp_path / "c"
    wait_for_files_ahead(slave)
    shutil.copytree(tmp_path / "b", copied)  # as a killed one leaves it
    await slave.close()
    again = opened(copied, "SLAVE")
    assert again.commit_log.max_offset == begin
    assert again.recovery.damage == []
    assert not (copied / "broken").exists()
    await again.close()


class DyingDisk(LocalDisk):
    """Kills the process at the n-th side effect on the disk, before it happens or when half of it has."""

    left = -1

    def _step(self) -> bool:
        self.left -= 1
        return self.left == 0

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Half of it is written."""
        if self._step():
            super().pwrite(fd, bytes(data[: len(data) // 2]), offset)
            os.kill(os.getpid(), signal.SIGKILL)
        super().pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Not made durable."""
        if self._step():
            os.kill(os.getpid(), signal.SIGKILL)
        super().sync(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Not renamed."""
        if self._step():
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(source, target)


def heal_and_die(root: Path, log: bytes, step: int) -> bool:
    """In a process of its own, killed at the n-th side effect; whether it came to the end."""
    child = os.fork()
    if child == 0:
        disk = DyingDisk()

        async def run() -> None:
            store = MessageStore.open(config(root), disk=disk)
            store.start()
            await store.rebuilt()
            disk.left = step
            for one in store.damage:
                await store.healing.heal(one.begin, one.end, "a test", chunks(log[one.begin : one.end], 700))
            os._exit(0)

        try:
            asyncio.run(run())
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return False
    assert os.WEXITSTATUS(status) == 0
    return True


@pytest.mark.slow
async def test_killed_at_each_step_the_damage_is_reported_until_all_is_healed(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "a", SIZES)
    before = derived(tmp_path / "a")
    places = records(log)[20:23]
    for step in range(1, 100):
        for begin, _ in places:
            damage(tmp_path / "a", begin + 90, b"rotten" * 3)
        store = reopened(tmp_path / "a")
        await store.close()
        assert [(one.begin, one.end) for one in store.damage] == [(places[0][0], places[2][1])]
        ended = heal_and_die(tmp_path / "a", log, step)
        assert abort_file.last_exit(tmp_path / "a") is not abort_file.Exit.CLEAN
        again = opened(tmp_path / "a")
        await again.rebuilt()
        good = log_of(again) == log
        assert again.damage or ((good and ended) or good)
        for one in again.damage:  # whatever is not known as damaged is good
            assert (one.begin, one.end) == (places[0][0], places[2][1])
            await again.healing.heal(one.begin, one.end, "a test", chunks(log[one.begin : one.end]))
        assert again.damage == []
        assert log_of(again) == log
        await again.close()
        assert derived(tmp_path / "a") == before
        if ended:
            assert step > 4
            return
    raise AssertionError("it never came to the end")


@examples(4, 15, st.data())
def test_whatever_is_damaged_comes_back_and_nothing_else_changes(data: st.DataObject) -> None:
    async def run(root: Path) -> None:
        log = await master_log(root / "a", SIZES)
        for at in data.draw(st.lists(st.integers(0, records(log)[-1][0] - 150), min_size=1, max_size=6)):
            damage(root / "a", at, data.draw(st.binary(min_size=1, max_size=150)))
        store = reopened(root / "a")
        await store.rebuilt()
        for one in store.damage:
            await store.healing.heal(one.begin, one.end, "a test", chunks(log[one.begin : one.end]))
        assert store.damage == []
        for begin, end in records(log):
            file = store.commit_log.files.find(begin)
            assert file is not None
            found = store._parts.walkers.best.walk(
                file.map, begin - file.start, end - file.start, file.start, check_crc=True
            )
            assert found.count == 1
        await store.close()

    with TemporaryDirectory() as directory:
        asyncio.run(run(Path(directory)))
