"""What is told of errors that nobody foresaw."""

import subprocess
import sys
from pathlib import Path

import pytest

from tandemmq.cli.talk.failures import unexpected


@pytest.mark.parametrize(
    ("module", "extra"), [("lark.lexer", "server"), ("uvloop", "server"), ("pyspark.sql", "spark")]
)
def test_a_package_that_is_missing_is_told_with_what_installs_it(module: str, extra: str) -> None:
    """An audit needs more than a broker does."""
    told = unexpected(ModuleNotFoundError(f"No module named '{module}'", name=module)).message
    assert f"the Python package {module.partition('.')[0]} is not installed" in told
    assert f"pip install 'tandemmq[{extra}]'" in told
    assert "make venv" in told


def test_a_module_of_ours_that_is_missing_is_our_fault() -> None:
    told = unexpected(ModuleNotFoundError("No module named 'tandemmq.nothing'", name="tandemmq.nothing")).message
    assert "a fault of tandem itself" in told


@pytest.mark.parametrize("command", [["audit"], ["rebuild"], ["export", "out"]])
def test_what_needs_the_compiled_core_says_so(command: list[str], tmp_path: Path) -> None:
    """A wheel for any machine has none: its store goes on in Python, audits do not."""
    program = (
        "import importlib.machinery; importlib.machinery.EXTENSION_SUFFIXES.clear()\n"  # as for another Python
        "from tandemmq.cli.entry import main; main()"
    )
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(bytes(4096))
    verb, *more = command
    words = [sys.executable, "-c", program, "data", verb, str(tmp_path), *(str(tmp_path / one) for one in more)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("tandem: the compiled core is not built for this Python")
    assert "a wheel for this Python and processor" in line
