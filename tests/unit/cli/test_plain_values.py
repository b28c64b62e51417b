"""Values that are taken as they are: what comes out is what typer makes of them."""

from enum import StrEnum
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
    *(
        ["topic", "--ratio", text]
        for text in ("0", "007.50", "1.", ".5", "+1", "-1", "1e3", "1_0.5", "nan", "inf", "", "x")
    ),
    *(["topic", "--share", text] for text in ("0.25", "0.5", "0.51", "0.2", "-0.3")),
    *(["topic", "--drink", text] for text in ("tea", "coffee", "TEA", "te", "")),
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


class Drink(StrEnum):
    """What there is."""

    TEA = "tea"
    COFFEE = "coffee"


def order(
    topic: str,
    count: Annotated[int, typer.Option(min=1, max=10)] = 1,
    free: int | None = None,
    key: list[str] | None = None,
    many: list[int] | None = None,
    tag: Annotated[str, typer.Option(envvar="ORDER_TAG")] = "",
    ratio: float = 1,
    share: Annotated[float, typer.Option(min=0.25, max=0.5)] = 0.5,
    size: float | None = None,
    drink: Drink = Drink.TEA,
    second: Drink | None = None,
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
    taken, made = made_of(words, plain=True), made_of(words, plain=False)
    assert repr(taken) == repr(made)  # types too, and nan


def test_a_value_of_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDER_TAG", "coffee")
    assert made_of(["topic"], plain=True)["tag"] == "coffee"
