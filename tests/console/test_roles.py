"""Who is master, and who may do what: as a person changes and sees it in a browser."""

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.admin_process import AdminProcess
from tests.console.conftest import PATIENT
from tests.console.http_kit import basic, call
from tests.console.kit import USERS, write_access
from tests.console.screen import Screen, screen
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.slow]

SECRETS = {"alice": "wonder", "vera": "glass"}


def _picture(window: Screen, name: str) -> None:
    """For whoever wants to look at it: TANDEM_TEST_PICTURES says where."""
    if directory := os.environ.get("TANDEM_TEST_PICTURES"):
        window.page.screenshot(path=Path(directory) / f"{name}.png", full_page=True)


def _confirm(window: Screen, name: str, button: str) -> None:
    """Types the node's name; the button cannot be pressed before."""
    confirm = window.dialog().get_by_role("button", name=button, exact=True)
    expect(confirm).to_be_disabled()
    window.dialog().get_by_label("to confirm").fill(name)
    confirm.click()


def test_a_slave_is_promoted_and_the_old_master_follows_and_begins_anew(
    browser: Browser, tmp_path: Path, own_directory: Path
) -> None:
    names = {"alpha": (pair := Pair(tmp_path)).master, "beta": pair.slave}
    with (
        pair,
        AdminProcess(own_directory, names, files=True, **PATIENT) as admin,
        screen(browser, str(admin.event("console")["url"])) as window,
    ):
        until(lambda: list(pair.slave.role().group.members), 60, "the slave is told of the master's group")
        pair.master.kill()
        window.open("cluster")
        beta = window.page.get_by_role("group", name="Role of beta")
        beta.get_by_role("button", name="Promote").click()
        _confirm(window, "beta", "Promote")
        expect(window.dialog().get_by_role("alert")).to_contain_text("--old-master-is-gone")
        _picture(window, "promote-refused")
        window.dialog().get_by_label("The old master is gone").check()
        window.dialog().get_by_role("button", name="Promote", exact=True).click()
        expect(window.page.get_by_role("heading", name="beta was promoted")).to_be_visible()
        expect(window.dialog().get_by_role("listitem").last).to_contain_text("this node is SYNC_MASTER of epoch 2")
        _picture(window, "promoted")
        window.button("Close").click()
        expect(window.page.get_by_role("article", name="Node beta")).to_contain_text("master")
        expect(beta).to_have_count(0)

        pair.master.start()
        until(lambda: pair.master.role().identity.fenced_by_epoch == 2, 60, "the old master is fenced")
        window.open("cluster")
        there, here = pair.slave.address("replicator"), pair.master.address("replicator")
        told = f"tandem replica follow {pair.slave.ha_address} --replicator {there} --address {here}"
        expect(window.page.get_by_role("article", name="Node alpha").locator(".problems")).to_contain_text(told)
        alpha = window.page.get_by_role("group", name="Role of alpha")
        alpha.get_by_role("button", name="Follow").click()
        expect(window.dialog().get_by_label("Master")).to_have_value("beta")
        _confirm(window, "alpha", "Follow")
        window.notice("alpha is a slave now")
        pair.master, pair.slave = pair.slave, pair.master
        pair.wait_following()

        alpha.get_by_role("button", name="Re-seed").click()
        _confirm(window, "alpha", "Re-seed")
        expect(window.dialog().get_by_role("alert")).to_contain_text("only while it is stopped")
        pair.slave.store.stop()
        window.dialog().get_by_role("button", name="Re-seed", exact=True).click()
        window.heading("reseed of alpha")
        expect(window.page.locator("main")).to_contain_text("succeeded")
        _picture(window, "reseed")
        pair.heal()
        window.open("actions")
        expect(window.row("PromoteNode").filter(has_text="OK")).to_have_count(1)
        assert not window.complaints


def test_users_and_roles_are_shown_without_secrets(browser: Browser, closed: AdminProcess, access_file: Path) -> None:
    url = str(closed.event("console")["url"])
    for width in (1280, 390):
        with screen(browser, url, width=width) as window:
            window.page.goto(f"{window.url}/#/users")
            window.page.get_by_label("User").fill("alice")
            window.page.get_by_label("Secret").fill(SECRETS["alice"])
            window.button("Sign in").click()
            window.open("users")
            window.heading("Users")
            expect(window.row("olga").first).to_contain_text("a secret")
            role = window.page.get_by_role("table", name="Roles").locator("tbody tr", has_text="olga")
            expect(role).to_contain_text("view")
            assert window.page.evaluate("document.documentElement.scrollWidth") <= width
            _picture(window, f"users-{width}")
    answer = call(url, "ListUsers", authorization=basic("alice", SECRETS["alice"]))
    assert "scrypt" not in json.dumps(answer.json)
    refused = call(url, "ListUsers", authorization=basic("vera", SECRETS["vera"]))
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    try:
        access_file.write_text("nobody understands this")
        until(
            lambda: bool(call(url, "ListUsers", authorization=basic("alice", SECRETS["alice"])).json["problem"]),
            60,
            "it is told",
        )
    finally:
        write_access(access_file, USERS)
