"""What `make wheels` makes, built once for all tests of packages."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def packaged(*command: object, problem: str = "") -> str:
    """What a command says, whose directory is not the project's. Skips where it fails with `problem`."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd="/")
    if done.returncode and problem and problem in done.stderr:
        pytest.skip(f"{problem} cannot be had")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    return done.stdout


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With wheels for both processors."""
    found = tmp_path_factory.mktemp("packages")
    packaged(sys.executable, ROOT / "tools" / "build_wheels.py", "--into", found, problem="compiler.txt")
    return found


@pytest.fixture(scope="session")
def wheels(directory: Path) -> dict[str, Path]:
    """By processor."""
    return {path.stem.rpartition("_2_28_")[2]: path for path in directory.glob("tandemmq-*-manylinux_*.whl")}
