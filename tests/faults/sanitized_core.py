"""The compiled core, built with the address sanitizer in a directory that is thrown away, under the tests that feed it.

A read or write outside of an object ends the process that does it, with where and why on its error output. Needs gcc
with its libasan; ziglang, which `make venv` may take instead, has none.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/unit/format/test_addresses.py",
    "tests/unit/format/test_compiled_keys.py",
    "tests/unit/format/test_index_layout.py",
    "tests/unit/format/test_plain_batches.py",
    "tests/unit/format/test_record_columns.py",
    "tests/unit/format/test_walkers.py",
    "tests/unit/grpc_transport/test_head_scan.py",
    "tests/unit/grpc_transport/test_lane.py",
    "tests/unit/grpc_transport/test_lane_slices.py",
    "tests/unit/log/test_compiled_run.py",
    "tests/unit/delivery/test_compiled_facts.py",
    "tests/unit/delivery/test_compiled_handles.py",
    "tests/unit/fronts/test_compiled_batches.py",
    "tests/unit/fronts/test_compiled_consumers.py",
    "tests/unit/fronts/test_compiled_consuming.py",
    "tests/unit/fronts/test_compiled_frames.py",
    "tests/unit/fronts/test_compiled_link.py",
    "tests/unit/fronts/test_compiled_messages.py",
    "tests/unit/fronts/test_compiled_pulls.py",
    "tests/unit/fronts/test_compiled_send.py",
    "tests/unit/fronts/test_frame_reads.py",
    "tests/unit/fronts/test_json_scan.py",
    "tests/faults/test_transport_fuzz.py",
)
"""Twins and corpora: each part of the core is given what its Python twin is given."""

_SOURCE = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "src", "services", "spark", "tests", "tools", "protos")
_FLAGS = "-fsanitize=address -fno-omit-frame-pointer -g1 -w"


class NoSanitizer(Exception):
    """There is no compiler that could build it."""


def library() -> Path:
    """The sanitizer's. Raises NoSanitizer."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NoSanitizer("there is no gcc")
    asked = [compiler, "-print-file-name=libasan.so"]
    found = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    if not found.is_absolute():
        raise NoSanitizer("this gcc has no libasan")
    return found.resolve()


def build(directory: Path) -> Path:
    """A copy of the project with such a core. Raises NoSanitizer, subprocess.CalledProcessError."""
    library()
    source = directory / "project"
    source.mkdir()
    for name in _SOURCE:
        path = ROOT / name
        if path.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
            shutil.copytree(path, source / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, source / name)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "-j", str(os.cpu_count() or 1)]
    environment = {**os.environ, "CC": "gcc", "CFLAGS": _FLAGS, "PYTHONWARNINGS": "ignore"}
    subprocess.run(command, cwd=source, env=environment, check=True)
    return source


def environment_of(source: Path) -> dict[str, str]:
    """For processes that use the core of a copy. Python takes its memory from malloc, which the sanitizer watches."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library()),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself frees little at its end
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join((str(source / "src"), str(source))),
    }


def run(source: Path, tests: tuple[str, ...], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Tests under the sanitizer; `more`: environment."""
    asked = "from tandemmq.store.compiled_core import core_problem; import sys; sys.exit(core_problem() or 0)"
    environment = environment_of(source) | dict(more)
    subprocess.run([sys.executable, "-c", asked], cwd=source, env=environment, check=True)
    quiet = ("-q", "-p", "no:cacheprovider", "--capture=sys")  # what the sanitizer writes must not end with the process
    command = [sys.executable, "-m", "pytest", *quiet, "-m", "not slow", *tests]
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


def soak(seed: int, rounds: int) -> int:
    """Rounds of the tests, each with the next seed; what was found, as exit code."""
    with tempfile.TemporaryDirectory(prefix="tandem-asan-") as name:
        try:
            source = build(Path(name))
        except NoSanitizer as problem:
            sys.stdout.write(f"the core cannot be built with the address sanitizer: {problem}\n")
            return 1
        for one in range(seed, seed + rounds):
            outcome = run(source, TESTS, {"TANDEM_SEED": str(one)})
            if outcome.returncode:
                sys.stdout.write(f"TANDEM_SEED={one}:\n{outcome.stdout[-8000:]}{outcome.stderr[-8000:]}\n")
                return 1
            sys.stdout.write(f"TANDEM_SEED={one}: {outcome.stdout.splitlines()[-1]}\n")
            sys.stdout.flush()
    return 0
