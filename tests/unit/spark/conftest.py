"""What these tests share: quick files."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A directory in memory where there is one: every document of a rebuild is synced."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tandem-", dir=memory if memory.is_dir() else None) as name:
        yield Path(name)
