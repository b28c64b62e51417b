"""The file of request modes, as others may have left it."""

from pathlib import Path

import pytest

from tandemmq.store.broker.errors import UnreadableTable
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import LocalDisk


def opened(root: Path, text: str) -> RequestModes:
    path = root / "config" / "messageRequestMode.json"
    path.parent.mkdir()
    path.write_text(text)
    return RequestModes(root, LocalDisk(), SystemClock())


@pytest.mark.parametrize("said", ["{}", '{"mode":null}', '{"mode":"PULL"}'])
def test_a_group_of_which_no_mode_is_said_pulls(tmp_path: Path, said: str) -> None:
    modes = opened(tmp_path, f'{{"messageRequestModeMap":{{"t":{{"g":{said}}}}}}}')
    assert not modes.pops("g", "t")


@pytest.mark.parametrize("said", ['"POP"', "null", "[]", '{"mode":["POP"]}', '{"mode":"pop"}'])
def test_what_makes_no_sense_is_told_at_the_start(tmp_path: Path, said: str) -> None:
    with pytest.raises(UnreadableTable, match="group g"):
        opened(tmp_path, f'{{"messageRequestModeMap":{{"t":{{"g":{said}}}}}}}')
