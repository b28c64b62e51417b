"""How the console behaves: hostile texts, signing in, keys, narrow screens, refreshing, a server that is away."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.admin_process import AdminProcess
from tests.campaigns import rows_in_campaigns
from tests.console.http_kit import ask
from tests.console.kit import HOSTILE, USERS, write_access
from tests.console.screen import PAGES, Screen, screen
from tests.faults.pair import Pair
from tests.faults.pair_process import free_port, until

pytestmark = [pytest.mark.xdist_group("console"), pytest.mark.slow]

FIRST_PAGE_BYTES = 100_000

NO_SCROLLING = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture
def window(browser: Browser, url: str) -> Iterator[Screen]:
    """A window; nothing may go wrong in it unseen."""
    with screen(browser, url) as window:
        yield window
        assert not window.complaints


def test_markup_in_messages_stays_text(window: Screen) -> None:
    for route in (
        "messages?topic=shipments",
        "messages/shipments/0/0",
        "tail?topic=shipments",
        "topics?match=<b>x</b>",
    ):
        window.open(route)
        if "topics" not in route:
            expect(window.page.get_by_text(HOSTILE[:20]).first).to_be_visible()
        assert window.page.locator("img[src=x], main script, main b, main i").count() == 0, route
        assert "owned" not in window.page.title()
    window.open("messages/shipments/0/0")
    expect(window.page.locator("pre")).to_have_text(HOSTILE)
    expect(window.page.get_by_role("row", name="<i>name</i>")).to_be_visible()


@pytest.mark.parametrize(
    "route", ["topics/<img src=x onerror=alert(1)>", "groups/%3Cscript%3E", "%", "topics/%", "jobs/'\"><b>"]
)
def test_markup_in_addresses_stays_text(window: Screen, route: str) -> None:
    window.open(route)
    assert window.page.locator("img[src=x], main script, main b").count() == 0
    expect(window.page.get_by_role("alert").or_(window.page.get_by_role("heading", level=1))).not_to_have_count(0)


def test_markup_cannot_be_made_even_by_our_own_scripts(window: Screen) -> None:
    window.open("cluster")
    refused = window.page.evaluate(
        "() => { try { document.body.innerHTML = '<p>x</p>'; return false; } catch (e) { return true; } }"
    )
    assert refused
    window.complaints.clear()  # the browser told of it, as it should
    assert window.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'went', () => 'refused')") == "refused"
    window.complaints.clear()


def test_the_first_page_is_small(browser: Browser, url: str) -> None:
    with screen(browser, url) as window:
        sizes: dict[str, int] = {}
        window.page.on("response", lambda answer: sizes.update({answer.url: len(answer.body())}))
        window.open("cluster")
        expect(window.page.locator(".picture")).to_be_visible()
        pages = {address: size for address, size in sizes.items() if "/api/" not in address}
        assert len(pages) > 5
        assert sum(pages.values()) < FIRST_PAGE_BYTES, pages


@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), *rows_in_campaigns((800, "light"))])
def test_every_page_fits_a_narrow_screen(browser: Browser, url: str, width: int, scheme: str) -> None:
    with screen(browser, url, width=width, scheme="dark" if scheme == "dark" else "light") as window:
        for route in PAGES:
            window.open(route)
            assert window.page.evaluate(NO_SCROLLING), route
        background = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)[:3]))
        assert (brightness < 200) == (scheme == "dark")
        assert not window.complaints


def test_every_page_names_its_fields_and_has_one_heading(window: Screen) -> None:
    unnamed = """[...document.querySelectorAll("main input, main select, main textarea, main button")]
        .filter((one) => !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()))
        .map((one) => one.outerHTML)"""
    for route in PAGES:
        window.open(route)
        assert window.page.evaluate(unnamed) == [], route
        alerts = window.page.get_by_role("alert").count()
        assert window.page.locator("h1").count() + alerts == 1, route
        assert "TandemMQ" in window.page.title()


def test_keys_go_to_pages_and_to_the_search(window: Screen) -> None:
    window.open("cluster")
    window.page.keyboard.press("g")
    window.page.keyboard.press("t")
    window.heading("Topics")
    window.page.keyboard.press("/")
    search = window.page.get_by_label("Search")
    expect(search).to_be_focused()
    window.page.keyboard.type("gg")  # typed into a field, it is text
    expect(search).to_have_value("gg")
    window.heading("Topics")
    window.open("groups")
    window.page.keyboard.press("Tab")
    window.page.evaluate("document.getElementById('skip').focus()")
    window.page.keyboard.press("Enter")
    assert window.page.evaluate("document.activeElement.id") == "main"
    assert window.page.url.endswith("#/groups")


def test_refreshing_disturbs_nobody(window: Screen) -> None:
    window.open("topics/orders")
    window.page.evaluate(
        """() => {
            window.row = document.querySelector("tbody tr");
            const range = document.createRange();
            range.selectNodeContents(document.querySelector("h1"));
            getSelection().addRange(range);
        }"""
    )
    with window.page.expect_response("**/api/GetTopic"):
        window.later()
    window.page.wait_for_timeout(200)
    assert window.page.evaluate("window.row === document.querySelector('tbody tr')")
    assert window.page.evaluate("getSelection().toString()").strip() == "orders"
    window.button("Send a message").click()
    body = window.dialog().get_by_label("Body")
    body.fill("half a thou")
    with window.page.expect_response("**/api/GetTopic"):
        window.later()
    window.page.wait_for_timeout(200)
    expect(body).to_have_value("half a thou")
    expect(body).to_be_focused()
    window.page.keyboard.press("Escape")
    expect(window.page.get_by_role("dialog")).to_have_count(0)


def test_back_closes_a_dialog_and_leaves_the_page(window: Screen) -> None:
    window.open("topics")
    window.open("topics/orders")
    window.heading("orders")
    for leave in (window.page.go_back, lambda: window.button("Cancel").click()):
        window.button("Send a message").click()
        expect(window.dialog()).to_be_visible()
        leave()
        expect(window.page.get_by_role("dialog")).to_have_count(0)
        window.heading("orders")
        window.page.wait_for_function("!history.state?.dialog")  # the way back of a dialog takes a moment
    window.page.go_back()
    window.heading("Topics")


def test_signing_in_and_what_viewers_do_not_see(browser: Browser, closed: AdminProcess, access_file: Path) -> None:
    url = str(closed.event("console")["url"])
    with screen(browser, url) as window:
        window.open("topics/orders")
        window.heading("Sign in")
        window.page.get_by_label("User").fill("vera")
        window.page.get_by_label("Secret").fill("wrong")
        window.button("Sign in").click()
        expect(window.page.get_by_role("alert")).to_contain_text("not right")
        window.page.get_by_label("Secret").fill("glass")
        window.page.keyboard.press("Enter")
        window.heading("orders")  # where one wanted to be
        expect(window.page.locator("#who")).to_contain_text("vera")
        for name in ("Delete", "Change", "Send a message"):
            expect(window.button(name)).to_have_count(0)
        window.open("groups/billing")
        expect(window.button("Delete")).to_have_count(0)
        window.open("topics")
        expect(window.button("New topic")).to_have_count(0)
        expect(window.page.locator("#nav").get_by_role("link", name="Messages")).to_have_count(0)
        assert window.page.evaluate("document.cookie") == ""
        window.button("Sign out").click()
        window.heading("Sign in")
        window.page.get_by_label("User").fill("leaver")
        window.page.get_by_label("Secret").fill("bye")
        window.button("Sign in").click()
        window.heading("Topics")
        expect(window.button("New topic")).to_be_visible()
        write_access(access_file, {name: entry for name, entry in USERS.items() if name != "leaver"})
        try:
            window.heading("Sign in")  # by itself, when the page refreshes
        finally:
            write_access(access_file, USERS)
            body = json.dumps({"user": "leaver", "secret": "bye"})
            until(
                lambda: ask(url, "/session", body, content_type="application/json").status == 200,
                60,
                lambda: "leaver is back",
            )
        assert not window.complaints


def test_a_server_that_is_away_is_told_and_comes_back(browser: Browser, pair: Pair, own_directory: Path) -> None:
    port = free_port()
    admin = AdminProcess(own_directory, {"alpha": pair.master, "beta": pair.slave}, console_port=port)
    try:
        admin.start()
        with screen(browser, str(admin.event("console")["url"])) as window:
            window.open("cluster")
            expect(window.page.locator(".picture")).to_be_visible()
            admin.process.kill()  # type: ignore[union-attr]
            window.later()
            stale = window.page.get_by_text("Not up to date since")
            expect(stale).to_be_visible()
            expect(window.page.locator(".picture")).to_be_visible()
            admin.stop()
            admin.start()
            window.later()
            expect(stale).to_have_count(0)
    finally:
        admin.stop()


def test_the_api_is_told_as_it_is(url: str) -> None:
    """What the pages rely on: numbers of 64 bits are text, and lists are there although they are empty."""
    answer = ask(url, "/api/ListTopics", json.dumps({"match": "nothing-is-called-so"}), content_type="application/json")
    assert answer.json == {"topics": [], "total": "0", "next": "", "problems": []}
