"""`tandem serve metasync`: the service in the foreground."""

from typing import TYPE_CHECKING

from tandemmq.cli.processes.serving import metasync_serves
from tandemmq.cli.processes.start_settings import read_metasync_settings
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.metasync.settings import MetasyncSettings


def metasync(config: Config = None, data: Data = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run a metasync in the foreground, until Ctrl-C or SIGTERM.

    It keeps topics, subscription groups and offsets of a node. The tables are RocketMQ's own files in DIR/config. A
    slave's metasync copies all of them from its master's (metasyncMasterAddress). Its log goes to stderr.

    With --json: one JSON line when it answers, {"event": "serving", "address", "metrics", "directory", ...}, and one
    when it has stopped, {"event": "stopped"}.
    """
    from tandemmq.common.log_output import hold_start_lines
    from tandemmq.metasync.__main__ import run_metasync

    settings = read_metasync_settings(config, data, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", *_: object) -> None:
        if as_json:
            output.line(metasync_serves(settings, host))
        else:
            output.pairs(_in_words(settings, host), title="The metasync is serving; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_metasync(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The metasync has stopped.")


def _in_words(settings: "MetasyncSettings", host: "ServiceHost") -> list[tuple[str, str]]:
    told = [
        ("clients", f"{settings.grpc_host}:{host.port}   (gRPC tandemmq.metadata.v1.Metadata)"),
        ("tables", str((settings.store_path_root_dir / "config").absolute())),
    ]
    if settings.metasync_master_address:
        told.append(("master", f"{settings.metasync_master_address}, whose tables are copied while this is a slave"))
    if host.metrics_port:
        told.insert(1, ("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    return told
