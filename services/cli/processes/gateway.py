"""`tandem serve gateway`: the service in the foreground."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.processes.start_settings import read_gateway_settings
from tandemmq.cli.talk.options import Config, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.gateway.settings import GatewaySettings

Brokers = Annotated[
    list[str] | None,
    typer.Option(
        "--broker",
        metavar="NAME=HOST:PORT,...",
        help="A broker by its brokerName, and its store's internalPort; of a pair both. Repeatable.",
    ),
]


def gateway(brokers: Brokers = None, config: Config = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run a gateway in the foreground, until Ctrl-C or SIGTERM.

    Official RocketMQ 5 clients reach several brokers through it as if they were one. It keeps nothing: there may be
    several gateways, and one that is killed loses nothing. Of a pair it finds the master. Its log goes to stderr.

    With --json: one JSON line when it answers, {"event": "serving", "address", "metrics", "brokers", ...}, and one when
    it has stopped, {"event": "stopped"}.
    """
    from tandemmq.common.log_output import hold_start_lines
    from tandemmq.gateway.__main__ import run_gateway

    settings = read_gateway_settings(config, brokers, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", *_: object) -> None:
        if as_json:
            output.line(_serving(settings, host))
        else:
            output.pairs(_in_words(settings, host), title="The gateway is running; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_gateway(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The gateway has stopped.")


def _serving(settings: "GatewaySettings", host: "ServiceHost") -> dict[str, object]:
    return {
        "event": "serving",
        "pid": os.getpid(),
        "address": f"{settings.grpc_host}:{host.port}",
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "brokers": {name: list(addresses) for name, addresses in settings.named().items()},
    }


def _in_words(settings: "GatewaySettings", host: "ServiceHost") -> list[tuple[str, str]]:
    told = [("clients", f"{settings.grpc_host}:{host.port}   (official RocketMQ 5 clients)")]
    if host.metrics_port:
        told.append(("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    return told + [(name, " or ".join(addresses)) for name, addresses in settings.named().items()]
