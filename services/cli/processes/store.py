"""`tandem serve store`: the service in the foreground."""

from typing import TYPE_CHECKING

from tandemmq.cli.processes.serving import store_serves
from tandemmq.cli.processes.start_settings import read_settings
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.store.log.message_store import MessageStore
    from tandemmq.store.settings import StoreSettings


def store(config: Config = None, data: Data = None, overrides: Set = None, as_json: Json = False) -> None:
    """Run the store in the foreground, until Ctrl-C or SIGTERM.

    Without --config it is small (the embedded profile: files of 64 MiB under ./data); with one, all defaults are
    RocketMQ's. It says where it listens, where its files are, and what recovery did. Its log goes to stderr.

    With --json: one JSON line when it answers, {"event": "serving", "address", "metrics", "directory", "recovery",
    ...}, and one when it has stopped, {"event": "stopped"}.
    """
    from tandemmq.common.log_output import hold_start_lines
    from tandemmq.store.__main__ import run_store

    settings = read_settings(config, data, overrides)
    output = Output(as_json=as_json)

    def announce(host: "ServiceHost", opened: "MessageStore") -> None:
        if as_json:
            output.line(store_serves(settings, host, opened))
        else:
            output.pairs(_in_words(settings, host, opened), title="The store is serving; stop it with Ctrl-C.")

    hold_start_lines(wanted=not as_json)
    run_store(settings, announce)
    if as_json:
        output.line({"event": "stopped"})
    else:
        output.say("The store has stopped.")


def _in_words(settings: "StoreSettings", host: "ServiceHost", opened: "MessageStore") -> list[tuple[str, str]]:
    promise = {"ASYNC_FLUSH": "in the page cache: safe from kill -9, not from power cuts", "SYNC_FLUSH": "on disk"}
    told = [
        ("clients", f"{settings.grpc_host}:{host.port}   (gRPC tandemmq.store.v1.Store, with health and reflection)"),
        ("files", str(settings.store_path_root_dir.absolute())),
        *_role(opened),
        ("acknowledged", f"{promise[settings.flush_disk_type.value]} ({settings.flush_disk_type.value})"),
        ("recovery", _recovery(opened)),
    ]
    if host.metrics_port:
        told.insert(1, ("metrics", f"http://{settings.metrics_host}:{host.metrics_port}/metrics"))
    told += [("damage", str(damage)) for damage in opened.damage]
    return told


def _role(opened: "MessageStore") -> list[tuple[str, str]]:
    """What it is to its replicas; nothing of a store that has none."""
    mastership = opened.replica.mastership
    if mastership.role.value == "ASYNC_MASTER" and mastership.epoch == 1:
        return []
    by = " (by promotion or demotion; brokerRole does not count)" if mastership.overrides else ""
    known = mastership.fenced_by
    what = "has promised epoch {}" if mastership.is_slave else "takes no messages, as epoch {} has begun"
    fenced = f"; {what.format(known)}" if known else ""
    return [("role", f"{mastership.role.value} in epoch {mastership.epoch}{by}{fenced}")]


def _recovery(opened: "MessageStore") -> str:
    report = opened.recovery
    begin, end = opened.commit_log.min_offset, opened.commit_log.max_offset
    if end == 0:
        return "none needed: this is a new store"
    shutdown = "after a clean stop" if report.clean_exit else "after a crash"
    checked = f"{report.records:,} records checked" if report.records else "nothing to check"
    told = f"{shutdown}: {checked}, in {show_seconds(report.seconds)}; log {begin:,} to {end:,}"
    if report.cut_bytes:
        told += f", torn tail of {show_bytes(report.cut_bytes)} cut off (kept in broken/)"
    if opened.rebuilding:
        told += "; missing queues or index are being rebuilt meanwhile"
    return told
