"""An index that does not fit the log: whoever meets it has it made anew, and finds everything afterwards."""

from pathlib import Path

import pytest

from tandemmq.store.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE, read_entry
from tandemmq.store.format.java import index_hash, index_key
from tandemmq.store.format.record import decode_record
from tests.unit.broker.broker_kit import Kit, broker
from tests.unit.broker.listener import listening

SLOTS = 53


def found(kit: Kit, key: str) -> list[bytes]:
    """Bodies of the messages with a key, newest first."""
    return [decode_record(data).body for data in kit.finder.by_key("orders", key, 0, 0, 64, unique=False)]


@pytest.mark.parametrize(
    "place",
    ["slot", "hash", "offset high", "offset", "offset low", "seconds", "previous", "header end", "header count"],
)
async def test_one_wrong_number_in_the_index_is_noticed_and_put_right(tmp_path: Path, place: str) -> None:
    async with broker(tmp_path, max_hash_slot_num=SLOTS) as kit:
        listener = listening(kit)
        for number in range(60):
            kit.send("orders", b"%d" % number, KEYS=f"k{number % 20}")
        await kit.dispatched()
        index = kit.store._parts.index
        assert index is not None
        data, slot = index.files[0].file.map, index_hash(index_key("orders", "k7")) % SLOTS
        slot_at = HEADER_SIZE + SLOT_SIZE * slot
        newest = next(
            number
            for number in range(120, 0, -1)
            if read_entry(data, SLOTS, number).key_hash == index_hash(index_key("orders", "k7"))
        )
        entry = HEADER_SIZE + SLOT_SIZE * SLOTS + ENTRY_SIZE * newest
        at, bit = {
            "slot": (slot_at, 1),
            "hash": (entry + 2, 4),
            "offset high": (entry + 5, 1),
            "offset": (entry + 10, 0x40),
            "offset low": (entry + 11, 1),
            "seconds": (entry + 12, 0x80),
            "previous": (entry + 16, 0x80),
            "header end": (8, 0x80),
            "header count": (36, 0x40),
        }[place]
        data[at] ^= bit
        before = found(kit, "k7")
        assert listener.counts.get("index", 0) >= 1
        assert set(before) <= {b"7", b"27", b"47"}
        await kit.store.rebuilt()
        assert found(kit, "k7") == [b"47", b"27", b"7"]
        told = dict(listener.counts)
        for number in range(20):
            assert found(kit, f"k{number}") == [b"%d" % (40 + number), b"%d" % (20 + number), b"%d" % number]
        assert listener.counts == told, "what has been made anew is right"
    async with broker(tmp_path, max_hash_slot_num=SLOTS) as kit:
        assert found(kit, "k7") == [b"47", b"27", b"7"]


async def test_a_sound_index_is_not_suspected(tmp_path: Path) -> None:
    """With several files, keys that share a slot, times that stand and times that run, and damage in the log."""
    async with broker(tmp_path, max_index_num=100) as kit:
        listener = listening(kit)
        for number in range(300):
            kit.clock.now += number % 7 * 300
            kit.send("orders", b"%d" % number, KEYS=f"k{number % 20} all")
        await kit.dispatched()
        for key in ("all", "none", *(f"k{number}" for number in range(20))):
            kit.finder.by_key("orders", key, 0, 0, 64, unique=False)
        assert listener.counts == {}
        assert not kit.store.rebuilding
