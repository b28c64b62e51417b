"""Producers and consumers at stores that are killed: a small round of each scene of the delivery campaign.

`TANDEM_SEED=<n>` replays the choices; as long as you like: `make soak ARGS="--delivery"`.
"""

from pathlib import Path

import pytest

from tests.faults.campaign import run_campaign
from tests.faults.harness import SEED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 12


@pytest.mark.parametrize("scene", ["store", pytest.param("power", marks=pytest.mark.root), "pair"])
def test_every_message_is_dealt_with(tmp_path: Path, scene: str) -> None:
    options = ("--scene", scene, "--seed", SEED, "--seconds", SECONDS, "--keep", tmp_path / "kept")
    report = run_campaign("delivery_campaign", *options, timeout=860)
    if "skipped" in report:
        pytest.skip(report["skipped"])
    assert not report["problems"], report.get("stopped")
    assert not report["broken"]
    assert report["told"]["PUT_OK"] >= 5 * SECONDS
    assert report["received"] > report["told"]["PUT_OK"]
