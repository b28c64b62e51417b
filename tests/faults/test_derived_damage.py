"""Bits of queues and index files flipped at random: nothing is hidden in silence, and nothing invented."""

from pathlib import Path

import pytest

from tests.faults.derived_damage import campaign
from tests.seed import SEED

pytestmark = pytest.mark.slow

CASES = 60


@pytest.mark.timeout(600)
async def test_derived_files_with_flipped_bits(tmp_path: Path) -> None:
    report = await campaign(SEED, CASES, tmp_path)
    assert report.problems == []
    assert report.cases == CASES
