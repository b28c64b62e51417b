"""The pictures of docs/console.md. `TANDEM_TEST_SCREENSHOTS=1` makes them anew in docs/images."""

import io
import os
import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.console.screen import Screen, screen

pytestmark = pytest.mark.xdist_group("console")

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
LARGEST = 60_000

COLOURS = 48
"""Of the palette: text stays smooth, and a picture has some ten kilobytes."""


def test_the_pictures_of_the_docs_are_there_and_small() -> None:
    text = (IMAGES.parent / "console.md").read_text()
    named = set(re.findall(r"images/(console-[\w-]+\.png)", text))
    assert named == {path.name for path in IMAGES.glob("console-*.png")}
    assert len(named) >= 3
    for name in named:
        picture = (IMAGES / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) < LARGEST, name


@pytest.mark.skipif("TANDEM_TEST_SCREENSHOTS" not in os.environ, reason="makes files in docs/images; set the variable")
def test_pictures_are_made(browser: Browser, url: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    with screen(browser, url, width=1080, height=600) as window:
        window.open("cluster")
        expect(window.page.locator(".picture")).to_be_visible()
        _save(window, "console-cluster")
        window.open("messages?topic=orders")
        _save(window, "console-messages")
        window.open("groups/billing")
        window.button("Reset offsets").click()
        window.button("Preview").click()
        expect(window.dialog().get_by_role("table")).to_be_visible()
        window.page.mouse.move(0, 0)
        _save(window, "console-reset")
    scheme: Literal["dark"] = "dark"
    with screen(browser, url, width=380, height=700, scheme=scheme) as window:
        window.open("cluster")
        expect(window.page.locator(".picture")).to_be_visible()
        _save(window, "console-narrow")


def _save(window: Screen, name: str) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = image.open(io.BytesIO(window.page.screenshot())).convert("RGB")
    reduced = picture.quantize(COLOURS, dither=image.Dither.NONE)
    reduced.save(IMAGES / f"{name}.png", optimize=True)
