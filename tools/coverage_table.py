"""A table of what tests have run, package by package, from the `.coverage` file that they left.

    python tools/coverage_table.py

`coverage report` has it file by file, with the lines that are missing under `--show-missing`. Modules of the compiled
core, which a .pxd file beside them tells, are left out: what runs of them is machine code.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).resolve().parents[1]
_TOLD_BY_ROOMS = ("store", "common")
"""Packages that are too large for one line: each package in them has its own."""


def package_of(path: str) -> str:
    """The package whose line a file belongs to: `store.log`, `spark`."""
    parts = Path(path).parts[:-1]
    if parts[0] == "services":
        parts = parts[1:]
    return ".".join(parts[: 2 if parts and parts[0] in _TOLD_BY_ROOMS else 1]) or "tandemmq"


def is_compiled(path: str) -> bool:
    """Whether it is a module of the compiled core."""
    return (_REPOSITORY / path).with_suffix(".pxd").exists()


def table(files: Mapping[str, Any]) -> str:
    """The table; `files` is what ``coverage json`` tells of each file."""
    lines: dict[str, tuple[int, int]] = {}
    for path, told in files.items():
        summary = told["summary"]
        for package in (package_of(path), "all"):
            run, there = lines.get(package, (0, 0))
            lines[package] = run + summary["covered_lines"], there + summary["num_statements"]
    everything = lines.pop("all", (0, 0))
    rows = [(name, *lines[name]) for name in sorted(lines) if lines[name][1]] + [("all", *everything)]
    head = "coverage: lines that the tests have run in their own processes"
    return "\n".join([head, *(f"  {name:<24}{run / max(there, 1):>6.1%} of {there:>6,}" for name, run, there in rows)])


def coverage_table() -> str:
    """The table of the `.coverage` file of this directory; the reason if there is none that can be read."""
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", "-"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        return f"no coverage: {(told.stdout + told.stderr).strip()}"
    files = json.loads(told.stdout)["files"]
    return table({path: one for path, one in files.items() if not is_compiled(path)})


if __name__ == "__main__":
    print(coverage_table())
