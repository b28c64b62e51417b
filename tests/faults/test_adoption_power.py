"""The power goes while rebuilt queues and index are taken over: whatever pages and names are left, all is right."""

import asyncio
import random
import shutil
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tests.faults.harness import QUEUES, SEED, audit, message, settle, small_config, until
from tests.faults.power_disk import PowerDisk
from tests.unit.log.staging_kit import NAME, contents, sequential, stage

ADOPTIONS = 4
IMAGES = 5


class ExchangingPowerDisk(PowerDisk):
    """Takes images of a power cut at some operations. An exchange is durable when the directory above is synced."""

    def __init__(self, root: Path, target: Path, chance: random.Random) -> None:
        super().__init__(root)
        self.armed = False
        self.images: list[Path] = []
        self._target, self._chance = target, chance
        self._exchanged: list[tuple[Path, Path]] = []

    def _maybe_image(self, likely: float) -> None:
        if self.armed and self._chance.random() < likely and len(self.images) < IMAGES:
            self.take_image()

    def take_image(self) -> None:
        self.images.append(self._target / f"image-{len(self.images)}")
        self.image(self.images[-1], self._chance)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        self._maybe_image(0.02)

    def sync_dir(self, path: Path) -> None:
        for pair in [pair for pair in self._exchanged if path in (pair[0].parent, pair[1].parent)]:
            self._exchanged.remove(pair)
            self._exchange_names(*pair)
        before, names = self._before_exchange(path), self._names.get(path, {})
        super().sync_dir(path)
        if before != path:
            with self._lock:
                self._names[before], self._names[path] = self._names[path], names
        self._maybe_image(0.02 if not self._exchanged else 0.2)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._maybe_image(0.05)

    def exchange(self, one: Path, other: Path) -> None:
        super().exchange(one, other)
        self._exchanged.append((one, other))
        self._maybe_image(0.3)

    def _before_exchange(self, path: Path) -> Path:
        """Where a directory was before an exchange that is not durable yet: what is durable of it is known by that."""
        for pair in self._exchanged:
            for here, there in (pair, reversed(pair)):
                if path.is_relative_to(here):
                    return there / path.relative_to(here)
        return path

    def _exchange_names(self, one: Path, other: Path) -> None:
        with self._lock:
            for path in [path for path in self._names if path.is_relative_to(one)]:
                twin = other / path.relative_to(one)
                self._names[path], self._names[twin] = self._names.get(twin, {}), self._names[path]


async def one_adoption(root: Path, target: Path, chance: random.Random) -> list[Path]:
    """Load, rebuild, take over with sends going on; gives the images of power cuts in it."""
    root.mkdir()
    disk = ExchangingPowerDisk(root, target, chance)
    store = MessageStore.open(small_config(root), disk=disk)
    store.start()
    for number in range(chance.randrange(100, 700)):
        store.append(message(chance.choice(QUEUES), f"p-{number}"))
    await settle(store)
    stage(store.config, store.dispatched_offset)
    disk.remember_all()
    for number in range(chance.randrange(200)):
        store.append(message(chance.choice(QUEUES), f"q-{number}"))
    await until(lambda: store.dispatched_offset >= store.commit_log.max_offset - 5000)
    disk.armed = True
    adopting = asyncio.create_task(store.adoption.adopt(NAME))
    number = 0
    while not adopting.done():
        await store.wait_flushed(store.append(message(chance.choice(QUEUES), f"r-{number}")).end_offset)
        number += 1
    await adopting
    disk.armed = False
    disk.take_image()
    await store.close()
    disk.forget()
    return disk.images


async def check(image: Path) -> None:
    """Start on what is left: queues and index are what sequential dispatch makes of the log that is left."""
    store = MessageStore.open(small_config(image))
    store.start()
    assert not store.rebuilding, "a start had to restore something"
    found = await audit(store)
    await until(lambda: not [*image.glob("tandem.rebuild*/tandem.adopted")])
    end = store.commit_log.max_offset
    await store.close()
    assert not found.missing_keys, image
    assert contents(image) == sequential(store.config, end), image


@pytest.mark.slow
async def test_a_power_cut_in_an_adoption(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    looked_at = 0
    for number in range(ADOPTIONS):
        root = tmp_path / f"store-{number}"
        for image in await one_adoption(root, tmp_path / f"images-{number}", chance):
            await check(image)
            looked_at += 1
            shutil.rmtree(image)
        shutil.rmtree(root)
    assert looked_at >= ADOPTIONS
