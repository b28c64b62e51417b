"""What commands print: text and tables for people, JSON for programs.

On a terminal, tables are drawn by rich and fit its width. Anywhere else they are plain aligned columns without colours,
never cut, so that grep and awk see everything.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Cell = str | int
Row = Sequence[Cell]


_WORD_MAX = 32
"""Words up to so many characters, a message id, are not broken in a table that must become narrower."""


class Output:
    """Where a command's results go. Results to stdout, remarks about them to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        """`as_json`: only JSON goes to stdout, and no remarks are made."""
        self.as_json = as_json

    def document(self, value: object) -> None:
        """One JSON document, indented for a person who reads it."""
        print(json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))

    def line(self, value: object) -> None:
        """One JSON document in one line, out at once."""
        print(json.dumps(value, ensure_ascii=False), flush=True)

    def say(self, text: str = "") -> None:
        """A line of the result, for people."""
        if not self.as_json:
            print(text, flush=True)

    def remark(self, text: str) -> None:
        """A line about the result, for people."""
        if not self.as_json:
            print(text, file=sys.stderr, flush=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Row],
        title: str = "",
        *,
        drop: Sequence[str] = (),
        right: Sequence[str] = (),
    ) -> Sequence[str]:
        """A table for people; columns whose cells are all numbers are aligned right, and those of `right`.

        Nothing without rows.

        `drop`: columns that are left out, the first first, where a terminal is too narrow for all. Others are folded.
        Gives those that were left out.
        """
        if not rows:
            return ()
        if is_terminal():
            columns, rows, dropped = fitting(columns, rows, drop, _terminal_width())
            _rich_table(columns, rows, title, right)
            if dropped:
                self.remark(f"(too narrow for: {', '.join(dropped)}; --json has all)")
            return dropped
        _plain_table(columns, rows, title, right)
        return ()

    def pairs(self, pairs: Sequence[tuple[str, str]], title: str = "") -> None:
        """Names and values, one a line."""
        if title:
            self.say(title)
        width = max(len(name) for name, _ in pairs)
        for name, value in pairs:
            self.say(f"  {name:<{width}}  {value}")

    @contextmanager
    def progress(self, what: str, *, wanted: bool) -> Iterator[Callable[[int, int], None]]:
        """A progress bar on stderr for a person who waits; gives `update(done, total)`, amounts in bytes."""
        if not wanted or self.as_json or not sys.stderr.isatty():
            yield lambda done, total: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=None)
            yield lambda done, total: progress.update(task, completed=done, total=total)


def is_terminal() -> bool:
    """Whether stdout is a person's terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    r"""Text that cannot steer a terminal: control characters, but for tab and newline, as `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else c.encode("unicode_escape").decode() for c in text)


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else printable(cell).replace("\n", " ")


def _right_columns(columns: Sequence[str], rows: Sequence[Row], right: Sequence[str]) -> list[bool]:
    return [name in right or all(isinstance(row[at], int) for row in rows) for at, name in enumerate(columns)]


_BETWEEN = 2
"""Blanks between two columns, of a plain table and of one on a terminal."""


def _terminal_width() -> int:
    from rich.console import Console

    return Console().width


def fitting(
    columns: Sequence[str], rows: Sequence[Row], drop: Sequence[str], width: int
) -> tuple[Sequence[str], Sequence[Row], list[str]]:
    """What is left of a table in that width, and which columns are not."""
    widths = {name: max(len(name), *(len(_shown(row[at])) for row in rows)) for at, name in enumerate(columns)}
    dropped: list[str] = []
    for name in drop:
        if sum(widths.values()) + _BETWEEN * (len(widths) - 1) <= width:
            break
        if widths.pop(name, None) is not None:
            dropped.append(name)
    kept = [at for at, name in enumerate(columns) if name in widths]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows], dropped


def _plain_table(columns: Sequence[str], rows: Sequence[Row], title: str, right: Sequence[str]) -> None:
    cells = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[at]) for row in cells)) for at, name in enumerate(columns)]
    is_right = _right_columns(columns, rows, right)
    if title:
        print(title)
    for row in [list(columns), *cells]:
        aligned = (f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, is_right, strict=True))
        print("  ".join(aligned).rstrip())


def _rich_table(columns: Sequence[str], rows: Sequence[Row], title: str, right: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[_shown(cell) for cell in row] for row in rows]
    table = Table(
        box=SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for at, (name, is_right) in enumerate(zip(columns, _right_columns(columns, rows, right), strict=True)):
        words = [row[at] for row in cells]
        is_short = all(len(word) <= _WORD_MAX and " " not in word for word in words)
        table.add_column(name, justify="right" if is_right else "left", overflow="fold", no_wrap=is_short)
    for row in cells:
        table.add_row(*map(Text, row))
    Console().print(table)


def as_document(value: Any) -> Any:
    """A value as JSON can hold it: paths as text, tuples as lists, dataclasses by field."""
    import dataclasses

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {found.name: as_document(getattr(value, found.name)) for found in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): as_document(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_document(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
