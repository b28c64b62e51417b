"""Putting rebuilt files in the place of a store's own, while no broker runs on the directory."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tandemmq.common.files.exchange import NOT_SUPPORTED, exchange
from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.record_lock import NAME as LOCK
from tandemmq.common.files.record_lock import take_record_lock
from tandemmq.common.files.replacing import write_atomically
from tandemmq.spark.errors import StagingMismatch, StoreInUse
from tandemmq.spark.reading.log_files import identity_of, list_log_files
from tandemmq.spark.rebuilding.staging import StagingDirectory, sync_file
from tandemmq.store.format import manifest as manifest_file
from tandemmq.store.format.checkpoint import Checkpoint, CorruptCheckpoint
from tandemmq.store.format.manifest import Manifest
from tandemmq.store.format.staged import StagedManifest


def refuse_if_in_use(root: Path) -> None:
    """Raises StoreInUse."""
    with store_lock(root):
        pass


@contextmanager
def store_lock(root: Path) -> Iterator[None]:
    """Keep brokers, ours and RocketMQ's, off a store directory: the lock they take themselves. Raises StoreInUse."""
    fd = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            take_record_lock(fd)
        except OSError as error:
            raise StoreInUse(
                f"A broker runs on {root}.",
                remedy="Name its address, so that it takes the rebuilt files over (--running), or stop it first.",
            ) from error
        yield
    finally:
        os.close(fd)


def publish_offline(root: Path, staging: StagingDirectory, rebuilt: StagedManifest, identity: list[list[Any]]) -> None:
    """Exchange the files of a store at rest with rebuilt ones, queue by queue, then the index; removes the old ones.

    A kill on the way leaves whole queues, old or new, and no ``tandem.manifest``: the next start looks for itself.

    Raises:
        StoreInUse: a broker was started meanwhile.
        StagingMismatch: the log was written to since it was read.
        OSError: the disk refused.
    """
    with store_lock(root):
        files = list_log_files(root)
        if identity_of(files) != identity:
            raise StagingMismatch(
                f"The commit log in {root} has changed since it was read.",
                remedy="Run the rebuild again; while the store runs, with its address.",
            )
        for file in files:
            if file.start < rebuilt.end:
                sync_file(file.path)  # units must not outlive their records, which a killed broker may not have synced
        checkpoint, before = _checkpoint(root), _manifest(root)
        if before is not None and not before.belongs_to((checkpoint.physic, checkpoint.logics, checkpoint.index)):
            before = None
        (root / manifest_file.NAME).unlink(missing_ok=True)
        LOCAL.sync_dir(root)
        for topic, queue_id in sorted(rebuilt.queues):
            name = Path("consumequeue") / topic / str(queue_id)
            _put_in_place(staging.path / name, root / name)
        if rebuilt.index is not None:
            staging.index.mkdir(exist_ok=True)  # without a key in the log there is no file
            _put_in_place(staging.index, root / "index")
        manifest = Manifest.of_rebuilt(rebuilt, checkpoint, before)
        if manifest is not None:
            write_atomically(LOCAL, root / manifest_file.NAME, manifest.encode())
        shutil.rmtree(staging.path)


def _put_in_place(rebuilt: Path, place: Path) -> None:
    """Give a directory its place in the store; what was there goes to where it came from."""
    if place.exists():
        try:
            exchange(rebuilt, place)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
            aside = rebuilt.with_name(rebuilt.name + ".old")  # a kill between the two leaves none: it is made again
            place.rename(aside)
            rebuilt.rename(place)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        rebuilt.rename(place)
        LOCAL.sync_dir(place.parent.parent)
    LOCAL.sync_dir(place.parent)


def _checkpoint(root: Path) -> Checkpoint:
    """The store's checkpoint; zeros without a readable one, which no manifest belongs to but a new store's."""
    try:
        return Checkpoint.decode((root / "checkpoint").read_bytes())
    except (FileNotFoundError, CorruptCheckpoint):
        return Checkpoint()


def _manifest(root: Path) -> Manifest | None:
    try:
        return Manifest.decode((root / manifest_file.NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
