"""Whether a directory is that of a store that runs, which may have another path where the store is."""

from pathlib import Path

from tandemmq.spark.reading.running_store import is_directory_of
from tandemmq.store.log.marks.lock import mark_of
from tandemmq.store.v1.store_pb2 import GetLogResponse


def directory(path: Path) -> Path:
    path.mkdir()
    (path / "lock").write_bytes(b"lock")
    return path


def test_the_same_path_or_the_same_lock_file(tmp_path: Path) -> None:
    root, other = directory(tmp_path / "root"), directory(tmp_path / "other")
    mark = mark_of(root)
    assert is_directory_of(root, GetLogResponse(root=str(root), directory_mark=mark))
    assert is_directory_of(root, GetLogResponse(root=str(root))), "a store of an earlier release"
    assert is_directory_of(root, GetLogResponse(root="/nowhere/store", directory_mark=mark))
    assert not is_directory_of(root, GetLogResponse(root="/nowhere/store"))
    assert not is_directory_of(other, GetLogResponse(root="/nowhere/store", directory_mark=mark))
    assert not is_directory_of(other, GetLogResponse(root=str(root), directory_mark=mark))
    assert not is_directory_of(tmp_path / "none", GetLogResponse(root="/nowhere/store", directory_mark=mark))
    (other / "lock").unlink()
    assert not is_directory_of(other, GetLogResponse(root="/nowhere/store", directory_mark=mark))
