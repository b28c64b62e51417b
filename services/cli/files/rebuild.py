"""`tandem data rebuild`: consume queues and index of a store, from its commit log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.files.spark_options import (
    DEFAULT_MEMORY,
    DEFAULT_RANGE_SIZE,
    Master,
    Memory,
    Partitions,
    RangeSize,
    Running,
    SparkConf,
    job_runner,
)
from tandemmq.cli.talk.connection import RUNNING_STORE, told
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import Json, Set
from tandemmq.cli.talk.output import Output
from tandemmq.cli.talk.phases import TellProgress, phase_bars

if TYPE_CHECKING:
    from tandemmq.spark.rebuilding.rebuild_job import RebuildReport, RebuildRequest
    from tandemmq.spark.running.progress import Progress

_INTERNAL_PORT_BEHIND = 1000
"""From a store's port for clients to that for its node, as RocketMQ-like defaults and `tandem up` have them."""

_PHASES = {
    "scan": "reading the log",
    "index": "building the index",
    "check": "checking what was written",
    "publish": "putting it in place",
}
_PUBLISHED = {
    "offline": "They are in place.",
    "adopted": "The running store has taken them over.",
    "staged": "They are not in place yet: run the command again without --no-publish.",
}

_Internal = Annotated[
    str | None,
    typer.Option(
        "--internal",
        metavar="HOST:PORT",
        help="Its address for its own node, internalPort. Without it: that of --running, port plus 1000.",
    ),
]

_MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="N",
        help="Serve the job's progress for Prometheus at 127.0.0.1:N/metrics; 0: any port, which is told.",
        min=0,
        max=65535,
    ),
]

_Staging = Annotated[
    Path | None,
    typer.Option(
        "--staging",
        metavar="DIR",
        help="Where it is written first, on the store's file system. [default: STORE/tandem.rebuild]",
        show_default=False,
    ),
]


def rebuild(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store directory: the one with commitlog/ in it.")],
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="NAME", help="Only the queues of this topic. Repeatable."),
    ] = None,
    queues: Annotated[bool, typer.Option("--queues/--no-queues", help="Rebuild the consume queues.")] = True,
    index: Annotated[bool, typer.Option("--index/--no-index", help="Rebuild the index.")] = True,
    running: Running = None,
    internal: _Internal = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="The store's broker.conf, for the sizes of its files."),
    ] = None,
    overrides: Set = None,
    partitions: Partitions = None,
    range_size: RangeSize = DEFAULT_RANGE_SIZE,
    staging: _Staging = None,
    publish: Annotated[
        bool, typer.Option("--publish/--no-publish", help="Put the result in place, or only make and check it.")
    ] = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before existing files are replaced.")] = False,
    master: Master = None,
    conf: SparkConf = None,
    memory: Memory = DEFAULT_MEMORY,
    metrics_port: _MetricsPort = None,
    progress: TellProgress = False,
    as_json: Json = False,
) -> None:
    """Rebuild a store's queues and index from its commit log.

    In parallel, on Spark. Consume queues and index become what the store itself would have written, byte for byte. All
    is written and checked in a staging directory; until the end the store's files stay as they are. If the command
    fails or is killed, the next one goes on where it was. Rotten parts of the log are told and skipped. The store must
    be stopped, or named with --running: then it takes the files over without a pause, and adds what has been stored
    meanwhile.

    Sizes of files are those that the store's settings say: --config and --set as of `tandem serve store`. Without
    them, what the files show: of the index, else of the commit log, whose size tells which defaults the store has.

    With --json: one document, {"messages", "log_bytes", "begin", "end", "queues", "queue_units", "index_files",
    "index_entries", "damage": [...], "published", "staging", "seconds", "phases": {...}, ...}.
    """
    output = Output(as_json=as_json)
    request = _request(store, config, overrides, running=running, internal=internal)
    request = _with(request, topics=tuple(topics or ()), queues=queues, index=index, partitions=partitions)
    request = _with(request, range_size=range_size, staging=staging, publish=publish)
    _look(request)
    if publish and running is None and not yes:
        _ask(output, request)
    from tandemmq.spark.rebuilding.rebuild_job import rebuild as run_job

    try:
        with (
            _told(output, store, metrics_port, as_lines=progress) as tell,
            job_runner(output, "tandem data rebuild", master, conf, memory) as runner,
        ):
            report = run_job(request, runner, tell)
    except KeyboardInterrupt:
        output.remark("Interrupted; the same command goes on where this one was, if it had not begun to publish.")
        raise
    if as_json:
        output.document(_document(report))
    else:
        _say(output, report)


