"""The test runner on small suites of its own: what fails twice has failed, what raced is named, nothing is hidden."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.run_tests import AGAIN_AT_MOST, REPOSITORY, all_of

pytestmark = pytest.mark.timeout(240)

RACES = """
from pathlib import Path
def test_races():
    first = Path(__file__).with_name("was-here")
    if not first.exists():
        first.touch()
        raise AssertionError("too slow")
"""
BROKEN = "def test_broken():\n    assert False\n"
SOUND = "def test_sound():\n    pass\n"
ALONE = "import pytest\n@pytest.mark.serial\ndef test_alone():\n    pass\n"


def outcome(directory: Path, at_once: int = 0, /, **files: str) -> tuple[int, str]:
    """Exit status and output of a run over test files with these contents."""
    (directory / "pytest.ini").write_text("[pytest]\nmarkers =\n    serial: alone\n")
    for name, content in files.items():
        (directory / f"test_{name}.py").write_text(content)
    command = [sys.executable, str(REPOSITORY / "tools/run_tests.py"), "--workers", str(at_once)]
    done = subprocess.run(
        command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=230, check=False
    )
    return done.returncode, done.stdout


def test_a_suite_that_passes_runs_once(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, alone=ALONE)
    assert status == 0
    assert "once more" not in told


def test_a_test_that_raced_is_named(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, races=RACES)
    assert status == 0
    assert "once more, alone: test_races.py::test_races" in told
    assert told.rstrip().endswith("to be mended (docs/CONTRIBUTING.md, Tests):\n  test_races.py::test_races")


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, 2, broken=BROKEN, races=RACES)
    assert status == 1
    assert told.count("FAILED test_broken.py::test_broken") == 2
    assert told.rstrip().endswith("test_races.py::test_races"), "and the race is named all the same"


def test_a_failure_among_those_that_run_alone_counts(tmp_path: Path) -> None:
    status, _ = outcome(tmp_path, sound=SOUND, alone=ALONE.replace("pass", "assert False"))
    assert status == 1


def test_many_failures_are_no_race(tmp_path: Path) -> None:
    files = {f"races_{at}": RACES.replace("was-here", f"was-here-{at}") for at in range(AGAIN_AT_MOST + 1)}
    status, told = outcome(tmp_path, 0, **files)
    assert status == 1
    assert "once more" not in told


def test_a_file_that_cannot_be_read_is_no_race(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, bad="import nothing_of_this_name\n")
    assert status not in (0, 5)
    assert "nothing_of_this_name" in told


def test_what_failed_in_an_earlier_run_is_forgotten(tmp_path: Path) -> None:
    assert outcome(tmp_path, broken=BROKEN)[0] == 1
    (tmp_path / "test_broken.py").write_text(SOUND)
    status, told = outcome(tmp_path, races=RACES)
    assert status == 0
    assert "test_broken" not in told


@pytest.mark.parametrize(
    ("statuses", "together"), [([0, 5], 0), ([5, 5], 5), ([0, 1], 1), ([1, 5], 1), ([2, 0], 2), ([0, 0], 0)]
)
def test_exit_statuses(statuses: list[int], together: int) -> None:
    assert all_of(statuses) == together
