"""Options that several commands have, so that they are called the same and say the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from tandemmq.cli.talk.moments import FORMS
from tandemmq.common.settings import default_ports

DEFAULT_ADDRESS = f"127.0.0.1:{default_ports.STORE}"

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

Address = Annotated[
    str,
    typer.Option(
        "--address",
        envvar="TANDEM_ADDRESS",
        metavar="HOST:PORT[,...]",
        help="Where the store answers; of a pair both, with a comma.",
    ),
]

Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        envvar="TANDEM_CONTEXT",
        metavar="NAME",
        help="Which cluster: one of `tandem context list`. Without it, the one that is used (`tandem context use`); "
        "empty: none.",
    ),
]

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="TANDEM_SERVER",
        metavar="HOST:PORT",
        help="One address of the cluster, of a store or its admin; store, admin and replicator are found from there. "
        "An --address wins.",
    ),
]

User = Annotated[
    str | None,
    typer.Option("--user", envvar="TANDEM_USER", metavar="NAME", help="Who calls, for services with an access list."),
]

SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", envvar="TANDEM_SECRET_FILE", metavar="FILE", help="Holds that user's secret and nothing else."
    ),
]

TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        envvar="TANDEM_TLS_CA",
        metavar="FILE",
        help="Certificates (PEM) of those who sign the services'. With it, services are called with TLS.",
    ),
]

TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert", envvar="TANDEM_TLS_CERT", metavar="FILE", help="Our own (PEM), for services that ask for one."
    ),
]

TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", envvar="TANDEM_TLS_KEY", metavar="FILE", help="The private key (PEM) of --tls-cert."),
]

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]

Begin = Annotated[
    str | None, typer.Option("--begin", metavar="TIME", help=f"Only messages stored at or after this time: {FORMS}.")
]

End = Annotated[str | None, typer.Option("--end", metavar="TIME", help="Only messages stored at or before this time.")]

WithBody = Annotated[bool, typer.Option("--body/--no-body", help="Print the bodies, or only what is known of them.")]

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings in RocketMQ's form, a broker.conf; all services of a node can share it. With it, defaults are "
        "RocketMQ's own; without it, those of the small embedded profile.",
    ),
]

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Directory of the node's store; short for --set storePathRootDir=DIR."),
]

AdminData = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Directory of admin's own files; short for --set adminDirectory=DIR."),
]

Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="A setting by RocketMQ's name; wins over all. Repeatable."),
]

ReplicatorAddress = Annotated[
    str,
    typer.Option(
        "--address",
        envvar="TANDEM_REPLICATOR_ADDRESS",
        metavar="HOST:PORT",
        help="Where the node's replicator answers.",
    ),
]

DEFAULT_REPLICATOR_ADDRESS = f"127.0.0.1:{default_ports.REPLICATOR}"
