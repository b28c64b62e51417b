"""Options that several commands have, so that they are called the same and say the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from tandemmq.cli.moments import FORMS

DEFAULT_ADDRESS = "127.0.0.1:8081"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

Address = Annotated[
    str,
    typer.Option("--address", envvar="TANDEM_ADDRESS", metavar="HOST:PORT", help="Where the store answers."),
]

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]

Begin = Annotated[
    str | None, typer.Option("--begin", metavar="TIME", help=f"Only messages stored at or behind this time: {FORMS}.")
]

End = Annotated[str | None, typer.Option("--end", metavar="TIME", help="Only messages stored at or before this time.")]

WithBody = Annotated[bool, typer.Option("--body/--no-body", help="Print the bodies, or only what is known of them.")]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings in RocketMQ's form, a broker.conf. With it, defaults are RocketMQ's own; without it, those of "
        "the small embedded profile.",
    ),
]

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Directory of the store; short for --set storePathRootDir=DIR."),
]

Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting by RocketMQ's name; wins over all. Repeatable."),
]
