"""Eighty of the byte-damage campaign's cases; `make soak ARGS=--damage` has ten thousand."""

import re
from pathlib import Path

import pytest

from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.log.message_store import MessageStore
from tests.faults.byte_damage import EveryTopic, campaign
from tests.faults.damage_scenes import all_scenes, kinds_of
from tests.faults.harness import SEED


@pytest.mark.slow
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


_REPOSITORY = Path(__file__).resolve().parents[2]


async def test_every_kind_of_file_is_damaged_and_described(tmp_path: Path) -> None:
    """What the services name in their code stands in the document; what is there, the campaign damages."""
    document = (_REPOSITORY / "docs" / "store-files.md").read_text()
    table = document.partition("## When a file is damaged")[2].partition("## A message in the log")[0]
    code = "".join(path.read_text() for path in (_REPOSITORY / "services").rglob("*.py"))
    names = set(re.findall(r'= "(tandem\.[a-z]+)', code))
    assert len(names) > 8
    assert [name for name in sorted(names) if name not in document] == []
    kinds = {kind for scene in await all_scenes(tmp_path, golden=False) for kind in kinds_of(scene.root)}
    expected = {"commitlog", "consumequeue", "index", "checkpoint", "abort", "config/topics.json"}
    expected |= {"access.toml", "access.signing.toml", "config/tandem.role.json", "tandem.group", "tandem.groups"}
    assert (
        expected | {"tandem.manifest", "tandem.epoch", "tandem.damage", "tandem.end", "tandem.replica", "tandem.topics"}
        <= kinds
    )
    described = [name for name in kinds if name.startswith("tandem.") and "/" not in name and name not in table]
    assert described == []
