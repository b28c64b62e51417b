"""All tests: those that may run side by side, those that must be alone, and a second look at what failed.

    python tools/run_tests.py [--workers 2] [what pytest takes ...]

Hundreds of these tests start processes, kill them and wait for what the others do about it. On two loaded cores one of
thousands may lose a race with its neighbours that says nothing of the code. So at most `AGAIN_AT_MOST` failed tests run
once more, alone. One that fails again has failed. One that passes then is named at the end, to be mended: it is a race.

Exit status is pytest's: 0 when every test has passed, 5 when none was found.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
AGAIN_AT_MOST = 8
"""More than so many have not lost a race: something is broken."""
FAILED, NONE_FOUND = 1, 5
_LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")


def run(*arguments: str) -> int:
    """Run pytest; gives its exit status."""
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], check=False).returncode


def failed_tests() -> list[str]:
    """The tests that pytest's cache remembers as failed."""
    try:
        return sorted(json.loads(_LAST_FAILED.read_text()))
    except FileNotFoundError:
        return []


def all_of(statuses: list[int]) -> int:
    """One exit status for several runs, of which some may have found nothing to do."""
    told = [status for status in statuses if status != NONE_FOUND]
    return max(told) if told else NONE_FOUND


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", default="2", help="how many tests run side by side")
    options, arguments = parser.parse_known_args()
    _LAST_FAILED.unlink(missing_ok=True)

    beside = run("-n", options.workers, "--dist", "loadgroup", "-m", "not serial", *arguments)
    status = all_of([beside, run("-m", "serial", *arguments)])
    failed = failed_tests()
    if status != FAILED or not 0 < len(failed) <= AGAIN_AT_MOST:
        return status

    print(f"\nonce more, alone: {', '.join(failed)}", flush=True)
    status = run("--last-failed", "--last-failed-no-failures=none", *arguments)
    raced = sorted(set(failed) - set(failed_tests()))
    if raced:
        print("passed only at the second try, to be mended (docs/CONTRIBUTING.md, Tests):")
        print(*(f"  {test}" for test in raced), sep="\n", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
