"""consumerOffset.json and delayOffset.json: images of the journal, and what a RocketMQ broker leaves in them."""

import json
from pathlib import Path
from typing import Any

from tandemmq.store.delivery.facts import Dealt, Forgotten, LevelDone, Moved, Place
from tandemmq.store.delivery.images import read_offsets
from tests.unit.delivery.delivery_kit import PLACE, begin, delivering


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
    assert read_offsets({"offsetTable": rows, "tandemResets": {"a@g": {"3": -1}}}) == ()
