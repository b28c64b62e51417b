"""`tandem serve replicator`: the service in the foreground."""

from typing import TYPE_CHECKING

from tandemmq.cli.processes.serving import replicator_serves
from tandemmq.cli.processes.start_settings import read_replicator_settings
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.replicator.settings import ReplicatorSettings


def replicator(config: Config = None, data: Data = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run a replicator in the foreground, until Ctrl-C or SIGTERM.

    It is the sidecar of one store, on its host. It takes its role from the store (storeAddress, which is the store's
    internalPort): beside a master it accepts slaves on haListenPort, beside a slave it follows haMasterAddress. It
    keeps no state; without it a store goes on, but a SYNC_MASTER acknowledges nothing as replicated. Its log goes to
    stderr.

    With --json: one JSON line when it answers, {"event": "serving", "address", "metrics", "directory", "store", ...},
    and one when it has stopped, {"event": "stopped"}.
    """
    from tandemmq.common.log_output import hold_start_lines
    from tandemmq.replicator.__main__ import run_replicator

    settings = read_replicator_settings(config, data, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", *_: object) -> None:
        if as_json:
            output.line(replicator_serves(settings, host))
        else:
            output.pairs(_in_words(settings, host), title="The replicator is running; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_replicator(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The replicator has stopped.")


def _in_words(settings: "ReplicatorSettings", host: "ServiceHost") -> list[tuple[str, str]]:
    told = [
        (
            "status",
            f"{settings.grpc_host}:{host.port}   (gRPC tandemmq.replication.v1.Replication; see tandem replica list)",
        ),
        ("store", f"{settings.store_address}   files {settings.store_path_root_dir.absolute()}"),
        ("as master", f"accepts slaves on {settings.ha_listen_host}:{settings.ha_listen_port}"),
        ("as slave", f"follows {settings.ha_master_address or 'nobody: haMasterAddress is not set'}"),
    ]
    if host.metrics_port:
        told.insert(1, ("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    return told
