"""How far a job is that has several phases: a bar each for a person who waits."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.talk.moments import show_bytes
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.spark.running.progress import Progress

TellProgress = Annotated[
    bool,
    typer.Option(
        "--progress",
        help='With --json: a line on stderr whenever it has moved on, {"phase", "text", "done_bytes", "total_bytes"}.',
    ),
]


@contextmanager
def phase_bars(
    output: Output, names: Mapping[str, str], waiting: str = "", *, as_lines: bool = False
) -> "Iterator[Callable[[Progress], None]]":
    """A bar a phase on a terminal, elsewhere a line a phase on stderr; with --json nothing, or `as_lines` of JSON.

    ``names``: what people call the phases; others are not shown. ``waiting``: what happens before the first.
    """
    if output.as_json:
        yield _json_lines(names) if as_lines else lambda progress: None
        return
    if not sys.stderr.isatty():
        yield _line_a_phase(output, names)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    width = max(map(len, [*names.values(), waiting]))
    columns = (TextColumn(f"{{task.description:{width}}}"), BarColumn(), DownloadColumn())
    with Bars(
        *columns, TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bars:
        first = bars.add_task(waiting, total=None, visible=bool(waiting))
        tasks: dict[str, Any] = {}

        def update(progress: "Progress") -> None:
            bars.update(first, visible=False)
            if progress.phase in names and progress.phase not in tasks:
                tasks[progress.phase] = bars.add_task(names[progress.phase], total=None)
            if progress.phase in tasks:
                bars.update(tasks[progress.phase], completed=progress.done_bytes, total=progress.total_bytes or None)

        yield update


def _line_a_phase(output: Output, names: Mapping[str, str]) -> "Callable[[Progress], None]":
    seen: set[str] = set()

    def update(progress: "Progress") -> None:
        if progress.phase in names and progress.phase not in seen:
            seen.add(progress.phase)
            size = f": {show_bytes(progress.total_bytes)}" if progress.total_bytes else ""
            output.remark(f"{names[progress.phase]}{size}")

    return update


def _json_lines(names: Mapping[str, str]) -> "Callable[[Progress], None]":
    last: list[Progress] = []

    def update(progress: "Progress") -> None:
        if progress.phase not in names or last == [progress]:
            return
        last[:] = [progress]
        told = {
            "phase": progress.phase,
            "text": names[progress.phase],
            "done_bytes": progress.done_bytes,
            "total_bytes": progress.total_bytes,
        }
        print(json.dumps(told), file=sys.stderr, flush=True)

    return update
