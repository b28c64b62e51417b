"""A store with very many waiting timers is killed, and opened again."""

import asyncio
from pathlib import Path

import pytest

from tests.campaigns import in_campaigns
from tests.faults.timer_kill import filled_and_killed, look, problems


@pytest.mark.timeout(900)
@pytest.mark.parametrize("timers", [5_000, *in_campaigns(1_000_000)])
def test_a_kill_loses_no_timer(timers: int, tmp_path: Path) -> None:
    acknowledged = filled_and_killed(tmp_path, timers)
    assert acknowledged >= timers
    assert problems(asyncio.run(look(tmp_path, acknowledged))) == []
