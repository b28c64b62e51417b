"""Values that are taken as they are: what comes out is what typer makes of them."""

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import typer.main

from tandemmq.cli.plain_values import take_plain_values

COMMAND_LINES = [
    [],
    ["topic"],
    ["topic", "--count", "7"],
    ["topic", "--count", "007", "--key", "a", "--key", "b", "--many", "3", "--many", "4"],
    ["topic", "--count", "+7"],
    ["topic", "--count", "-1"],
    ["topic", "--count", "0"],
    ["topic", "--count", "11"],
    ["topic", "--count", " 7 "],
    ["topic", "--count", "1_0"],
    ["topic", "--count", "\u0667"],
    ["topic", "--count", "x"],
    ["topic", "--count", ""],
    ["topic", "--free", "-5"],
    ["topic", "--free", "9" * 18],
    ["topic", "--free", "9" * 5000],
    ["topic", "--ratio", "0.5", "--file", "somewhere", "--tea"],
    ["topic", "--file", "/"],
    ["topic", "--file", "/dev/null/below"],
    ["topic", "--file", "a//b/../c"],
    ["topic", "--file", "-"],
    ["topic", "--file", ""],
    ["topic", "--no-tea", "--there", "/"],
    ["topic", "--there", "/nowhere"],
    ["topic", "--there", "/etc/passwd"],
    ["topic", "--tag", ""],
    ["topic", "--key", ""],
]


def order(
    topic: str,
    count: Annotated[int, typer.Option(min=1, max=10)] = 1,
    free: int | None = None,
    key: list[str] | None = None,
    many: list[int] | None = None,
    tag: Annotated[str, typer.Option(envvar="ORDER_TAG")] = "",
    ratio: float = 1.0,
    file: Path | None = None,
    there: Annotated[Path, typer.Option(exists=True, file_okay=False)] = Path("/"),
    tea: bool = False,
    upper: Annotated[str, typer.Option(parser=str.upper)] = "up",
) -> dict[str, Any]:
    return dict(locals())


def made_of(words: list[str], *, plain: bool) -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(order)
    command: Any = typer.main.get_command(app)
    if plain:
        take_plain_values(command)
    try:
        return command.main(words, standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must be the same
        return type(error).__name__, getattr(error, "message", str(error))


@pytest.mark.parametrize("words", COMMAND_LINES)
def test_values_are_those_of_typer(words: list[str]) -> None:
    assert made_of(words, plain=True) == made_of(words, plain=False)


def test_a_value_of_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDER_TAG", "coffee")
    assert made_of(["topic"], plain=True)["tag"] == "coffee"
