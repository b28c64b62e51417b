"""What files need is done in one place: a file replaced, a name made durable, a boot told."""

import ast
from pathlib import Path

import pytest

from tandemmq.common.files.boot import NO_BOOT, boot_id
from tests.test_structure import REPOSITORY, sources

HOME = "services/common/files/"
ALREADY_MADE = {"spark/running/class_archive.py"}
"""Give a name to a file that another process has made."""


def uses(source: str, name: str) -> bool:
    """Whether a module has `os.<name>`."""
    if f"os.{name}" not in source:  # to parse all takes seconds
        return False
    tree = ast.parse(source)
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == f"os.{name}" for node in ast.walk(tree))


def users(name: str) -> set[str]:
    return {str(path.relative_to(REPOSITORY)) for path in sources("services", "spark") if uses(path.read_text(), name)}


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_files_are_replaced_and_names_made_durable_in_one_place(name: str) -> None:
    assert {path for path in users(name) if not path.startswith(HOME)} <= ALREADY_MADE


def test_who_does_it_elsewhere_is_found() -> None:
    assert users("fsync") == {HOME + "file_system.py"}
    assert uses("import os\n\ndef write():\n    os.replace('a', 'b')\n", "replace")


def test_texts_that_are_known_in_one_place() -> None:
    for text, home in (
        ("/proc/sys/kernel/random/boot_id", HOME + "boot.py"),
        ('"SCHEDULE_TOPIC_XXXX"', "services/common/topic_names.py"),
    ):
        found = [path for path in sources("services", "spark") if text in path.read_text()]
        assert [str(path.relative_to(REPOSITORY)) for path in found] == [home]


def test_a_boot_is_told_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(boot_id()) == len(NO_BOOT)
    assert boot_id() == boot_id() != NO_BOOT

    def missing(path: Path, encoding: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert boot_id() == NO_BOOT
