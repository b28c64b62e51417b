"""`tandem demo`: see `story.py` for what it does."""

from pathlib import Path
from typing import Annotated

import typer

from tandemmq.cli.failures import FAILED
from tandemmq.cli.options import Json
from tandemmq.cli.output import Output


def demo(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="Where the store's files go; they stay there for a look.")
    ] = Path("data"),
    as_json: Json = False,
) -> None:
    """Send real messages to a store, kill it meanwhile, lose nothing.

    The messages are the package records of this machine (or, where there are too few, files of the Python standard
    library too), at least 5,000. The store runs as a child process and is stopped at the end. An earlier demo's
    directory is used again. Exit code 1 if a message is lost or a promise is not kept.

    With --json: one JSON line a step, {"step", "title", ...}, and at the end {"verdict", "acknowledged", "losses",
    "seconds"}.
    """
    from tandemmq.cli.demo.story import Demo
    from tandemmq.cli.demo.teller import Teller

    teller = Teller(Output(as_json=as_json))
    teller.begin()
    told = Demo(data, teller)
    if not told.run():
        raise typer.Exit(FAILED)
    teller.hint(str(data), told.example_key)
