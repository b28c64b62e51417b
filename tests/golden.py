"""Golden data: stores that a real RocketMQ wrote, unpacked once per machine and copied for tests that write.

The archives lie beside the repository (``../shared/golden``) or where ``TANDEM_GOLDEN`` says; without them the
tests that need them are skipped.
"""

import json
import lzma
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parent.parent


def _archives() -> Path:
    return Path(os.environ.get("TANDEM_GOLDEN", _ROOT.parent / "shared" / "golden"))


@cache
def golden_store(set_name: str) -> Path:
    """Directory of an unpacked set (``clean``, ``aged``, ``crash``, ``torn``, ``ha``); for reading only."""
    archive = _archives() / f"{set_name}.tar.xz"
    if not archive.is_file():
        pytest.skip(f"golden data is not here: {archive} (set TANDEM_GOLDEN to its directory)")
    stamp = archive.stat()
    cache_dir = Path(tempfile.gettempdir()) / f"tandem-golden-{os.getuid()}"
    target = cache_dir / f"{set_name}-{stamp.st_size}-{int(stamp.st_mtime)}"
    if not target.is_dir():
        cache_dir.mkdir(mode=0o700, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=cache_dir))
        subprocess.run(["tar", "-S", "-xf", archive, "-C", fresh], check=True)
        try:
            fresh.rename(target)
        except OSError:  # another test process was quicker
            shutil.rmtree(fresh)
    return target / set_name


def captured_frames(version: str, scenario: str = "*") -> Iterator[dict[str, Any]]:
    """The lines of remoting traffic that was recorded between real RocketMQ programs (README beside the files).

    `version`: `4.9.7` or `5.3.2`; `scenario`: a name or a pattern of names.
    """
    folder = _archives() / "remoting" / version
    if not folder.is_dir():
        pytest.skip(f"golden data is not here: {folder} (set TANDEM_GOLDEN to its parent's parent)")
    paths = sorted(folder.glob(f"{scenario}.jsonl.xz"))
    assert paths, f"no capture {scenario} of {version}"
    for path in paths:
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def copy_of(path: Path, directory: Path) -> Path:
    """Copy a store into ``directory``, holes kept; for tests that write."""
    target = directory / path.name
    subprocess.run(["cp", "--sparse=always", "-r", path, target], check=True)
    return target
