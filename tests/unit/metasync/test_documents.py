"""The files of the tables: whole ones only, never an empty one by mistake."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents.java_json import dumps_table, loads
from tandemmq.metasync.documents import DirectoryLock, Document
from tandemmq.metasync.errors import DirectoryInUse, DocumentNotSaved, UnreadableDocument

OLD: dict[str, Any] = {"offsetTable": {"a@g": {"0": 1}}}
NEW: dict[str, Any] = {"offsetTable": {"a@g": {"0": 2}}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "consumerOffset.json"


def backup(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def saved(path: Path, *documents: dict[str, Any]) -> Document:
    document = Document(path)
    for content in documents:
        document.save(content)
    return document


def test_without_files_there_is_nothing(path: Path) -> None:
    assert Document(path).load() is None


def test_the_version_before_is_the_backup(path: Path) -> None:
    saved(path, OLD, NEW)
    assert loads(path.read_bytes()) == NEW
    assert loads(backup(path).read_bytes()) == OLD
    assert Document(path).load() == NEW
    assert {one.name for one in path.parent.iterdir()} == {path.name, backup(path).name}


@pytest.mark.parametrize("bad", [b"", b"\0" * 100, b'{"offsetTable":{"a@g":{0:1', b"[]", b"\xff\xfe", b'{"a":' * 9000])
def test_3401_6096_9705_a_bad_file_is_its_backup(path: Path, bad: bytes) -> None:
    saved(path, OLD, NEW)
    path.write_bytes(bad)
    document = Document(path)
    assert document.load() == OLD
    document.save(NEW)
    assert loads(backup(path).read_bytes()) == OLD, "what could not be read must not become the back-up"
    assert Document(path).load() == NEW


@pytest.mark.parametrize("bad", [b"", b"\0" * 100, b"{"])
def test_3401_6096_unreadable_both_is_an_error_and_not_an_empty_table(path: Path, bad: bytes) -> None:
    saved(path, OLD, NEW)
    path.write_bytes(bad)
    backup(path).write_bytes(bad)
    with pytest.raises(UnreadableDocument, match=r"consumerOffset.json.*consumerOffset.json.bak"):
        Document(path).load()


def test_a_bad_file_without_backup_is_an_error(path: Path) -> None:
    """RocketMQ 4.9 starts silently with an empty table."""
    saved(path, OLD)
    path.write_bytes(b"{")
    with pytest.raises(UnreadableDocument):
        Document(path).load()


def test_a_missing_file_is_its_backup(path: Path) -> None:
    """As RocketMQ leaves it when it is killed between deleting and renaming."""
    saved(path, OLD, NEW)
    path.unlink()
    assert Document(path).load() == OLD


def test_a_document_of_another_kind_counts_as_unreadable(path: Path) -> None:
    saved(path, OLD, {"somethingElse": {}})

    def check(document: dict[str, object]) -> None:
        if "offsetTable" not in document:
            raise ValueError("it has no offsetTable")

    assert Document(path).load(check) == OLD


@pytest.mark.parametrize("operation", ["fsync", "fdatasync", "rename", "link"])
@pytest.mark.parametrize("at", range(1, 4))
def test_whatever_fails_a_whole_table_is_left(
    path: Path, operation: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = saved(path, OLD)
    real, calls = getattr(os, operation), 0

    def failing(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(os, operation, failing)
    try:
        document.save(NEW)
    except DocumentNotSaved:
        allowed = [OLD, NEW]
    else:
        allowed = [NEW]
    monkeypatch.undo()
    assert Document(path).load() in allowed
    assert not list(path.parent.glob(f"{path.name}.tmp"))
    document.save(NEW)
    assert Document(path).load() == NEW


def test_what_is_durable_and_when(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new content is on disk before it gets its name, and the name before `save` returns (#9705)."""
    document = saved(path, OLD)
    steps: list[str] = []
    rename = os.rename

    def seen_sync(real: Callable[[int], None], fd: int) -> None:
        steps.append(f"sync {Path(os.readlink(f'/proc/self/fd/{fd}')).name}")
        real(fd)

    def seen_rename(source: Path, target: Path) -> None:
        steps.append(f"name {Path(target).name}")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", partial(seen_sync, os.fsync))
    monkeypatch.setattr(os, "fdatasync", partial(seen_sync, os.fdatasync))
    monkeypatch.setattr(os, "rename", seen_rename)
    document.save(NEW)
    name = path.name
    assert steps == [f"name {name}.bak", f"sync {name}.tmp", f"name {name}", "sync config"]


def test_a_directory_has_one_service(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "config")
    with pytest.raises(DirectoryInUse):
        DirectoryLock(tmp_path / "config")
    lock.release()
    DirectoryLock(tmp_path / "config").release()


def test_references_are_resolved() -> None:
    group = {"groupName": "G", "retryQueueNums": 1}
    text = json.dumps({"table": {"G": group, "a.b": {"x": [1, {"y": 2}]}}, "l": []})
    same = '{"$ref":"$.table.G"}'
    document = loads(f'{text[:-1]},"again":{same},"deep":{{"$ref":"$.table.a\\\\.b.x[1].y"}}}}'.encode())
    assert document["again"] == group
    assert document["deep"] == 2


@pytest.mark.parametrize("path", ["$.nowhere", "$.table.G[0]", "@", "..", "$.again", "table"])
def test_references_that_lead_nowhere_are_errors(path: str) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        loads(json.dumps({"table": {"G": {}}, "again": {"$ref": path}}).encode())


def test_tables_have_a_line_for_each_entry() -> None:
    document = {"dataVersion": {"counter": 1}, "offsetTable": {"b@g": {"0": 1, "1": 2}, "a@g": {}}, "é": "ü"}
    text = dumps_table(document).decode()
    assert json.loads(text) == document
    assert '\t\t"b@g":{"0":1,"1":2}' in text.splitlines()
