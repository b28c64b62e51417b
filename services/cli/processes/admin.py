"""`tandem serve admin`: the service in the foreground."""

from typing import TYPE_CHECKING

from tandemmq.cli.processes.serving import admin_serves
from tandemmq.cli.processes.start_settings import read_admin_settings
from tandemmq.cli.talk.options import AdminData, Config, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.admin.settings import AdminSettings
    from tandemmq.common.serving.server import ServiceHost


def admin(config: Config = None, data: AdminData = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run an admin and its console, until Ctrl-C or SIGTERM.

    It asks the stores, replicators and metasyncs of all nodes (adminNodes; else those of this machine) and puts
    together what they say; what you change goes to the master that it belongs to. Its log goes to stderr.

    With --json: one JSON line when it answers, {"event": "serving", "address", "console", "metrics", "nodes", ...}, and
    one when it has stopped, {"event": "stopped"}.
    """
    from tandemmq.admin.__main__ import run_admin
    from tandemmq.common.log_output import hold_start_lines

    settings = read_admin_settings(config, data, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", console: str | None) -> None:
        if as_json:
            output.line(admin_serves(settings, host, console))
        else:
            output.pairs(_in_words(settings, host, console), title="The admin is serving; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_admin(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The admin has stopped.")


def _in_words(settings: "AdminSettings", host: "ServiceHost", console: str | None) -> list[tuple[str, str]]:
    told = [("console", console)] if console is not None else []
    told.append(("clients", f"{settings.grpc_host}:{host.port}   (gRPC tandemmq.admin.v1.Admin)"))
    if host.metrics_port:
        told.append(("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    told.append(("files", str(settings.admin_directory.absolute())))
    told += [(f"node {one.name}", one.store) for one in settings.nodes]
    return told
