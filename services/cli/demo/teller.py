"""How the demo is told: numbered steps for people, one JSON line a step for programs."""

import textwrap
from collections.abc import Sequence

import typer

from tandemmq.cli.talk.moments import show_seconds
from tandemmq.cli.talk.output import Output, printable

_WIDTH = 110
_INDENT = 16


class Teller:
    """Prints steps as they happen."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._number = 0

    def begin(self, headline: str) -> None:
        """The headline."""
        self._output.say(f"TandemMQ: {headline}")
        self._output.say()

    def step(self, title: str, text: str, **facts: object) -> None:
        """One step: what was done, in words and in numbers."""
        self._number += 1
        if self._output.as_json:
            self._output.line({"step": self._number, "title": title, **facts})
            return
        lines = textwrap.wrap(printable(text[0].upper() + text[1:]), _WIDTH - _INDENT, break_long_words=False)
        head = f"{self._number:>2}  {title}"
        typer.echo(typer.style(f"{head:<{_INDENT}}", bold=True) + lines[0])
        for line in lines[1:]:
            typer.echo(" " * _INDENT + line)

    def verdict(self, is_good: bool, text: str, losses: Sequence[str], *, seconds: float, acknowledged: int) -> None:
        """The last word."""
        if self._output.as_json:
            verdict = "nothing lost" if is_good else "failed"
            self._output.line(
                {"verdict": verdict, "acknowledged": acknowledged, "losses": list(losses), "seconds": seconds}
            )
            return
        self._output.say()
        if is_good:
            typer.secho(f"Nothing is lost. {text} ({show_seconds(seconds)})", fg=typer.colors.GREEN, bold=True)
            return
        typer.secho("Failed:", fg=typer.colors.RED, bold=True)
        for loss in losses:
            self._output.say(f"  {printable(loss)}")

    def hint(self, steps: Sequence[tuple[str, str]]) -> None:
        """What to try next: commands, and what they show."""
        self._output.say()
        self._output.say("Try next:")
        self._output.pairs(steps)
