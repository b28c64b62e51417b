"""`tandem serve names`: RocketMQ's name server in the foreground."""

from typing import TYPE_CHECKING

from tandemmq.cli.processes.serving import names_serves
from tandemmq.cli.processes.start_settings import read_naming_settings
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.naming.settings import NamingSettings


def names(config: Config = None, data: Data = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run a name server in the foreground, until Ctrl-C or SIGTERM.

    Brokers register at it, and RocketMQ's classic clients and tools ask it who has a topic (namesrvAddr=HOST:9876).
    Several may run; each is independent. Its log goes to stderr.

    With --json: one JSON line when it answers, {"event": "serving", "names", "address", "metrics", ...}, and one when
    it has stopped, {"event": "stopped"}.
    """
    from tandemmq.common.log_output import hold_start_lines
    from tandemmq.naming.__main__ import run_naming

    settings = read_naming_settings(config, data, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", port: int) -> None:
        if as_json:
            output.line(names_serves(settings, host, port))
        else:
            output.pairs(_in_words(settings, host, port), title="The name server is serving; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_naming(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The name server has stopped.")


def _in_words(settings: "NamingSettings", host: "ServiceHost", port: int) -> list[tuple[str, str]]:
    told = [
        ("names", f"{settings.names_host}:{port}   (RocketMQ's remoting protocol)"),
        ("health", f"{settings.grpc_host}:{host.port}   (gRPC)"),
        ("values", str((settings.names_directory / "kvConfig.json").absolute())),
    ]
    if host.metrics_port:
        told.append(("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    return told
