"""kill -9 and power cuts, hundreds of each: no acknowledged message lost, no deleted one back, offsets never backwards.

A run is one process that forks a store process per life (see kills.py, powercuts.py). ``TANDEM_SEED=<n>`` replays its
choices, ``TANDEM_TEST_LIVES=<n>`` makes it longer, and `make soak` goes on for as long as you like.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.campaign import run_campaign
from tests.faults.harness import SEED

LIVES = int(os.environ.get("TANDEM_TEST_LIVES", "500"))
FEW = 20


def run(module: str, lives: int, keep: Path) -> dict[str, Any]:
    report = run_campaign(module, "--seed", SEED, "--lives", lives, "--keep", keep, timeout=1700)
    if "skipped" in report:
        pytest.skip(report["skipped"])
    return report


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    report = run("kills", FEW, tmp_path / "store")
    assert not report["problems"]
    assert not report["broken"]
    assert report["kills"]
    assert report["acked"] > 50 * FEW, "too little load to mean anything"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kill_9_loses_nothing(tmp_path: Path) -> None:
    report = run("kills", LIVES, tmp_path / "store")
    assert not report["problems"]
    assert not report["broken"]
    assert report["kills"] + report["closes"] >= LIVES
    assert report["kills_in_recovery"]
    assert report["audits"] > LIVES // 13
    assert report["acked"] > 50 * LIVES, "too little load to mean anything"


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.timeout(1800)
def test_power_cuts_lose_nothing(tmp_path: Path) -> None:
    report = run("powercuts", LIVES, tmp_path / "store")
    assert not report["problems"]
    assert not report["broken"]
    assert report["cuts"] >= LIVES
    assert report["acked"] > 20 * LIVES, "too little load to mean anything"
