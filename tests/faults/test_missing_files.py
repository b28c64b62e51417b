"""Files of a store are missing: served, repaired or refused, never silently lost, and no number given twice."""

import asyncio
import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.common.files.boot import boot_id
from tandemmq.store.format.walker import python_walker
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import LogFilesMissing, NothingMissing, WrongRole
from tandemmq.store.log.inspect import inspect_store
from tandemmq.store.log.marks.abort_file import Exit
from tandemmq.store.log.marks.end_file import reached_end
from tandemmq.store.log.marks.manifest import read_manifest
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.accepted_loss import accept_loss
from tests.contract.store_process import StoreProcess
from tests.faults import missing
from tests.faults.harness import QUEUE_FILE, message, settle
from tests.seed import SEED


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_whatever_is_missing_is_told(tmp_path: Path) -> None:
    """All combinations of one and two, and a twentieth of the others; `make soak ARGS="--missing"` tries all."""
    told = await missing.one_round(tmp_path, SEED, len(missing.PARTS), random.Random(SEED))
    assert min(told["served"], told["refused"]) > 10


@pytest.mark.slow
def test_a_volume_that_is_not_mounted(tmp_path: Path) -> None:
    """The service ends with the reason, and makes nothing in the empty mount point."""
    store = StoreProcess(tmp_path / "data")
    with store, store.client() as client:
        for number in range(40):
            client.send("orders", b"%d" % number, queue_id=0)
        assert store.stop() == 0
    logs = store.directory / "commitlog"
    logs.rename(tmp_path / "elsewhere")
    logs.mkdir()
    store.launch()
    assert store.wait() == 1
    assert list(logs.iterdir()) == []
    said = store.log.read_text()
    assert "There are no log files in" in said
    assert "00000000000000000000" in said
    assert "Is the volume mounted?" in said
    logs.rmdir()
    (tmp_path / "elsewhere").rename(logs)
    with store, store.client() as client:
        assert client.send("orders", b"next", queue_id=0).queue_offset == 40


async def test_an_older_copy_of_the_last_file_after_a_kill(tmp_path: Path) -> None:
    """Within one boot it was no power cut: refused, with nothing changed. After another boot nobody can tell."""
    original = await missing.build(tmp_path / "original", 7, clean=False)
    manifest = read_manifest(original.root)
    assert manifest is not None
    assert manifest.position <= original.older_end
    last = Path("commitlog") / missing.names(original.root)[-2]
    for boot in (None, bytes([1]) * 16):
        root = shutil.copytree(original.root, tmp_path / f"older-{boot is None}")
        missing.replace_by_older(original, root)
        before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "lock"}
        if boot is not None:
            store = MessageStore.open(missing.config_of(root), boot=boot)
            assert store.commit_log.max_offset == original.older_end
            await store.close()
            continue
        with pytest.raises(LogFilesMissing, match=f"ends at offset {original.older_end:,}, but tandem.end") as refused:
            MessageStore.open(missing.config_of(root))
        assert f"Missing: {last.name} (from {original.older_end:,} on)" in refused.value.message
        assert before == {path: path.read_bytes() for path in before}
        assert any(
            "tandem.end says that it had reached" in one for one in inspect_store(root, python_walker()).problems
        )
        shutil.copy(original.root / last, root / last)
        await missing.judge(
            original, (), missing.names(root), MessageStore.open(missing.config_of(root)), accepted=False
        )


async def test_a_loss_within_a_file_is_accepted(tmp_path: Path) -> None:
    """The log goes on in the next file: no number is given twice, now and after further starts."""
    original = await missing.build(tmp_path / "data", 8, clean=False)
    config = missing.config_of(original.root)
    missing.replace_by_older(original, original.root)
    loss = accept_loss(config, LocalDisk())
    assert (loss.begin, loss.numbers_known) == (original.older_end, True)
    for _ in range(2):
        await missing.judge(
            original, ("older",), missing.names(original.root), MessageStore.open(config), accepted=True
        )
        store = MessageStore.open(config)
        assert [(found.kind, found.begin) for found in store.damage] == [("rot", original.older_end)]
        await store.close()


async def test_rot_in_the_last_record_is_no_torn_tail_where_the_machine_ran_on(tmp_path: Path) -> None:
    """Its number was acknowledged: it is not given again."""
    original = await missing.build(tmp_path / "data", 9, clean=False)
    last = original.acked[-1]
    path = original.root / "commitlog" / f"{last.physical - last.physical % missing.LOG_FILE:020d}"
    content = bytearray(path.read_bytes())
    content[last.physical % missing.LOG_FILE + 4] ^= 1  # in the magic number
    path.write_bytes(content)
    store = MessageStore.open(missing.config_of(original.root))
    store.start()
    try:
        assert [(found.kind, found.begin) for found in store.damage] == [("rot", last.physical)]
        assert store.append(message(last.queue, "next")).queue_offset == last.offset + 1
    finally:
        await store.close()


async def test_what_a_failed_flush_may_have_dropped_is_not_missing(tmp_path: Path) -> None:
    """The kernel may have thrown pages away: the log may be shorter, though the machine ran on."""
    store = MessageStore.open(missing.config_of(tmp_path / "live"))
    store.start()
    appended = store.append(message(("orders", 0), "one"))
    assert await store.wait_flushed(appended.end_offset)
    await settle(store)
    assert reached_end(tmp_path / "live", Exit.CRASH, boot_id()) == appended.end_offset
    store._on_flush_failed(OSError("the disk is bad"))
    assert reached_end(tmp_path / "live", Exit.CRASH, boot_id()) == 0
    await store.close()


