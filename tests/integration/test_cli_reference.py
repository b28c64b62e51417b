"""docs/cli.md and the help it is made of: nothing stale, nothing silent."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.core
import typer.main

from tandemmq.cli.commands import SECTIONS, CommandsByName
from tandemmq.cli.examples import EXAMPLES
from tandemmq.cli.main import app
from tandemmq.cli.reference import commands as all_commands
from tandemmq.cli.reference import page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands() -> list[tuple[str, Any]]:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return [("tandem", root), *((name.removeprefix("tandem "), one) for name, one in all_commands(root, "tandem"))]


def test_the_page_is_what_the_help_says_now() -> None:
    stale = "docs/cli.md is stale: run  python -m tandemmq.cli.reference > docs/cli.md"
    assert (DOCS / "cli.md").read_text() == page(), stale


@pytest.mark.parametrize(("name", "command"), commands())
def test_command_and_each_option_say_what_they_do(name: str, command: Any) -> None:
    assert command.help
    silent = [parameter.name for parameter in command.params if not (parameter.help or "").endswith((".", "]"))]
    assert not silent


@pytest.mark.parametrize(("name", "command"), [pair for pair in commands() if pair[0] != "tandem"])
def test_command_has_json_and_describes_it(name: str, command: Any) -> None:
    assert any("--json" in parameter.opts for parameter in command.params)
    assert "With --json: one" in command.help


@pytest.mark.parametrize(("name", "command"), [pair for pair in commands() if pair[0] != "tandem"])
def test_command_has_examples_that_can_be_typed(name: str, command: Any) -> None:
    assert EXAMPLES[name]
    for line in EXAMPLES[name]:
        assert f"  {line}" in command.epilog
        words = shlex.split(line)[1 + len(name.split()) :]
        assert line.startswith(f"tandem {name}")
        command.make_context(name, words)


def lines_of_the_readme() -> list[str]:
    lines = (DOCS.parent / "README.md").read_text().splitlines()
    return [line.strip() for line in lines if line.startswith("    tandem ")]


@pytest.mark.parametrize("line", lines_of_the_readme())
def test_what_the_readme_tells_to_type_can_be_typed(line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)[1:]
    known = dict(commands())
    if name not in known:  # a noun
        name, arguments = f"{name} {arguments[0]}", arguments[1:]
    command = known[name]
    command.make_context(name, arguments)


def test_the_readme_shows_most_commands() -> None:
    typed = " ".join(lines_of_the_readme())
    for command in ("up", "send", "pull", "message query", "topic offsets", "data inspect", "replica promote"):
        assert f"tandem {command} " in typed


def texts() -> list[Path]:
    """Whatever tells people to type a command."""
    root = DOCS.parent
    named = [
        root / "README.md",
        *DOCS.glob("*.md"),
        *(root / "tools").rglob("*.py"),
        *(root / "services").rglob("*.py"),
    ]
    return [*named, *(root / "dashboards").rglob("*.yml"), *(root / "services" / "admin" / "console").rglob("*.js")]


def test_every_command_that_a_text_names_exists() -> None:
    known = {name for name, _ in commands()}
    nouns = {name.split()[0] for name in known if " " in name}
    wrong = []
    for path in texts():
        for named in re.findall(r"`(?:\S*/)?tandem ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", path.read_text()):
            word, verb = named
            if not (word in known or (word in nouns and (not verb or f"{word} {verb}" in known))):
                wrong.append((path.name, *named))
    assert not wrong


def test_each_command_is_in_one_section_of_the_help() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(CommandsByName())


def test_the_list_is_a_dozen_nouns_beside_the_verbs_of_every_day() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    nouns = {name for name, one in root.commands.items() if isinstance(one, typer.core.TyperGroup)}
    assert len(nouns) <= 12
    assert len(root.commands) <= 24


def test_the_list_of_commands_is_not_cut_off() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "tandemmq.cli.main", "--help"], capture_output=True, text=True, check=True
    )
    assert "..." not in outcome.stdout.replace("[ARGS]...", "")
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    for name, noun in root.commands.items():
        if isinstance(noun, typer.core.TyperGroup):
            told = noun.get_help(noun.make_context(f"tandem {name}", [], resilient_parsing=True, terminal_width=80))
            assert "..." not in told.replace("[ARGS]...", ""), name


def test_the_version_is_quick_because_the_command_is_not_imported() -> None:
    program = "import sys, tandemmq.cli.entry as entry; sys.argv[1:] = ['--version']; entry.main(); print(*sys.modules)"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    version, loaded = outcome.stdout.splitlines()
    assert version.startswith("tandem ")
    assert not {"typer", "tandemmq.cli.main"} & set(loaded.split())


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    program = "import sys, tandemmq.cli.main; print(' '.join(sys.modules))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(outcome.stdout.split())
    assert not loaded & {
        "grpc",
        "rich",
        "google.protobuf",
        "numpy",
        "uvloop",
        "tandemmq.store.log.message_store",
    }
