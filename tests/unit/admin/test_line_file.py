"""LineFile: lines that stay, in files that do not grow without end."""

from pathlib import Path

from tandemmq.admin.actions.line_file import LineFile
from tandemmq.common.files.file_system import LocalFileSystem


class Syncs(LocalFileSystem):
    """Knows which names a power cut would leave."""

    def __init__(self) -> None:
        super().__init__()
        self.durable = set[Path]()

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        self.durable |= set(path.iterdir())


def test_the_name_of_a_new_file_is_durable(tmp_path: Path) -> None:
    syncs = Syncs()
    file = LineFile(tmp_path / "new" / "lines.log", size_max=10, files=syncs)
    for number in range(3):
        file.append(f"line number {number}")
        assert syncs.durable == {file.path.parent, *file.path.parent.iterdir()}


def test_lines_come_back_last_first(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "new" / "lines.log")
    assert list(file.backwards()) == []
    for number in range(5):
        file.append(f"line {number} \N{SNOWMAN}")
    assert list(file.backwards()) == [f"line {number} \N{SNOWMAN}" for number in range(4, -1, -1)]
    assert next(iter(LineFile(file.path).backwards())) == "line 4 \N{SNOWMAN}"


def test_a_full_file_gets_a_number_and_the_oldest_goes(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines.log", size_max=100)
    for number in range(200):
        file.append(f"{number:09}")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["lines.log", *(f"lines.log.{number}" for number in range(1, 8))]
    assert all(path.stat().st_size <= 110 for path in tmp_path.iterdir())
    found = [int(line) for line in file.backwards()]
    assert found == list(range(199, 199 - len(found), -1))
    assert len(found) >= 70


def test_half_a_line_stays_alone(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "lines.log")
    file.path.write_bytes(b"whole\nha")
    file.append("next")
    assert list(file.backwards()) == ["next", "ha", "whole"]
