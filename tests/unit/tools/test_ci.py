"""What continuous integration runs: both parts of the suite, whatever becomes of the first, and what they said."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.run_tests import REPOSITORY

MAKE = """#!/bin/bash
echo "$1$TANDEM_TEST_CORE" >> made
echo "TANDEM_SEED=7$1"
echo "12 passed in 3.45s"
echo "{} passed, 1 failed in 0.5s"
echo "all of this run drew from TANDEM_SEED=${{#1}}"
[[ "$1" != "{}" ]]
"""
COMMANDS = ("bash", "dirname", "id", "mktemp", "tee", "grep", "rm")


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize(("broken", "status"), [("neither", 0), ("test", 1), ("campaigns", 1)])
def test_both_parts_are_run_and_told_of(broken: str, status: int, built: bool, tmp_path: Path) -> None:
    """Campaigns with the compiled core, where that is built.

    With a `make` that notes what it should do, and without anything that could install packages.
    """
    (tmp_path / ".ci").mkdir()
    shutil.copy(REPOSITORY / ".ci/run", tmp_path / ".ci/run")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in COMMANDS:
        found = shutil.which(name)
        assert found is not None
        (commands / name).symlink_to(found)
    (commands / "make").write_text(MAKE.format(34, broken))
    (commands / "make").chmod(0o755)
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!{commands}/bash\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    core = tmp_path / "tandemmq/store/compiled_core.py"
    core.parent.mkdir(parents=True)
    for package in (core.parent, core.parent.parent):
        (package / "__init__.py").touch()
    core.write_text(f"def core_problem():\n    return {'' if built else 'it is not built'!r}\n")
    done = subprocess.run(
        [commands / "bash", tmp_path / ".ci/run"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, env={"PATH": str(commands), "TMPDIR": os.environ.get("TMPDIR", "/tmp")},
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert (tmp_path / "made").read_text().split() == ["test", "campaignsalways" if built else "campaigns"]
    told = done.stdout.partition("pytest said:\n")[2].splitlines()
    assert told == [
        "12 passed in 3.45s", "34 passed, 1 failed in 0.5s", "12 passed in 3.45s", "34 passed, 1 failed in 0.5s",
        "all of this run drew from TANDEM_SEED=4", "all of this run drew from TANDEM_SEED=9",
    ]  # fmt: skip