def _request(
    store: Path, config: Path | None, overrides: list[str] | None, *, running: str | None, internal: str | None
) -> "RebuildRequest":
    """The request, with the sizes that the store's settings say. Raises NotAStore, BadParameter, SettingsError."""
    from tandemmq.spark.reading.log_files import list_log_files
    from tandemmq.spark.rebuilding.rebuild_job import RebuildRequest

    log_file_size = list_log_files(store)[-1].size  # before Spark starts: a mistyped directory is told at once
    if running is not None:
        return RebuildRequest(store, running=running, internal=internal or _internal_of(running))
    if internal is not None:
        raise typer.BadParameter("it is of a running store: name that with --running", param_hint="--internal")
    from tandemmq.cli.processes.start_settings import split_settings
    from tandemmq.store.settings import load_settings

    profile = _profile(store, log_file_size) if config is None else None
    settings = load_settings(config, profile, overrides=split_settings(overrides))
    said = {one.name for one in settings.describe() if one.origin.layer not in ("default", "profile")}
    queue_file = settings.mapped_file_size_consume_queue if "mappedFileSizeConsumeQueue" in said else None
    return RebuildRequest(
        store,
        delay_levels=settings.store_config().message_delay_levels,
        consume_queue_file_size=queue_file,
        index_slots=settings.max_hash_slot_num,
        index_entries=settings.max_index_num,
    )


def _look(request: "RebuildRequest") -> None:
    """Whether the job can be done at all: told at once, not after seconds in which Spark starts."""
    from tandemmq.spark.rebuilding.publishing import refuse_if_in_use
    from tandemmq.spark.rebuilding.rebuild_source import ask_store, look_at

    if request.running is not None:
        with told(RUNNING_STORE, request.running):
            ask_store(request)
        return
    refuse_if_in_use(request.root)
    look_at(request)


def _with(request: "RebuildRequest", **changes: Any) -> "RebuildRequest":
    from dataclasses import replace

    return replace(request, **changes)


def _internal_of(running: str) -> str:
    host, _, port = running.rpartition(":")
    if not host or not port.isdecimal():
        raise typer.BadParameter(f"{running!r} is not HOST:PORT, as in 127.0.0.1:8081", param_hint="--running")
    return f"{host}:{int(port) + _INTERNAL_PORT_BEHIND}"


def _profile(store: Path, log_file_size: int) -> str:
    """Which defaults the store has, as far as its files show."""
    from tandemmq.store.format.index_layout import file_size
    from tandemmq.store.settings import PROFILES, load_settings

    index = {path.stat().st_size for path in store.glob("index/*") if path.name.isdigit()}
    for name in PROFILES:
        defaults = load_settings(profile=name, environment={})
        if index and index != {file_size(defaults.max_hash_slot_num, defaults.max_index_num)}:
            continue
        if index or log_file_size == defaults.mapped_file_size_commit_log:
            return name
    return "server"


def _ask(output: Output, request: "RebuildRequest") -> None:
    """Where a person sits at the terminal: may the files be replaced? Nothing without such files."""
    kinds = [("consumequeue", request.queues, "consume queues"), ("index", request.index, "index")]
    there = [text for name, wanted, text in kinds if wanted and any(request.root.glob(f"{name}/*"))]
    if not there or output.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    typer.confirm(f"Replace the {' and the '.join(there)} in {request.root}?", default=True, abort=True, err=True)


@contextmanager
def _told(
    output: Output, store: Path, metrics_port: int | None, *, as_lines: bool
) -> "Iterator[Callable[[Progress], None]]":
    """Progress to the terminal, and to Prometheus."""
    with ExitStack() as stack:
        show = stack.enter_context(phase_bars(output, _PHASES, "starting Spark", as_lines=as_lines))
        if metrics_port is None:
            yield show
            return
        from tandemmq.common.metrics.metrics_endpoint import MetricsEndpoint
        from tandemmq.spark.rebuilding.rebuild_metrics import RebuildMetrics

        metrics = RebuildMetrics(store)
        endpoint = stack.enter_context(MetricsEndpoint(metrics.registry(), "127.0.0.1", metrics_port))
        output.remark(f"metrics: http://127.0.0.1:{endpoint.port}/metrics")

        def both(progress: "Progress") -> None:
            metrics.update(progress)
            show(progress)

        yield both


def _document(report: "RebuildReport") -> dict[str, Any]:
    from tandemmq.cli.talk.output import as_document

    document: dict[str, Any] = as_document(report)
    document["damage"] = [
        {"begin_offset": one.begin, "end_offset": one.end, "kind": one.kind, "reason": one.reason}
        for one in report.damage
    ]
    return document


def _say(output: Output, report: "RebuildReport") -> None:
    speed = f", {show_bytes(int(report.log_bytes / report.seconds))}/s" if report.seconds else ""
    phases = ", ".join(f"{name} {show_seconds(seconds)}" for name, seconds in report.phases.items())
    pairs = [
        ("log", f"{report.begin:,} to {report.end:,}: {report.messages:,} messages, {show_bytes(report.log_bytes)}"),
        ("consume queues", f"{report.queues:,} with {report.queue_units:,} entries"),
        ("index", f"{report.index_files:,} files with {report.index_entries:,} entries"),
        ("time", f"{show_seconds(report.seconds)} ({phases}){speed}"),
    ]
    if report.resumed_ranges:
        pairs.append(("resumed", f"{report.resumed_ranges:,} ranges were done already"))
    output.pairs(pairs)
    for damage in report.damage:
        output.say(f"damage: {damage.kind} at {damage.begin:,} to {damage.end:,}: {damage.reason}; skipped")
    output.say(_PUBLISHED.get(report.published, report.published))
    if report.staging is not None:
        output.say(f"They are in {report.staging}.")
