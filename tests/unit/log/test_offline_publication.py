"""Rebuilt files that were put in place while no store ran: the next start finds them right and restores nothing."""

import contextlib
import shutil
from pathlib import Path

import pytest

from tandemmq.common.files.exchange import exchange
from tandemmq.store.format.checkpoint import Checkpoint
from tandemmq.store.format.staged import StagedManifest
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.marks.manifest import NAME as MANIFEST
from tandemmq.store.log.marks.manifest import Manifest, read_manifest, write_manifest
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.faults.harness import records_on_disk
from tests.quiet import wait_for_files_ahead
from tests.unit.log.replica_kit import config, opened
from tests.unit.log.staging_kit import NAME, contents, sequential, stage
from tests.unit.log.test_adoption import check, dispatched, send


def publish(root: Path, staged: StagedManifest) -> None:
    """What spark/rebuilding/publishing.py does."""
    before, checkpoint = read_manifest(root), Checkpoint()
    with contextlib.suppress(FileNotFoundError):
        checkpoint = Checkpoint.decode((root / "checkpoint").read_bytes())
    if before is not None and not before.belongs_to((checkpoint.physic, checkpoint.logics, checkpoint.index)):
        before = None
    (root / MANIFEST).unlink(missing_ok=True)
    names = [Path("consumequeue", topic, str(queue_id)) for topic, queue_id in staged.queues]
    for name in names + ([Path("index")] if staged.index is not None else []):
        if (root / name).exists():
            exchange(root / NAME / name, root / name)
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / NAME / name).rename(root / name)
    manifest = Manifest.of_rebuilt(staged, checkpoint, before)
    if manifest is not None:
        write_manifest(root, manifest, LocalDisk())
    shutil.rmtree(root / NAME)


async def store_at_rest(root: Path, messages: int = 900, *, killed: bool = False) -> int:
    """A store that was closed, or killed; gives the end of its log."""
    store = opened(root)
    send(store, 0, messages)
    end = await dispatched(store)
    if killed:
        copy = root.with_name("copy")
        await store._checkpointer.take()
        send(store, messages, messages + 50)
        end = await dispatched(store)
        wait_for_files_ahead(store)
        shutil.copytree(root, copy)
        await store.close()
        shutil.rmtree(root)
        copy.rename(root)
    else:
        await store.close()
    return end


def open_and_expect_nothing_to_do(root: Path) -> MessageStore:
    store = opened(root)
    assert store.recovery.manifest_current
    assert not store.rebuilding
    assert store.recovery.queues_to_rebuild == 0
    assert store.recovery.index_complete
    return store


@pytest.mark.parametrize("killed", [True, *in_campaigns(False)])
@pytest.mark.parametrize("lost", ["nothing", "queues and index", "manifest", "all three", "checkpoint too"])
async def test_all_of_it(tmp_path: Path, lost: str, killed: bool) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root, killed=killed)
    if lost in ("queues and index", "all three", "checkpoint too"):
        shutil.rmtree(root / "consumequeue")
        shutil.rmtree(root / "index")
    if lost in ("manifest", "all three", "checkpoint too"):
        (root / MANIFEST).unlink()
    if lost == "checkpoint too":
        (root / "checkpoint").unlink()
    publish(root, stage(config(root), end))
    newest = max(record.store_timestamp for _, _, record in records_on_disk(root, end))
    store = open_and_expect_nothing_to_do(root)
    assert store.recovery.began_at == end
    assert store.commit_log.last_store_timestamp >= newest, "or times would go back where the clock does"
    send(store, 950, 1200)
    await check(store)


@pytest.mark.parametrize("killed", [True, *in_campaigns(False)])
async def test_some_topics(tmp_path: Path, killed: bool) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root, killed=killed)
    publish(root, stage(config(root), end, topics={"Topic2"}, index=False))
    store = open_and_expect_nothing_to_do(root)
    send(store, 950, 1200)
    await check(store)


@pytest.mark.parametrize("killed", [True, *in_campaigns(False)])
async def test_the_index_alone(tmp_path: Path, killed: bool) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root, killed=killed)
    shutil.rmtree(root / "index")
    publish(root, stage(config(root), end, queues=False))
    store = open_and_expect_nothing_to_do(root)
    send(store, 950, 1200)
    await check(store)


async def test_queues_without_the_index(tmp_path: Path) -> None:
    """Its entries after the old manifest's position must not be lost."""
    root = tmp_path / "store"
    end = await store_at_rest(root, killed=True)
    publish(root, stage(config(root), end, index=False))
    store = open_and_expect_nothing_to_do(root)
    send(store, 950, 1200)
    await check(store)


async def test_the_log_goes_on_behind_what_was_rebuilt(tmp_path: Path) -> None:
    """A rebuild up to some offset only: the rest is added at the start."""
    root = tmp_path / "store"
    store = opened(root)
    send(store, 0, 500)
    middle = await dispatched(store)
    send(store, 500, 900)
    end = await dispatched(store)
    await store.close()
    (root / MANIFEST).unlink()
    publish(root, stage(config(root), middle))
    store = open_and_expect_nothing_to_do(root)
    assert store.recovery.records == 400
    await store.close()
    assert contents(root) == sequential(config(root), end)


async def test_a_kill_before_the_manifest_is_written_costs_a_look_at_the_log(tmp_path: Path) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root)
    staged = stage(config(root), end)
    publish(root, staged)
    (root / MANIFEST).unlink()
    store = opened(root)
    assert store.rebuilding
    await store.rebuilt()
    await check(store)


async def test_a_topic_that_has_expired_keeps_its_place(tmp_path: Path) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root)
    staged = stage(config(root), end)
    before = read_manifest(root)
    assert before is not None
    queues = before.queues | {("Old", 3): (40, 70)}
    known = Manifest(before.checkpoint, before.position, queues, before.index, damaged=2)
    manifest = Manifest.of_rebuilt(staged, Checkpoint(*before.checkpoint), known)
    assert manifest is not None
    assert manifest.queues == staged.queues | {("Old", 3): (70, 70)}
    assert manifest.damaged == 2, "the list of damage stays as it is, and must not get lost"
    assert Manifest.of_rebuilt(staged, Checkpoint(), None) is not None


async def test_nothing_is_claimed_where_nothing_is_known(tmp_path: Path) -> None:
    root = tmp_path / "store"
    end = await store_at_rest(root)
    staged = stage(config(root), end, topics={"Topic1"})
    assert Manifest.of_rebuilt(staged, Checkpoint(), None) is None
