"""A store that takes over rebuilt files again and again, and dies at a chosen operation of its disk."""

import asyncio
import errno
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandemmq.store.format.staged import FILE_NAME
from tandemmq.store.log.adoption.adoption import ADOPTED
from tandemmq.store.log.adoption.staged_files import STAGING_PATTERN
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import AdoptionRefused, StoreClosed
from tandemmq.store.log.message_store import MessageStore
from tests.faults.harness import PATIENCE
from tests.unit.log.staging_kit import stage

_OF_NAMES = ("rename", "exchange", "sync_dir", "unlink")


class DeadlyDisk(LocalDisk):
    """The real disk, on which the process dies at operation ``kill_at`` of an adoption: before it, or after it.

    ``from_swap``: only changes of names count, from the moment on in which files begin to be put in place.
    """

    def __init__(self, kill_at: int, behind: bool, can_exchange: bool, from_swap: bool) -> None:
        self._from_swap = self._waits = from_swap
        self.armed = False
        self._left = kill_at
        self._behind = behind
        self._can_exchange = can_exchange
        self._lock = threading.Lock()
        self.tell: Callable[..., None] = lambda *_: None

    def _pass(self, kind: str, work: Callable[[], Any]) -> Any:
        dies = False
        if self.armed and not self._waits and (kind in _OF_NAMES or not self._from_swap):
            with self._lock:
                self._left -= 1
                dies = self._left == 0
        if dies:
            self.tell("died", kind)
        if dies and not self._behind:
            os.kill(os.getpid(), signal.SIGKILL)
        outcome = work()
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    def allocate(self, fd: int, offset: int, length: int) -> None:
        self._pass("allocate", lambda: super(DeadlyDisk, self).allocate(fd, offset, length))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        self._pass("pwrite", lambda: super(DeadlyDisk, self).pwrite(fd, data, offset))

    def sync(self, fd: int) -> None:
        self._pass("sync", lambda: super(DeadlyDisk, self).sync(fd))

    def sync_dir(self, path: Path) -> None:
        self._pass("sync_dir", lambda: super(DeadlyDisk, self).sync_dir(path))

    def rename(self, source: Path, target: Path) -> None:
        if target.name == ADOPTED:
            self._waits = False
        self._pass("rename", lambda: super(DeadlyDisk, self).rename(source, target))

    def exchange(self, one: Path, other: Path) -> None:
        if not self._can_exchange:
            raise OSError(errno.EINVAL, "made to fail")
        self._pass("exchange", lambda: super(DeadlyDisk, self).exchange(one, other))

    def unlink(self, path: Path) -> None:
        self._pass("unlink", lambda: super(DeadlyDisk, self).unlink(path))


async def adopt_for_ever(
    store: MessageStore, disk: DeadlyDisk, chance: random.Random, tell: Callable[..., None], topics: tuple[str, ...]
) -> None:
    """Rebuild and hand over, all or some topics, with or without the index; first what an earlier life has left."""
    root = store.config.store_path_root_dir
    await asyncio.wait_for(store.rebuilt(), PATIENCE)
    for left in sorted(root.glob(STAGING_PATTERN)):
        if not (left / FILE_NAME).is_file():
            continue  # the store removes it, or it was never finished
        if chance.random() < 0.7:
            await adopt(store, disk, left.name, tell)
        await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
    while store.writable:
        name = f"tandem.rebuild-{chance.randrange(1 << 30)}"
        some = None if chance.random() < 0.6 else chance.sample(topics, 1)
        queues, index = chance.random() < 0.9, chance.random() < 0.8
        try:
            await asyncio.to_thread(
                stage, store.config, store.dispatched_offset, name=name, topics=some, queues=queues, index=index
            )
        except FileNotFoundError:  # the log has lost its oldest file meanwhile
            await asyncio.to_thread(shutil.rmtree, root / name, ignore_errors=True)
            continue
        await asyncio.sleep(chance.random() * 0.01)
        await adopt(store, disk, name, tell)


async def adopt(store: MessageStore, disk: DeadlyDisk, name: str, tell: Callable[..., None]) -> None:
    disk.armed = True
    try:
        adopted = await store.adoption.adopt(name)
        tell("adopted", adopted.queues, adopted.tail_messages)
    except AdoptionRefused as error:
        tell("refused", str(error))
    except StoreClosed:
        pass
    finally:
        disk.armed = False
