"""A slave that hangs while its connection is open and there is nothing to replicate."""

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.admin_process import AdminProcess
from tests.console.screen import Screen, screen
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("console")


@pytest.mark.slow
def test_an_idle_link_is_amber_while_its_slave_is_stopped(
    browser: Browser, tmp_path: Path, own_directory: Path
) -> None:
    patient = {"haHousekeepingInterval": 600_000}  # nobody closes the connection meanwhile
    with (
        Pair(tmp_path, "ASYNC_MASTER", replicator=patient) as pair,
        AdminProcess(own_directory, {"alpha": pair.master, "beta": pair.slave}) as admin,
        screen(browser, str(admin.event("console")["url"])) as window,
    ):
        pair.wait_level()
        window.open("cluster")
        good, amber = window.page.locator(".picture .link.good"), window.page.locator(".picture .link.warn")
        expect(good).to_be_visible()
        pid = pair.slave.replicator.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            until(lambda: _shown(window, amber), 90, "the link is amber")
            expect(amber).to_contain_text("no report for")
            master = window.page.get_by_role("article", name="Node alpha")
            expect(master.locator(".problems")).to_contain_text(re.compile("has not reported for .*does it hang"))
        finally:
            os.kill(pid, signal.SIGCONT)
        until(lambda: _shown(window, good), 90, "the link is green again")
        assert not window.complaints


def _shown(window: Screen, one: Locator) -> bool:
    """Whether it is on the page when that has refreshed itself."""
    window.later()
    return one.count() == 1
