"""The test runner on small suites of its own: what fails twice has failed, what raced is named, nothing is hidden."""

import os
import re
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
SEEDED = """
import os
from pathlib import Path
import pytest
@pytest.mark.parametrize("which", [pytest.param(0, marks=pytest.mark.seeded), 1])
def test_draws(which):
    with Path(__file__).with_name(f"drawn-{which}").open("a") as file:
        file.write(os.environ["TANDEM_SEED"] + "\\n")
    assert Path(__file__).with_name(f"drawn-{which}").read_text().count("\\n") == 2
"""
ALONE = "import pytest\n@pytest.mark.serial\ndef test_alone():\n    pass\n"


def outcome(directory: Path, at_once: int = 0, seed: str = "", /, *options: str, **files: str) -> tuple[int, str]:
    """Exit status and output of a run over test files with these contents."""
    (directory / "pytest.ini").write_text("[pytest]\nmarkers =\n    serial: alone\n    seeded: draws\n    slow: long\n")
    for name, content in files.items():
        (directory / f"test_{name}.py").write_text(content)
    command = [sys.executable, str(REPOSITORY / "tools/run_tests.py"), "--workers", str(at_once), *options]
    environment = {name: value for name, value in os.environ.items() if name != "TANDEM_SEED"}
    environment |= {"TANDEM_SEED": seed} if seed else {}
    done = subprocess.run(
        command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=230, check=False,
        env=environment,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_suite_that_passes_runs_once(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, alone=ALONE)
    assert status == 0
    assert "once more" not in told


@pytest.mark.slow
def test_the_parts_of_a_suite_are_all_of_it(tmp_path: Path) -> None:
    """Every test is in one of them, beside others or alone; the second try is of what failed in that part."""
    files = {
        "sound": SOUND, "alone": ALONE, "long": "import pytest\npytestmark = pytest.mark.slow\n" + RACES,
        "long_alone": ALONE.replace("@pytest.mark.serial", "@pytest.mark.serial\n@pytest.mark.slow"),
    }  # fmt: skip
    status, told = outcome(tmp_path, 2, "", "-m", "not slow", **files)
    assert (status, re.findall(r"^\d+ passed", told, re.M)) == (0, ["1 passed", "1 passed"])
    assert "once more" not in told
    status, told = outcome(tmp_path, 2, "", "-m", "slow", **files)
    assert (status, re.findall(r"^\d+ (?:passed|failed)", told, re.M)) == (0, ["1 failed", "1 passed", "1 passed"])
    assert "to be mended (docs/CONTRIBUTING.md, Tests):\n  test_long.py::test_races\n\nall of" in told


def test_the_makefile_runs_each_test_in_one_part() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    conditions = {
        target: re.search(rf'^{target}:.*\n(?:\t.*\n)*?.*run_tests.py.* -m ("[^"]+"|\S+) ', makefile, re.M)
        for target in ("test", "campaigns")
    }
    found = {target: condition and condition[1].strip('"') for target, condition in conditions.items()}
    assert found == {"test": "not slow", "campaigns": "slow"}
    assert re.search(r"^test-all: test campaigns\b", makefile, re.M)


@pytest.mark.slow
def test_a_test_that_raced_is_named(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, races=RACES)
    assert status == 0
    assert "once more, alone, but for what draws at random: test_races.py::test_races" in told
    assert "to be mended (docs/CONTRIBUTING.md, Tests):\n  test_races.py::test_races\n\nall of" in told


@pytest.mark.slow
def test_a_test_of_a_group_is_found_again(tmp_path: Path) -> None:
    """Beside others it is called after its group too."""
    grouped = "import pytest\npytestmark = pytest.mark.xdist_group('two words')\n" + RACES
    status, told = outcome(tmp_path, 2, sound=SOUND, races=grouped)
    assert status == 0
    assert "once more, alone, but for what draws at random: test_races.py::test_races\n" in told
    assert re.findall(r"^\d+ (?:passed|failed)", told, re.M) == ["1 failed", "1 passed"], "not all once more"


@pytest.mark.slow
def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, 2, broken=BROKEN, races=RACES)
    assert status == 1
    assert told.count("FAILED test_broken.py::test_broken") == 2
    assert (
        "(docs/CONTRIBUTING.md, Tests):\n  test_races.py::test_races\nfailed:\n  test_broken.py::test_broken\n" in told
    )


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [0, 2])
def test_what_draws_at_random_has_no_second_try_and_all_draws_from_one_seed(tmp_path: Path, at_once: int) -> None:
    """The first run fails, a second one would pass: it has failed. The other one may be tried again, with the seed."""
    status, told = outcome(tmp_path, at_once, draws=SEEDED, sound=SOUND)
    assert status == 1
    assert (
        "(docs/CONTRIBUTING.md, Tests):\n  test_draws.py::test_draws[1]\nfailed:\n  test_draws.py::test_draws[0]"
        in told
    )
    seeds = re.findall(r"TANDEM_SEED=(\d+)", told)
    assert told.startswith(f"TANDEM_SEED={seeds[0]}\n")
    assert told.rstrip().endswith(f"TANDEM_SEED={seeds[0]}")
    assert (tmp_path / "drawn-0").read_text() == f"{seeds[0]}\n"
    assert (tmp_path / "drawn-1").read_text() == f"{seeds[0]}\n" * 2
    assert (tmp_path / ".pytest_cache/TANDEM_SEED").read_text() == f"{seeds[0]}\n"


@pytest.mark.slow
def test_a_run_whose_only_failure_draws_at_random_has_failed(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, 0, "17", draws=SEEDED.replace(", 1]", "]"), sound=SOUND)
    assert status == 1
    assert (tmp_path / "drawn-0").read_text() == "17\n"
    assert "failed:\n  test_draws.py::test_draws[0]" in told


@pytest.mark.slow
def test_a_failure_among_those_that_run_alone_counts(tmp_path: Path) -> None:
    status, _ = outcome(tmp_path, sound=SOUND, alone=ALONE.replace("pass", "assert False"))
    assert status == 1


@pytest.mark.slow
def test_many_failures_are_no_race(tmp_path: Path) -> None:
    files = {f"races_{at}": RACES.replace("was-here", f"was-here-{at}") for at in range(AGAIN_AT_MOST + 1)}
    status, told = outcome(tmp_path, 0, **files)
    assert status == 1
    assert "once more" not in told


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_no_race(tmp_path: Path) -> None:
    status, told = outcome(tmp_path, sound=SOUND, bad="import nothing_of_this_name\n")
    assert status not in (0, 5)
    assert "nothing_of_this_name" in told


@pytest.mark.slow
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
