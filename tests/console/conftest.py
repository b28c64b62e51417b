"""One cluster, one admin and one browser for all tests of the console: each uses topics and groups of its own."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.admin_process import AdminProcess
from tests.console import no_netlink
from tests.console.kit import USERS, fill, write_access
from tests.faults.pair import Pair

START_MS = 150_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


_HERE = Path(__file__).parent
PATIENCE = 400
"""Seconds for a test: on a busy machine the first one starts a cluster and a browser."""

PATIENT: dict[str, Any] = {"admin_timeout": 30_000}
"""Settings of an admin: a node that takes its time is not one that is away."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Patience for all tests of this folder that ask for none themselves."""
    for item in items:
        if item.path.is_relative_to(_HERE) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PATIENCE))


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A master and its slave."""
    with Pair(tmp_path_factory.mktemp("console-pair"), role="ASYNC_MASTER") as pair:
        yield pair


@pytest.fixture(scope="package")
def admin(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    """The admin that looks after both and sees their files; nobody has to sign in. Filled with messages."""
    own = tmp_path_factory.mktemp("console-admin") / "own"
    with AdminProcess(own, {"alpha": pair.master, "beta": pair.slave}, files=True, **PATIENT) as process:
        fill(pair, process)
        yield process


@pytest.fixture(scope="package")
def url(admin: AdminProcess) -> str:
    """Where its console is: `http://127.0.0.1:4711`."""
    return str(admin.event("console")["url"]).rstrip("/")


@pytest.fixture(scope="package")
def access_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of `closed`; who changes it puts it back."""
    path = tmp_path_factory.mktemp("console-access") / "access.toml"
    write_access(path, USERS)
    return path


@pytest.fixture(scope="package")
def closed(
    pair: Pair, admin: AdminProcess, access_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AdminProcess]:
    """An admin that asks who calls, beside the cluster that `admin` filled."""
    own = tmp_path_factory.mktemp("console-closed") / "own"
    with AdminProcess(own, {"alpha": pair.master, "beta": pair.slave}, access_file=access_file, **PATIENT) as process:
        yield process


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium: the one that the machine has. What other tests do with interfaces does not disturb it."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")
    starter = tmp_path_factory.mktemp("browser") / "chromium"
    starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{no_netlink.__file__}" "{found}" "$@"\n')
    starter.chmod(0o755)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=starter, args=["--no-sandbox", "--disable-gpu"], timeout=START_MS
        )
        yield browser
        browser.close()


@pytest.fixture
def own_directory(tmp_path: Path) -> Path:
    """For an admin that a test starts itself."""
    return tmp_path / "own"
