"""Queries: collisions, times at the edges of seconds, the clock going back, limits."""

from pathlib import Path

import pytest

from tandemmq.store.broker.errors import BadRequest, MessageNotFound
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import decode_record
from tests.unit.broker.broker_kit import HOST, Kit, broker


def times(kit: Kit, key: str, begin: int, end: int, most: int = 64) -> list[int]:
    found = kit.finder.by_key("orders", key, begin, end, most, unique=False)
    return [decode_record(data).store_timestamp for data in found]


async def test_ranges_are_exact_over_rolled_index_files(tmp_path: Path) -> None:
    """Trap T8: whole seconds, a late first entry after a roll; several index files of 500 entries."""
    async with broker(tmp_path) as kit:
        stamps = []
        for number in range(700):
            kit.clock.now += 137 if number != 350 else 20_000
            kit.send("orders", b"", KEYS="rare" if number % 50 == 0 else f"k{number}")
            if number % 50 == 0:
                stamps.append(kit.clock.now)
        await kit.dispatched()
        assert len(list((tmp_path / "index").iterdir())) > 1
        for low in range(0, len(stamps), 3):
            for high in range(low, len(stamps), 3):
                assert times(kit, "rare", stamps[low], stamps[high]) == stamps[low : high + 1][::-1]
        assert times(kit, "rare", stamps[3] + 1, stamps[5] - 1) == [stamps[4]]
        assert times(kit, "rare", stamps[-1] + 1, 0) == []


async def test_the_newest_when_there_are_many(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for _ in range(300):
            kit.clock.now += 1
            kit.send("orders", b"", KEYS="k")
        await kit.dispatched()
        end = kit.clock.now
        assert times(kit, "k", 0, 0, most=5) == [end - n for n in range(5)]
        assert len(times(kit, "k", 0, 0, most=1000)) == 64


async def test_other_topics_and_halves_of_keys_do_not_match(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders", b"right", KEYS="a b")
        kit.send("bills", b"other topic", KEYS="a")
        await kit.dispatched()
        assert len(times(kit, "a", 0, 0)) == len(times(kit, "b", 0, 0)) == 1
        assert times(kit, "a b", 0, 0) == []


async def test_view(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        at = kit.send("orders", b"body")
        assert decode_record(kit.finder.view(encode_offset_id(HOST, at))).body == b"body"
        for offset in (at + 1, at + 1_000_000, -1):
            with pytest.raises(MessageNotFound):
                kit.finder.view(encode_offset_id(HOST, offset))
        with pytest.raises(BadRequest):
            kit.finder.view("not an id")
