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

from tandemmq.store.format.walker import python_walker
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import LogFilesMissing, NothingMissing, WrongRole
from tandemmq.store.log.inspect import inspect_store
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.accepted_loss import accept_loss
from tests.contract.store_process import StoreProcess
from tests.faults import missing
from tests.faults.harness import QUEUE_FILE, settle
from tests.seed import SEED


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_whatever_is_missing_is_told(tmp_path: Path) -> None:
    """All combinations of one and two, and a twentieth of the others; `make soak ARGS="--missing"` tries all."""
    told = await missing.one_round(tmp_path, SEED, len(missing.PARTS), random.Random(SEED))
    assert min(told["served"], told["refused"]) > 10


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


def test_the_command_says_what_is_lost_and_does_it_when_told(tmp_path: Path) -> None:
    original = asyncio.run(missing.build(tmp_path / "data", 6, clean=True))
    missing.remove(original.root, ("last",), max(one.physical for one in original.acked) + 1)
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
    assert missing.names(original.root) == [*before, f"{told['end_offset']:020d}"]


async def test_files_that_have_expired_are_not_missing(tmp_path: Path) -> None:
    """Whether the store was stopped or killed behind it."""
    for clean in (True, False):
        original = await missing.build(tmp_path / f"original-{clean}", 2, clean=clean)
        assert min(map(int, missing.names(original.root))) > 0
        store = MessageStore.open(missing.config_of(original.root))
        assert store.damage == []
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
