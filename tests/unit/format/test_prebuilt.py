"""Kernels compiled beforehand, as an image has them: the same tests as numba's, in a process that has no numba."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tandemmq.store.format.compiled import prebuilt, walk

# One worker compiles them, and whichever of its tests comes first waits for that.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("prebuilt kernels"), pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parents[3]
_TESTS = ("test_walkers", "test_compiled_keys", "test_record_columns", "test_index_layout", "test_plain_batches")
_OTHERS = (
    "test_machine_code_is_kept or test_warming_compiles or test_one_compiled_version or "
    "on_damaged_logs or from_anywhere or records_picked_out or hosts_and_ids or properties_follow"
)
"""Tests of how numba compiles and keeps kernels, and some that take long and call no other kernels."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the shared object and its table, made now."""
    if not shutil.which("ld"):
        pytest.skip("there is no ld, which binutils has")
    directory = tmp_path_factory.mktemp("kernels")
    subprocess.run([sys.executable, REPOSITORY / "tools" / "prebuild_kernels.py", directory], check=True)
    return directory


def test_they_do_what_the_readable_twins_do(made: Path, tmp_path: Path) -> None:
    package = tmp_path / "tandemmq"
    shutil.copytree(REPOSITORY / "services", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (prebuilt.OBJECT, prebuilt.TABLE):
        shutil.copy(made / name, package / "store" / "format" / "compiled")
    for compiler in ("numba", "llvmlite"):
        (tmp_path / f"{compiler}.py").write_text("raise ImportError('an image has no compiler')\n")
    files = [f"tests/unit/format/{name}.py" for name in _TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"not ({_OTHERS})", *files],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_those_of_other_sources_are_left_alone(made: Path, tmp_path: Path) -> None:
    assert prebuilt.load(tmp_path) is None, "there are none"
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    table = json.loads((made / prebuilt.TABLE).read_text())
    _write(tmp_path, {**table, "sources": "others"})
    assert prebuilt.load(tmp_path) is None
    _write(tmp_path, {**table, "flags": ["avx2", "quantum"]})
    with pytest.raises(ImportError, match="no quantum"):
        prebuilt.load(tmp_path)
    symbol = prebuilt.symbol_of(walk.resync)
    _write(tmp_path, {**table, "kernels": {symbol: {**table["kernels"][symbol], "source": "another"}}})
    loaded = prebuilt.load(tmp_path)
    assert loaded is not None
    with pytest.raises(ImportError, match="resync was not compiled"):
        loaded.kernel(walk.resync)


def test_arrays_of_other_types_are_refused(made: Path) -> None:
    loaded = prebuilt.load(made)
    assert loaded is not None
    fill_units = loaded.kernel(walk.fill_units)
    with pytest.raises(TypeError, match="int32 in 1 dimensions, not int64"):
        fill_units(np.zeros(64, np.int32), 1, 0)
    with pytest.raises((TypeError, ValueError), match="contiguous"):
        fill_units(np.zeros(64, np.int64)[::2], 1, 0)


def _write(directory: Path, table: dict[str, object]) -> None:
    (directory / prebuilt.TABLE).write_text(json.dumps(table))
