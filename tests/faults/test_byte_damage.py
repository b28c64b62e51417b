"""Eighty of the byte-damage campaign's cases; `make soak ARGS=--damage` has ten thousand."""

from pathlib import Path

import pytest

from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.log.message_store import MessageStore
from tests.faults.byte_damage import EveryTopic, campaign
from tests.faults.damage_scenes import all_scenes
from tests.faults.harness import SEED


@pytest.mark.timeout(600)
async def test_damage_to_any_byte_of_any_file() -> None:
    """Served, reported or refused; never silent, never invented, never without a type."""
    verdicts, bad = await campaign(SEED, 80, golden=False)
    assert not bad, f"seed {SEED}: {bad}"
    assert verdicts["reported"] > 10
    assert verdicts["refused"] > 1


async def test_a_pull_goes_on_behind_damage_that_is_known(tmp_path: Path) -> None:
    """Its record's head is whole, so that a walk without checksums finds it: it is lost all the same."""
    scene = (await all_scenes(tmp_path, golden=False))[0]
    store = MessageStore.open(scene.config(scene.root))
    store.start()
    try:
        assert store.damage
        pulled = Puller(store, EveryTopic()).pull(Wanted("orders", 1, 1, 500, 1 << 20))
        assert (pulled.next_offset, pulled.count) == (40, 38)
    finally:
        await store.close()
