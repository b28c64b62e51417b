"""A page of the console in a real browser, and what a person does there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from playwright.sync_api import Browser, Locator, Page, expect

PAGES = (
    "cluster", "topics", "topics/orders", "messages?topic=shipments", "messages/shipments/0/0", "tail?topic=shipments",
    "groups", "groups?sort=-lag", "groups/billing", "groups/troubled", "waiting", "dead-letters",
    "dead-letters/billing", "jobs", "actions", "users",
    "configuration", "configuration?all=1", "no-such-page", "topics/no-such-topic",
)  # fmt: skip
"""The addresses of all pages, behind #/."""

_SETTLED = "main[aria-busy=false]"

WAIT_MS = 60_000
"""On a busy machine; an idle one takes a tenth of a second."""

expect.set_options(timeout=WAIT_MS)


class Screen:
    """One browser window. What the browser complains of is kept in `complaints`."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url.rstrip("/")
        self.complaints: list[str] = []
        page.set_default_timeout(WAIT_MS)
        page.clock.install()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self._told(message.type, message.text))

    def _told(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "Failed to load resource" not in text:
            self.complaints.append(text)

    def open(self, route: str) -> None:
        """Goes to a page, and waits until it shows something."""
        # What is shown now must not be taken for the page that is to come.
        self.page.evaluate("document.getElementById('main')?.setAttribute('aria-busy', 'true')")
        self.page.goto(f"{self.url}/#/{route}")
        expect(self.page.locator(_SETTLED)).to_have_count(1)

    def later(self) -> None:
        """Some seconds pass at once: pages refresh."""
        self.page.clock.fast_forward(11_000)

    def heading(self, text: str) -> None:
        """Waits for a page by its heading."""
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(text, timeout=WAIT_MS)

    def button(self, name: str) -> Locator:
        """A button, by what it says."""
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Locator:
        """A link in the content, by what it says."""
        return self.page.locator("main").get_by_role("link", name=name, exact=True)

    def row(self, text: str) -> Locator:
        """The row of a table with this text in it."""
        return self.page.locator("main tbody tr", has_text=text)

    def dialog(self) -> Locator:
        """The dialog that is open."""
        return self.page.get_by_role("dialog")

    def notice(self, text: str) -> None:
        """Waits for a notice."""
        expect(self.page.locator(".notice", has_text=text).first).to_be_visible(timeout=WAIT_MS)


@contextmanager
def screen(
    browser: Browser,
    url: str,
    *,
    width: int = 1280,
    height: int = 800,
    scheme: Literal["light", "dark"] = "light",
    insecure: bool = False,
) -> Iterator[Screen]:
    """A window of its own, without cookies of others."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        ignore_https_errors=insecure,
        accept_downloads=True,
    )
    try:
        yield Screen(context.new_page(), url)
    finally:
        context.close()
