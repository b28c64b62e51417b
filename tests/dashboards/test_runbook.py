"""The runbook: an entry for each alert, an alert for each entry, and no command that the CLI does not have."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer.core
import typer.main

from tandemmq.admin.settings import AdminSettings
from tandemmq.cli.main import app
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.metasync.settings import MetasyncSettings
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.settings import StoreSettings
from tests.dashboards.boards import load, panels
from tests.dashboards.prometheus import DIRECTORY
from tests.dashboards.test_alert_rules import alert_names, panel_links

DOCS = DIRECTORY.parent / "docs"
RUNBOOK = (DOCS / "runbook.md").read_text()
SETTINGS = (StoreSettings, ReplicatorSettings, MetasyncSettings, AdminSettings)
PARTS = ("Means", "Look", "Contain", "Mend", "Verify")
_ENTRY = re.compile(r"^### (\w+)$", re.MULTILINE)
_SPAN = re.compile(r"`(tandem [^`]+)`")
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def entries() -> dict[str, str]:
    """Text of each entry by its name."""
    names = list(_ENTRY.finditer(RUNBOOK))
    ends = [one.start() for one in names[1:]] + [len(RUNBOOK)]
    return {one[1]: RUNBOOK[one.end() : end] for one, end in zip(names, ends, strict=True)}


def commands(page: str) -> Iterator[str]:
    """Every `tandem` command that a page names, in the text and in its blocks."""
    yield from _SPAN.findall(page)
    for block in _BLOCK.findall(page):
        yield from (line for line in block.splitlines() if line.startswith("tandem "))


def test_alerts_and_entries_belong_together() -> None:
    assert sorted(entries()) == sorted(alert_names())


@pytest.mark.parametrize("name", alert_names())
def test_an_entry_says_what_to_do(name: str) -> None:
    told = {part.lower() for part in re.findall(r"\*\*(\w+)\*\*", entries()[name])}
    assert told >= {part.lower() for part in PARTS}


@pytest.mark.parametrize("name", alert_names())
def test_an_entry_names_the_panel_that_the_alert_links_to(name: str) -> None:
    board, number = panel_links()[name]
    document = load(board)
    (panel,) = (one for one in panels(document) if one["id"] == number)
    dashboard = document["title"].removeprefix("TandemMQ / ")
    assert f"* **Panel**: *{panel['title']}* of the dashboard {dashboard}.\n" in entries()[name]


def test_links_within_the_runbook_lead_somewhere() -> None:
    anchors = {name.lower() for name in entries()}
    assert {anchor for anchor in re.findall(r"\]\(#([\w-]+)\)", RUNBOOK) if anchor not in anchors} == set()


@pytest.mark.parametrize("page", ["runbook.md", "monitoring.md"])
def test_commands_exist_with_their_options(page: str) -> None:
    named = sorted(set(commands((DOCS / page).read_text())))
    assert named
    wrong = {command: problem for command in named if (problem := problem_of(command))}
    assert not wrong


@pytest.mark.parametrize("page", ["runbook.md", "monitoring.md"])
def test_settings_that_are_named_exist(page: str) -> None:
    known = {one.name for kind in (ServerSettings, *SETTINGS) for one in kind().describe()}
    named = set(re.findall(r"`([a-z]+[A-Z]\w+)(?:=[^`]*)?`", (DOCS / page).read_text()))
    assert named
    assert named <= known


def problem_of(command: str) -> str:
    """What the CLI would not understand of a command; empty if nothing."""
    words = shlex.split(command, comments=True)[1:]
    found = typer.main.get_command(app)
    while words and isinstance(found, typer.core.TyperGroup):
        child = found.commands.get(words[0])
        if child is None:
            return f"no command {words[0]}"
        found = child
        words = words[1:]
    if isinstance(found, typer.core.TyperGroup):
        return "a verb is missing"
    options = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("-") and word.split("=")[0] not in options]
    return f"no option {', '.join(unknown)}" if unknown else ""
