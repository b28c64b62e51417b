"""A scrub finds what nobody has asked for yet."""

from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.format.unit import UNIT_SIZE
from tests.unit.broker.broker_kit import Kit, bodies, broker
from tests.unit.broker.listener import listening

SETTINGS: dict[str, Any] = {"max_hash_slot_num": 53, "max_index_num": 100}


async def filled(kit: Kit) -> None:
    """Several log, queue and index files; keys in long and short chains."""
    for number in range(300):
        kit.clock.now += number % 7 * 300
        kit.send("orders", b"%d" % number * 20, number % 2, KEYS=f"k{number % 40} all", TAGS=f"t{number % 3}")
    await kit.dispatched()


async def test_a_sound_store_is_found_sound_again_and_again(tmp_path: Path) -> None:
    async with broker(tmp_path, **SETTINGS) as kit:
        listener = listening(kit)
        await kit.store.scrub.once()
        await filled(kit)
        await kit.store.scrub.once()
        kit.send("orders", b"one more", KEYS="k1")
        await kit.dispatched()
        await kit.store.scrub.once()
        assert (listener.counts, listener.scrubs) == ({}, 3)
    async with broker(tmp_path, **SETTINGS) as kit:
        listener = listening(kit)
        await kit.store.scrub.once()
        assert (listener.counts, listener.scrubs) == ({}, 1)


async def test_a_tags_code_that_hides_its_message_from_a_filter(tmp_path: Path) -> None:
    async with broker(tmp_path, **SETTINGS) as kit:
        await filled(kit)
        listener, queue = listening(kit), kit.store.queue("orders", 1)
        assert queue is not None
        sound = queue.read_bytes(30, 1)
        everything = bodies(kit.pull("orders", 1, tags="t1"))
        queue.put(30, sound[:19] + bytes([sound[19] ^ 1]))
        assert len(bodies(kit.pull("orders", 1, tags="t1"))) == len(everything) - 1
        await kit.store.scrub.once()
        assert bodies(kit.pull("orders", 1, tags="t1")) == everything
        assert listener.counts == {"unit": 1}


async def test_the_first_units_of_a_queue(tmp_path: Path) -> None:
    """Where they are wrong at a start, the queue seems to begin after them."""
    async with broker(tmp_path, **SETTINGS) as kit:
        await filled(kit)
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        queue.put(0, bytes(UNIT_SIZE * 5))
    async with broker(tmp_path, **SETTINGS) as kit:
        await kit.store.scrub.once()
        assert len(bodies(kit.pull("orders"))) == 150


async def test_rot_below_the_manifest(tmp_path: Path) -> None:
    """In a body, where only the checksum tells."""
    async with broker(tmp_path, **SETTINGS) as kit:
        await filled(kit)
        listener = listening(kit)
        kit.store.commit_log.files.files[0].map[kit.sent[20] + 100] ^= 1
        assert kit.store.damage == []
        await kit.store.scrub.once()
        assert [(known.begin, known.kind) for known in kit.store.damage] == [(kit.sent[20], "rot")]
        assert "index" not in listener.counts
        await kit.store.scrub.once()
        assert len(kit.store.damage) == 1
        assert len(bodies(kit.pull("orders"))) == 149


@pytest.mark.parametrize("at", [43, 40 + 4 * 53 + 20 * 70 + 19, 40 + 4 * 53 + 20 * 70 + 15, 9, 35])
async def test_the_index(tmp_path: Path, at: int) -> None:
    """A slot, a predecessor, seconds, times in the header; the count of slots in use matters to nobody."""
    async with broker(tmp_path, **SETTINGS) as kit:
        await filled(kit)
        listener, index = listening(kit), kit.store._parts.index
        assert index is not None
        data = index.files[1].file.map
        data[at] ^= 8
        await kit.store.scrub.once()
        assert listener.counts == ({} if at == 35 else {"index": 1})
        await kit.store.rebuilt()
        await kit.store.scrub.once()
        assert listener.counts == ({} if at == 35 else {"index": 1})
