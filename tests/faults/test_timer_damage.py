"""Twenty-five of the cases of damaged timer files; `make soak ARGS=--damage` has two thousand."""

import pytest

from tests.faults.harness import SEED
from tests.faults.timer_damage import campaign


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_damage_to_timer_files_loses_no_timer_and_repeats_none_silently() -> None:
    verdicts, bad = await campaign(SEED, 25)
    assert not bad, f"seed {SEED}: {bad}"
    assert verdicts["reported"] > 3