async def test_damage_is_told_in_log_order(tmp_path: Path) -> None:
    """Missing files are found before the rest is read; rot in front of them comes first all the same."""
    original = await missing.build(tmp_path / "data", 2, clean=True)
    missing.remove(original.root, ["middle"], original.acked[-1].physical + 1)
    first = min((original.root / "commitlog").iterdir())
    content = bytearray(first.read_bytes())
    content[original.acked[1].physical - int(first.name) + 88] ^= 1  # in the body
    first.write_bytes(content)
    store = MessageStore.open(replace(missing.config_of(original.root), verify_whole_log_on_start=True))
    try:
        assert [found.kind for found in store.recovery.damage] == ["rot", "missing"]
    finally:
        await store.close()


async def test_files_that_come_back_are_served_again(tmp_path: Path) -> None:
    original = await missing.build(tmp_path / "original", 1, clean=True)
    root, files = tmp_path / "data", missing.names(original.root)
    shutil.copytree(original.root, root)
    for name in (files[0], files[2]):
        (root / "commitlog" / name).unlink()
    for _ in range(2):  # the second start knows it from the list of damage
        store = MessageStore.open(missing.config_of(root))
        store.start()
        await settle(store)
        assert [(known.kind, known.begin) for known in store.damage] == [
            ("missing", int(files[0])),
            ("missing", int(files[2])),
        ]
        await store.close()
    for name in (files[0], files[2]):
        shutil.copy(original.root / "commitlog" / name, root / "commitlog")
    await missing.judge(original, (), files, MessageStore.open(missing.config_of(root)), accepted=False)
    store = MessageStore.open(missing.config_of(root))
    assert store.damage == []
    await store.close()


async def test_inspect_names_what_is_missing(tmp_path: Path) -> None:
    original = await missing.build(tmp_path / "data", 5, clean=True)
    used = max(one.physical for one in original.acked) + 1
    missing.remove(original.root, ("first", "middle"), used)
    found = inspect_store(original.root, python_walker())
    assert [(one.kind, one.begin) for one in found.damage] == [("missing", 16_384), ("missing", 49_152)]
    assert not [problem for problem in found.problems if "commitlog" in problem]
    missing.remove(original.root, ("last",), used)
    found = inspect_store(original.root, python_walker())
    assert [problem for problem in found.problems if "log files are missing" in problem]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["last", "log"])
def test_the_command_says_what_is_lost_and_does_it_when_told(part: str, tmp_path: Path) -> None:
    original = asyncio.run(missing.build(tmp_path / "data", 6, clean=True))
    missing.remove(original.root, (part,), max(one.physical for one in original.acked) + 1)
    before = missing.names(original.root)
    command = [sys.executable, "-m", "tandemmq.cli.main", "accept-loss", "--data", str(original.root), "--json"]
    command += [
        "--set",
        f"mappedFileSizeCommitLog={missing.LOG_FILE}",
        "--set",
        f"mappedFileSizeConsumeQueue={QUEUE_FILE}",
    ]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 1
    assert json.loads(asked.stdout)["accepted"] is False
    assert missing.names(original.root) == before
    done = subprocess.run([*command, "--yes-lose-messages"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["accepted"], told["numbers_known"]) == (True, True)
    left = before if part != "log" else []
    assert missing.names(original.root) == [*left, f"{told['end_offset']:020d}"]


async def test_files_that_have_expired_are_not_missing(tmp_path: Path) -> None:
    """Whether the store was stopped or killed behind it."""
    for clean in (True, False):
        original = await missing.build(tmp_path / f"original-{clean}", 2, clean=clean)
        assert min(map(int, missing.names(original.root))) > 0
        store = MessageStore.open(missing.config_of(original.root))
        assert store.damage == []
        await store.close()


async def test_a_checkpoint_while_files_expire_does_not_make_them_missing(tmp_path: Path) -> None:
    """The manifest has said that they go; one that is written before they have gone says so too."""
    original = await missing.build(tmp_path / "data", 2, clean=True)
    store = MessageStore.open(missing.config_of(original.root))
    store.start()
    begin = store.commit_log.min_offset
    await store._checkpointer.expire_below(begin + missing.LOG_FILE)
    await store._checkpointer.take()
    manifest = read_manifest(original.root)
    assert manifest is not None
    assert manifest.begin == begin + missing.LOG_FILE
    await store.close()


async def test_no_loss_is_accepted_where_there_is_none(tmp_path: Path) -> None:
    for clean in (True, False):
        original = await missing.build(tmp_path / f"original-{clean}", 3, clean=clean)
        before = missing.names(original.root)
        with pytest.raises(NothingMissing):
            accept_loss(missing.config_of(original.root), LocalDisk())
        assert missing.names(original.root) == before


async def test_a_slave_takes_what_is_missing_from_its_master(tmp_path: Path) -> None:
    original = await missing.build(tmp_path / "original", 4, clean=True)
    config = missing.config_of(original.root)
    missing.remove(original.root, ("log",), 0)

    with pytest.raises(LogFilesMissing):
        MessageStore.open(config)
    with pytest.raises(WrongRole, match="slave"):
        accept_loss(replace(config, broker_role="SLAVE"), LocalDisk())
