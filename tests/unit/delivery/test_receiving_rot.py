"""Bodies that have rotted: no group gets them, the store knows them from then on, and all others arrive."""

from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.delivery.port import Subscription
from tests.unit.broker.test_rot_is_noticed import rot
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, Scene, bodies, scene

SECONDS = INVISIBLE_MS / 1000


async def everything(at: Scene, **wanted: Any) -> list[str]:
    """All that comes, acknowledged."""
    found: list[str] = []
    for _ in range(20):
        messages = await at.take(7, **wanted)
        found += bodies(messages)
        await at.acknowledge(messages)
        await at.timers.advance(1)
    return found


@pytest.mark.parametrize("places", [[0], [5], [19], [3, 4, 5], [0, 6, 7, 13, 19], list(range(20))])
@pytest.mark.parametrize("how", ["plain", "tags", "in order"])
async def test_all_others_arrive(tmp_path: Path, how: str, places: list[int]) -> None:
    wanted: dict[str, Any] = {"subscription": Subscription("red || blue" if how == "tags" else "*")}
    async with scene(tmp_path) as at:
        at.groups.put(GROUP, consume_message_orderly=how == "in order")
        texts = [f"body {number:02}" for number in range(20)]
        offsets = [at.send(text, TAGS="red" if number % 2 else "blue")[0] for number, text in enumerate(texts)]
        await at.kit.dispatched()
        for place in places:
            rot(at.kit, offsets[place], texts[place].encode())
        assert await everything(at, **wanted) == [text for n, text in enumerate(texts) if n not in places]
        known = at.kit.store.damage
        damaged = [n for n, offset in enumerate(offsets) if any(one.begin <= offset < one.end for one in known)]
        assert damaged == places
        assert at.cursor() == 20
        at.groups.put("others")
        assert await everything(at, group="others", **wanted) == [t for n, t in enumerate(texts) if n not in places]


async def test_what_rots_while_it_is_held_is_passed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        offsets = at.send("one", "two", "three")
        assert bodies(await at.take()) == ["one", "two", "three"]
        rot(at.kit, offsets[1], b"two")
        await at.timers.advance(SECONDS)
        assert await everything(at) == ["one", "three"]
        assert [one.begin for one in at.kit.store.damage] == [offsets[1]]
        assert at.cursor() == 3


async def test_a_list_that_cannot_be_written_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(tmp_path) as at:
        offsets = at.send("one", "two", "three")
        await at.kit.dispatched()
        rot(at.kit, offsets[0], b"one")

        def refuse() -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(at.kit.store._parts.damage, "save", refuse)
        assert await everything(at) == ["two", "three"]
        assert [one.begin for one in at.kit.store.damage] == [offsets[0]]
        monkeypatch.undo()
