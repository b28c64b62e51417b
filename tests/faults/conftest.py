"""What the fault tests share."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import SEED

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A directory in memory where there is one: for tests that sync thousands of times and never cut the power."""
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="tandem-faults-", dir=parent) as path:
        yield Path(path)


@pytest.fixture(autouse=True)
def _say_the_seed() -> None:
    """A failure shows the seed: ``TANDEM_SEED=<n> make test-all`` replays it."""
    sys.stdout.write(f"TANDEM_SEED={SEED}\n")
