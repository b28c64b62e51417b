"""consumerOffset.json and delayOffset.json: images of the journal, and what a RocketMQ broker leaves in them."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Forgotten, LevelDone, Moved, Place
from tandemmq.store.delivery.journal.images import read_offsets
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.opening import Opening
from tandemmq.store.log.errors import StoreError
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter
from tests.unit.delivery.delivery_kit import PLACE, DeliveringStore, begin, delivering


def written(root: Path, name: str = "consumerOffset.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "config" / name).read_bytes())
    return found


def cursor(ledger: Any, place: Place = PLACE) -> int:
    progress = ledger.progress(place)
    assert progress is not None
    return int(progress.cursor)


async def test_the_files_say_where_groups_and_levels_stand(tmp_path: Path) -> None:
    other = Place("others", "orders", 0)
    async with delivering(tmp_path, whole=False) as one:
        await one.send("orders", 20)
        begin(one.delivery)
        begin(one.delivery, other)
        one.delivery.journal.note(Dealt(PLACE, 0, 3), Moved(other, 2, 1), LevelDone(3, 17))
    found = written(tmp_path)
    assert found["offsetTable"] == {"orders@workers": {"0": 3}, "orders@others": {"0": 2}}
    assert found["tandemResets"] == {"orders@others": {"0": 1}}
    assert found["tandemJournal"] > 0
    assert written(tmp_path, "delayOffset.json")["offsetTable"] == {"3": 17}
    async with delivering(tmp_path, whole=False) as two:
        two.delivery.journal.note(Forgotten(other), Dealt(PLACE, 3))
    again = written(tmp_path)
    assert again["offsetTable"] == {"orders@workers": {"0": 4}}
    assert again["dataVersion"]["counter"] == found["dataVersion"]["counter"] + 1


async def test_what_java_wrote_wins_backwards_too_and_not_beyond_the_end(tmp_path: Path) -> None:
    async with delivering(tmp_path, whole=False) as one:
        await one.send("orders", 20)
        begin(one.delivery)
        one.delivery.journal.note(Dealt(PLACE, 0, 5), LevelDone(3, 17))
    java = '{"offsetTable":{"orders@workers":{0:2},"orders@new":{0:999},"gone@new":{0:3},"orders@bad":{0:-1}}}'
    (tmp_path / "config" / "consumerOffset.json").write_text(java)
    (tmp_path / "config" / "delayOffset.json").write_text('{"offsetTable":{3:9,4:1}}')
    async with delivering(tmp_path, whole=False) as two:
        ledger = two.delivery.ledger
        assert cursor(ledger) == 2
        progress = ledger.progress(PLACE)
        assert progress is not None
        assert progress.resets == 1
        assert not progress.entries
        assert cursor(ledger, Place("new", "orders", 0)) == 20
        assert ledger.places("new", "gone") == ledger.places("bad") == []
        assert ledger.levels == {3: 9, 4: 1}


async def test_an_image_of_ours_never_moves_a_cursor_back(tmp_path: Path) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        await one.send("orders", 20)
        begin(one.delivery)
        one.delivery.journal.note(Dealt(PLACE, 0, 5))
    path = tmp_path / "store" / "config" / "consumerOffset.json"
    document = json.loads(path.read_bytes())
    for offset, mark, wanted in ((3, 1_000, 5), (8, 1, 5), (8, 1_000, 8)):
        document["offsetTable"]["orders@workers"]["0"], document["tandemJournal"] = offset, mark
        path.write_text(json.dumps(document))
        async with delivering(tmp_path / "store", whole=False) as two:
            assert cursor(two.delivery.ledger) == wanted


async def test_files_that_make_no_sense_harm_nobody(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    for text in ("", "[]", "{", '{"offsetTable":3}', '{"offsetTable":{"orders@workers":7,"x":{}}}'):
        (tmp_path / "config" / "consumerOffset.json").write_text(text)
        (tmp_path / "config" / "delayOffset.json").write_text(text)
        async with delivering(tmp_path, whole=False) as one:
            assert not len(one.delivery.ledger)


def test_numbers_that_cannot_be_are_left_out() -> None:
    rows = {"a@g": {"0": 1 << 70, "x": 1, "1": True, "2": "3", "99999999999": 1, "3": 4}}
    assert not list(read_offsets({"offsetTable": rows, "tandemResets": {"a@g": {"3": -1}}}))


def say_where_groups_stand(root: Path, groups: int) -> dict[Place, int]:
    """A file as a RocketMQ broker leaves it."""
    places = {Place(f"group-{number}", "orders", 0): number % 20 for number in range(groups)}
    table = {f"orders@{place.group}": {"0": offset} for place, offset in places.items()}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return places


def began_again(one: DeliveringStore) -> tuple[Opening, ManualTimers]:
    """What opens the journal of a store that has just lost what it knew, with slices that are over at each look."""
    timers, opening = ManualTimers(), cast(Any, one.delivery)._life._make_ready.__self__
    one.delivery.journal.drop()
    timers.each_look = 0.01
    one.store.timers = timers
    return opening, timers


async def test_what_the_files_say_is_noted_in_turns_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        await one.send("orders", 20)
        places = say_where_groups_stand(tmp_path / "store", 300)
        ledger, journal = one.delivery.ledger, one.delivery.journal
        opening, timers = began_again(one)
        with TurnCounter.counting() as count:

            def apply(fact: Fact) -> None:
                count()
                Ledger.apply(ledger, fact)

            monkeypatch.setattr(ledger, "apply", apply)
            making = asyncio.create_task(opening.make_ready())
            while not making.done():
                await asyncio.sleep(0)
                if not journal.open:
                    with pytest.raises(NotDelivering):
                        journal.note(LevelDone(1, 1))
            await making
            assert (count.all, count.most) == (300, 1)
        timers.each_look = 0.0
        await journal.safe()
        root = one.killed(tmp_path / "killed")
    (root / "config" / "consumerOffset.json").unlink()
    async with delivering(root, whole=False) as two:
        assert {place: cursor(two.delivery.ledger, place) for place in places} == places


@pytest.mark.parametrize("noted", [1, 150, 300])
async def test_what_the_files_say_is_not_lost_where_a_beginning_is_given_up(tmp_path: Path, noted: int) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        await one.send("orders", 20)
        begin(one.delivery)
        await one.delivery.journal.safe()
        places = say_where_groups_stand(tmp_path / "store", 300)
        ledger = one.delivery.ledger
        opening, _ = began_again(one)
        making = asyncio.create_task(opening.make_ready())
        while len(ledger) < 1 + noted:
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        assert (making.cancelled(), len(ledger), one.delivery.journal.open) == (True, 0, False)
        await opening.make_ready()
        assert len(ledger) == 301
        await one.delivery.journal.safe()
        root = one.killed(tmp_path / "killed")
    (root / "config" / "consumerOffset.json").unlink()
    async with delivering(root, whole=False) as two:
        assert {place: cursor(two.delivery.ledger, place) for place in places} == places
        assert two.delivery.ledger.entries == 10


async def test_a_disk_without_room_keeps_nobody_from_beginning_with_what_the_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with delivering(tmp_path / "store", whole=False) as one:
        await one.send("orders", 20)
        places = say_where_groups_stand(tmp_path / "store", 30)
        opening, timers = began_again(one)
        full = StoreError("There is no room.")
        with monkeypatch.context() as patch:
            patch.setattr(one.store, "append", Mock(side_effect=full))
            await opening.make_ready()
            assert [one.delivery.journal.failure] == [full]
            assert {place: cursor(one.delivery.ledger, place) for place in places} == places
        await timers.advance(1.0)
        assert one.delivery.journal.failure is None
        root = one.killed(tmp_path / "killed")
    (root / "config" / "consumerOffset.json").unlink()
    async with delivering(root, whole=False) as two:
        assert {place: cursor(two.delivery.ledger, place) for place in places} == places
