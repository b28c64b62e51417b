"""What is sent to a cluster is whole: all of it can be imported where nothing of ours is installed."""

import os
import subprocess
import sys
from pathlib import Path

from tandemmq.spark.running.shipping import zip_package

PROGRAM = """
import importlib, pkgutil, sys
import tandemmq.spark
for one in pkgutil.walk_packages(tandemmq.spark.__path__, "tandemmq.spark."):
    importlib.import_module(one.name)
from tandemmq.client import StoreClient
print(*{module.__file__ for name, module in sys.modules.items() if name.startswith("tandemmq.") and module.__file__})
"""


def test_every_module_that_is_sent_finds_what_it_imports(tmp_path: Path) -> None:
    """Tasks that read a running store are clients of it too."""
    sent = zip_package(tmp_path / "sent.zip")
    environment = {**os.environ, "PYTHONPATH": str(sent), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    files = done.stdout.split()
    assert any(name.endswith(".so") for name in files)
    assert not [name for name in files if not Path(name).is_relative_to(tmp_path)]
