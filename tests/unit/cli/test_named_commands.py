"""Commands that texts name, in errors, advice, alerts and documents: each exists, with the options that are named."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.core
import typer.main

from tandemmq.cli.main import app

REPOSITORY = Path(__file__).resolve().parents[3]
SOURCES = REPOSITORY / "services"
PAGES = [*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md", *(REPOSITORY / "dashboards").rglob("*.yml")]

_QUOTED = re.compile(r"`(tandem [^`]+)`")
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"\btandem ([a-z]+) ([a-z-]+)\b")


def _root() -> typer.core.TyperGroup:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return root


_ROOT = _root()


def texts(path: Path) -> Iterator[str]:
    """Every text of a module; what is put into it stands there as X."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def problem_of(command: str) -> str:
    """What the command line would not understand; empty if nothing. A noun without a verb means all that it has."""
    words = shlex.split(re.sub(r" (\||<|>|&&|;) .*| +#.*", "", command))[1:]
    found: object = _ROOT
    options: set[str] = set()
    while True:
        assert isinstance(found, typer.core.TyperCommand | typer.core.TyperGroup)
        options |= {name for one in found.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        if not isinstance(found, typer.core.TyperGroup):
            break
        while words and words[0].startswith("-"):  # of the whole command line, with its value
            option = words.pop(0)
            if option not in options:
                return f"no option {option}"
            if words and words[0] not in found.commands:
                words.pop(0)
        if not words or words[0] in ("X", "…", "..."):
            return ""
        child = found.commands.get(words[0])
        if child is None:
            return f"no command {words[0]}"
        found, words = child, words[1:]
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in options]
    return f"no option {', '.join(unknown)}" if unknown else ""


def wrong(text: str) -> dict[str, str]:
    """Commands in quotes that do not exist, and nouns with another word than a verb after them."""
    named = {one for one in _QUOTED.findall(text) if "|" not in one.partition(" | ")[0]}
    named |= {line for block in _BLOCK.findall(text) for line in block.splitlines() if line.startswith("tandem ")}
    return {one: problem for one in named if (problem := problem_of(one))}


def test_what_does_not_exist_is_found() -> None:
    assert wrong("`tandem topic list --limit 5`") == {}
    assert wrong("`tandem topic show orders` and `tandem --server h:1 send`") == {}
    assert wrong("`tandem topic invent`") == {"tandem topic invent": "no command invent"}
    assert wrong("`tandem replica follow h:1 --adress h:2`") == {
        "tandem replica follow h:1 --adress h:2": "no option --adress"
    }


def test_advice_names_commands_that_exist() -> None:
    modules = [path for path in SOURCES.rglob("*.py") if not path.match("*_pb2*.py")]
    assert len(modules) > 500
    found: dict[tuple[str, str], str] = {}
    for path in modules:
        source = path.read_text()
        if "tandem " not in source:
            continue
        for text in texts(path):
            found |= {(path.name, command): problem for command, problem in wrong(text).items()}
            for noun, verb in _PLAIN.findall(text):
                group = _ROOT.commands.get(noun)
                if isinstance(group, typer.core.TyperGroup) and verb not in group.commands and "remedy" in source:
                    found[path.name, f"tandem {noun} {verb}"] = "no such verb"
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_and_alerts_name_commands_that_exist(page: Path) -> None:
    assert not wrong(page.read_text())
