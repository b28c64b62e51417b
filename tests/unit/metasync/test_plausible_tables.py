"""RocketMQ's documents have no checksum: what cannot be true is no table, and the back-up is read instead."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from tandemmq.metasync.errors import UnreadableDocument
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.standing import _check

VERSION = {"counter": 1, "stateVersion": 0, "timestamp": 1_750_000_000_000}
GOOD = {"dataVersion": VERSION, "offsetTable": {"orders@g": {"0": 5}}}


def with_offsets(**numbers: Any) -> bytes:
    return json.dumps(
        {**GOOD, "offsetTable": {"orders@g": {key.strip("_"): at for key, at in numbers.items()}}}
    ).encode()


def with_version(**changes: Any) -> bytes:
    return json.dumps({**GOOD, "dataVersion": {**VERSION, **changes}}).encode()


BAD = {
    "negative offset": with_offsets(_0=-2),
    "beyond 64 bits": with_offsets(_0=1 << 63),
    "text": with_offsets(_0="5"),
    "truth": with_offsets(_0=True),
    "fraction": with_offsets(_0=5.5),
    "queue 01 and 1": b'{"offsetTable":{"orders@g":{"1":5,"01":6}}}',
    "queue twice": b'{"offsetTable":{"orders@g":{0:5,0:6}}}',
    "group twice": b'{"offsetTable":{"orders@g":{"0":5},"orders@g":{"0":6}}}',
    "negative queue": b'{"offsetTable":{"orders@g":{"-1":5}}}',
    "version below 0": with_version(counter=-1),
    "version of the far future": with_version(timestamp=1 << 50),
    "epoch that leaves no next": with_version(stateVersion=1 << 62),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("bad", BAD)
async def test_what_cannot_be_true_is_refused_or_its_backup_is_read(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "config" / "consumerOffset.json"
    path.parent.mkdir()
    path.write_bytes(BAD[bad])
    with pytest.raises(UnreadableDocument, match=r"consumerOffset\.json"):
        Keeper(tmp_path)
    path.with_name("consumerOffset.json.bak").write_bytes(json.dumps(GOOD).encode())
    keeper = Keeper(tmp_path)
    entry = keeper.offsets.get("orders", "g")
    assert entry is not None
    assert entry.offsets == {0: 5}
    await keeper.close()


def test_a_note_of_the_role_that_was_changed_is_refused() -> None:
    """It says whether this node is a master while its store cannot be asked."""
    good = {"configured": "ASYNC_MASTER", "epoch": 7, "role": "SLAVE"}
    note = {**good, "crc32": zlib.crc32(json.dumps(good).encode())}
    for document, fits in ((note, True), (good, True), ({**note, "epoch": 3}, False), ({**good, "crc33": 1}, False)):
        if fits:
            _check(document)
        else:
            with pytest.raises(ValueError, match="checksum"):
                _check(document)
