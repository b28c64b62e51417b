"""`tandem demo`: see `pair_story.py` and `story.py` for what it does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.talk.failures import FAILED, CommandFailed
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.cli.demo.steps import Steps

_DEFAULT = Path("data/demo")
"""Beside whatever `tandem serve store` and `tandem up` have put into ./data."""
_DEFAULT_SINGLE = Path("data/single")


def demo(
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Where the files go; they stay there for a look. [default: data/demo; data/single with --single]",
        ),
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="One store alone, without a slave.")] = False,
    as_json: Json = False,
) -> None:
    """Send real messages to two nodes, kill them, lose nothing.

    The messages are the package records of this machine (or, where there are too few, files of the Python standard
    library too), at least 5,000. A master and its slave run under `tandem up`; each of their processes is killed while
    messages are sent, and comes back. At the end their files are compared. An earlier demo's directory is used again.
    Exit code 1 if a message is lost or a promise is not kept.

    With --json: one JSON line a step, {"step", "title", ...}, and at the end {"verdict", "acknowledged", "losses",
    "seconds"}.
    """
    from tandemmq.cli.demo.pair_story import PairDemo
    from tandemmq.cli.demo.story import Demo
    from tandemmq.cli.demo.teller import Teller

    teller = Teller(Output(as_json=as_json))
    told: Steps
    if single:
        directory = data or _DEFAULT_SINGLE
        teller.begin("real messages, a store that is killed meanwhile, and the proof that nothing is lost.")
        told = Demo(directory, teller)
    else:
        directory = data or _DEFAULT
        _check(directory)
        teller.begin(
            "real messages to two nodes, whose processes are killed meanwhile, and the proof that all is on both."
        )
        told = PairDemo(directory, teller)
    if not told.run():
        raise typer.Exit(FAILED)
    teller.hint(_next_steps(directory, told.example_key, single=single))


def _check(directory: Path) -> None:
    """Not a store with messages of its own: those of the demo would be among them. Raises CommandFailed, BadPlan."""
    from tandemmq.cli.demo.steps import is_new
    from tandemmq.node.plan import node_directories

    first, second = node_directories(directory)
    if not is_new(first) and is_new(second):
        raise CommandFailed(
            f"{directory} is the directory of a single store",
            remedy="name another directory with --data, or use this one with --single",
        )


def _next_steps(directory: Path, key: str, *, single: bool) -> list[tuple[str, str]]:
    from tandemmq.node.plan import node_directories

    again = f"tandem up --data {directory}" if single else f"tandem up --slave --data {directory}"
    inspected = directory if single else node_directories(directory).second
    return [
        (f"tandem data inspect {inspected}", "what the files hold, read without a store"),
        (again, "the same in the foreground; then, in another terminal:"),
        *([] if single else [("tandem replica list", "who follows whom, and its lag")]),
        (f"tandem message query demo-packages --key {key}", "find a message by its key"),
        ("tandem pull demo-library --max 3", "read messages"),
        ("tandem send hello 'first message'", "send your own"),
    ]
