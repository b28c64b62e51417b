"""Tests: those that may run side by side, those that must be alone, and a second look at what failed.

    python tools/run_tests.py [--workers 2] [-m "not slow"] [--coverage] [what pytest takes ...]

Hundreds of these tests start processes, kill them and wait for what the others do about it. On two loaded cores one of
thousands may lose a race with its neighbours that says nothing of the code. So at most `AGAIN_AT_MOST` failed tests run
once more, alone. One that fails again has failed. One that passes then is named at the end, to be mended: it is a race.

All of a run draws from one seed, a second try too: ``TANDEM_SEED`` if it is set, else a new one. It is told at the
beginning and at the end, and kept in `.pytest_cache/TANDEM_SEED`. Tests that draw from it (marked ``seeded``) have no
second try: what one of them has found is a failure, whatever a second run would say.

With ``--coverage`` a table at the end says, package by package, how many lines of it the tests have run in their own
processes; what a service does that a test starts as a process of its own is not in it, nor what tests/conftest.py
leaves out to save time.

Exit status is pytest's: 0 when every test has passed, 1 when one has failed, 5 when none was found.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
AGAIN_AT_MOST = 8
"""More than so many have not lost a race: something is broken."""
FAILED, NONE_FOUND = 1, 5
SLOWEST = ("--durations=30", "--durations-min=4")
"""What took longest is told at the end: a test that takes so long belongs to the campaigns."""
_CACHE = Path(".pytest_cache")
_LAST_FAILED = _CACHE / "v/cache/lastfailed"
_GROUP = re.compile(r"@[^\]/]*$")


def run(*arguments: str) -> int:
    """Run pytest; gives its exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], check=False).returncode


def begin() -> str:
    """Set the seed of everything that is run from here on, tell it and keep it; gives how to say it."""
    os.environ.setdefault("TANDEM_SEED", str(random.SystemRandom().randrange(1 << 32)))
    seed = os.environ["TANDEM_SEED"]
    _CACHE.mkdir(exist_ok=True)
    (_CACHE / "TANDEM_SEED").write_text(f"{seed}\n")
    print(f"TANDEM_SEED={seed}", flush=True)
    return f"TANDEM_SEED={seed}"


def both(*conditions: str) -> str:
    """Markers' conditions that must all hold, as one."""
    return " and ".join(f"({condition})" for condition in conditions if condition)


def with_marker(name: str) -> list[str]:
    """The files that have a test with a marker: to collect all others takes longer than to run these."""
    return sorted(str(path) for path in Path("tests").rglob("test_*.py") if f"mark.{name}" in path.read_text())


def failed_tests() -> list[str]:
    """The tests that pytest's cache remembers as failed, by the names that they have when they run alone.

    Beside others a test of a group is called `name@group`. Under that name pytest would not find it, and run all.
    """
    try:
        failed = sorted({_GROUP.sub("", name) for name in json.loads(_LAST_FAILED.read_text())})
    except FileNotFoundError:
        return []
    _LAST_FAILED.write_text(json.dumps(dict.fromkeys(failed, True)))
    return failed


def all_of(statuses: list[int]) -> int:
    """One exit status for several runs, of which some may have found nothing to do."""
    told = [status for status in statuses if status != NONE_FOUND]
    return max(told) if told else NONE_FOUND


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", default="2", help="how many tests run side by side")
    parser.add_argument("-m", default="", dest="marked", help="which tests, by a condition on their markers")
    parser.add_argument("--coverage", action="store_true", help="end with a table of the lines that were run")
    options, arguments = parser.parse_known_args()
    _LAST_FAILED.unlink(missing_ok=True)

    seed = begin()
    measured = ("--cov", "--cov-report=") if options.coverage else ()
    many = ("-n", options.workers, "--dist", "loadgroup", *SLOWEST)
    beside = run(*many, "-m", both("not serial", options.marked), *measured, *arguments)
    status = all_of([beside, run("-m", both("serial", options.marked), *(arguments or with_marker("serial")))])
    if status == FAILED and 0 < len(failed_tests()) <= AGAIN_AT_MOST:
        status = second_try(arguments)
    if options.coverage:
        subprocess.run([sys.executable, str(REPOSITORY / "tools/coverage_table.py")], check=False)
    print(f"\nall of this run drew from {seed}", flush=True)
    return status


def second_try(arguments: list[str]) -> int:
    """Run the failed tests once more, without those that draw at random; gives the exit status of the whole run."""
    failed = failed_tests()
    print(f"\nonce more, alone, but for what draws at random: {', '.join(failed)}", flush=True)
    status = run("--last-failed", "--last-failed-no-failures=none", *arguments, "-m", "not seeded")
    still = failed_tests()
    raced = sorted(set(failed) - set(still))
    if raced:
        print("passed only at the second try, to be mended (docs/CONTRIBUTING.md, Tests):")
        print(*(f"  {test}" for test in raced), sep="\n", flush=True)
    if still:
        print("failed:", *(f"  {test}" for test in still), sep="\n", flush=True)
        return status if status not in (0, NONE_FOUND) else FAILED
    return status


if __name__ == "__main__":
    sys.exit(main())
