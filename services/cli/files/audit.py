"""`tandem data audit`: consume queues and index of a store, compared with its commit log."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from tandemmq.cli.pair.pair_audit import Peers, Rate, Repair, compare
from tandemmq.cli.talk.connection import RUNNING_STORE, check_addresses, told
from tandemmq.cli.talk.failures import FAILED
from tandemmq.cli.talk.moments import show_bytes, show_moment, show_seconds
from tandemmq.cli.talk.options import DEFAULT_REPLICATOR_ADDRESS, Json, ReplicatorAddress, Set
from tandemmq.cli.talk.output import Output, Row, printable
from tandemmq.cli.talk.phases import TellProgress, phase_bars

if TYPE_CHECKING:
    from tandemmq.spark.auditing.audit_job import AuditRequest
    from tandemmq.spark.auditing.audit_report import AuditReport
    from tandemmq.spark.auditing.audit_source import AuditSource
    from tandemmq.spark.running.runner import Runner

_WORTH_A_SESSION = 4 << 30
"""Bytes of log from which on several cores save more time than Spark takes to start."""

_PHASES = {
    "index": "looking at the index",
    "scan": "reading the log",
    "again": "reading odd queues again",
    "rest": "looking at the queues",
}
_PLACES_SHOWN = 5
_QUEUES_SHOWN = 30

StoreConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="The store's broker.conf, for its delay levels."),
]


def audit(
    store: Annotated[
        Path | None, typer.Argument(metavar="STORE", help="A store directory: the one with commitlog/ in it.")
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="NAME", help="Only the queues of this topic. Repeatable."),
    ] = None,
    queues: Annotated[bool, typer.Option("--queues/--no-queues", help="Compare the consume queues.")] = True,
    index: Annotated[bool, typer.Option("--index/--no-index", help="Compare the index.")] = True,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with plots, one HTML file.")
    ] = None,
    details: Annotated[
        int,
        typer.Option("--details", metavar="N", help="Name N places of each finding; all are counted.", min=0),
    ] = 20,
    running: Running = None,
    config: StoreConfigFile = None,
    overrides: Set = None,
    partitions: Partitions = None,
    range_size: RangeSize = DEFAULT_RANGE_SIZE,
    master: Master = None,
    conf: SparkConf = None,
    memory: Memory = DEFAULT_MEMORY,
    progress: TellProgress = False,
    pair: Annotated[
        bool, typer.Option("--pair", help="Compare the logs of the nodes of a pair, which run; see below.")
    ] = False,
    repair: Repair = False,
    peers: Peers = None,
    rate: Rate = 0,
    address: ReplicatorAddress = DEFAULT_REPLICATOR_ADDRESS,
    as_json: Json = False,
) -> None:
    """Compare a store's queues and index with its commit log.

    Every record is read and its checksum compared. Told are damaged parts of the log, gaps in queue offsets and numbers
    given twice; units and index entries that are missing, wrong, or without a message; entries that no chain leads to.
    What brokers leave behind and never read is told as a note. None of these files is changed. Stores that RocketMQ
    wrote are looked at in the same way, and where it is known how RocketMQ gets there, the trap is named.

    On a store that runs, --running says where it answers: it is compared up to where its queues and index are complete.
    Without it, up to where they were at its last checkpoint. --config or --set say which delay levels the store has;
    without them the delivery times of delayed messages are not compared. Small logs are read by this process alone,
    large ones, or with --master, on Spark.

    With --pair, and no STORE, the replicator at --address compares its node's log with its master's, or a master's with
    those of its slaves, as far as both have it: by checksums, without moving the log. Where they differ it says which
    record, and whose is right by its own checksum; with --repair a node that has a damaged one fetches it again.

    The numbers stay in the directory of a store of ours (tandem.audit), which has them in its metrics; those of a part
    (--topic, --no-queues, --no-index) only if there are faults. A directory that cannot be written is audited all the
    same.

    Exit code 1 if there are faults; notes are none.

    With --json: one document, {"faults", "kept" (whether in tandem.audit), "findings": [{"kind", "fault", "count",
    "places": [...]}], "damage", "topics", "queues", "index", "begin_offset", "end_offset", "records", ...}; with --pair
    {"peers": [{"peer", "begin_offset", "end_offset", "differences": [{"begin_offset", "end_offset", "here", "there",
    "topic", ...}]}]}.
    """
    output = Output(as_json=as_json)
    if store is None or pair:
        _check_pair(store, pair=pair)
        compare(output, address, peers or [], repair=repair, rate=rate, progress=progress)
        return
    if repair or peers or rate:
        raise typer.BadParameter("these belong to --pair", param_hint="--repair, --peer, --rate")
    request = _request(store, config, overrides, running)
    request = _with(request, topics=tuple(topics or ()), queues=queues, index=index, details=details)
    request = _with(request, partitions=partitions, range_size=range_size)
    from tandemmq.spark.auditing.audit_job import audit as run_job
    from tandemmq.spark.auditing.audit_job import find_source

    if html is not None:
        from tandemmq.spark.auditing.audit_page import check_page

        check_page(html)
    with told(RUNNING_STORE, running) if running is not None else nullcontext():
        size = _size(find_source(request))
    on_spark = master is not None or bool(conf) or size >= _WORTH_A_SESSION
    with (
        phase_bars(output, _PHASES, "starting Spark" if on_spark else "", as_lines=progress) as tell,
        _runner(output, master, conf, memory, on_spark=on_spark) as runner,
    ):
        report = run_job(request, runner, tell)
    if html is not None:
        from tandemmq.spark.auditing.audit_page import write_page

        write_page(report, html)
    kept = _keep(output, report, whole=queues and index and not topics)
    _tell(output, report, html, kept=kept)


def _tell(output: Output, report: "AuditReport", html: Path | None, *, kept: bool) -> None:
    """Raises typer.Exit where there are faults."""
    if output.as_json:
        output.document(report.document() | {"kept": kept})
    else:
        _say(output, report, html)
    if report.faults:
        raise typer.Exit(FAILED)


def _keep(output: Output, report: "AuditReport", *, whole: bool) -> bool:
    """Leave the result for the store's metrics. A part without a fault says nothing of the rest, and is not kept."""
    from tandemmq.spark.auditing.audit_keeping import keep_result

    if not whole and not report.faults:
        return False
    try:
        return keep_result(report)
    except OSError as error:
        output.remark(f"The result is not kept for the store's metrics: {error.strerror}: {error.filename}")
        return False


def _check_pair(store: Path | None, *, pair: bool) -> None:
    """Either a store is looked at or a pair. Raises BadParameter."""
    if store is not None:
        raise typer.BadParameter("with --pair the nodes say themselves where their logs are", param_hint="STORE")
    if not pair:
        raise typer.BadParameter("say which store, or --pair", param_hint="STORE")


def _request(store: Path, config: Path | None, overrides: list[str] | None, running: str | None) -> "AuditRequest":
    from tandemmq.spark.auditing.audit_job import AuditRequest

    if running is not None:
        check_addresses(running)
    if config is None and not overrides:
        return AuditRequest(store, running=running)
    if running is not None:
        raise typer.BadParameter("a running store says itself what its settings are", param_hint="--config, --set")
    from tandemmq.cli.processes.start_settings import split_settings
    from tandemmq.store.settings import load_settings

    settings = load_settings(config, None, overrides=split_settings(overrides))
    said = {one.name for one in settings.describe() if one.origin.layer not in ("default", "profile")}
    return AuditRequest(
        store,
        delay_levels=settings.store_config().message_delay_levels,
        index_slots=settings.max_hash_slot_num if "maxHashSlotNum" in said else None,
        index_entries=settings.max_index_num if "maxIndexNum" in said else None,
    )


def _with(request: "AuditRequest", **changes: object) -> "AuditRequest":
    from dataclasses import replace

    return replace(request, **changes)  # type: ignore[arg-type]


def _size(source: "AuditSource") -> int:
    """Bytes of the log that are on the disk."""
    return sum(file.path.stat().st_blocks * 512 for file in source.files)


@contextmanager
def _runner(
    output: Output, master: str | None, conf: list[str] | None, memory: str, *, on_spark: bool
) -> "Iterator[Runner]":
    from tandemmq.spark.running.runner import InProcessRunner

    if not on_spark:
        yield InProcessRunner()
        return
    with job_runner(output, "tandem data audit", master, conf, memory) as runner:
        yield runner


# -- words ----------------------------------------------------------------------------------------------------------


def _say(output: Output, report: "AuditReport", html: Path | None) -> None:
    output.pairs(_summary(report))
    found = [*report.found(faults=True), *report.found(faults=False)]
    rows: list[Row] = [
        (number, "fault" if kind.fault else "note", kind.title, f"trap {kind.trap}" if kind.trap else "")
        for kind, number, _ in found
    ]
    if rows:
        output.say()
        output.table(("count", "", "what", "known as"), rows)
    _say_places(output, report)
    _say_queues(output, report)
    if html is not None:
        output.remark(f"The report is in {html}.")
    output.say()
    if report.faults:
        output.say(f"{report.faults:,} faults. What each of them means: docs/spark.md, or --html.")
    else:
        output.say("No faults: every record has its checksum, every message its unit, and every key its index entry.")


def _summary(report: "AuditReport") -> list[tuple[str, str]]:
    size = sum(size for _, size in report.statistics.totals().values())
    span = f"{show_moment(report.statistics.first_time)} to {show_moment(report.statistics.last_time)}"
    state = "closed cleanly" if report.clean_exit else "not closed cleanly"
    if report.live:
        how = "what its dispatch had reached" if report.known_end else "what was complete for certain; name --running"
        state = f"in use; compared up to log offset {report.end:,}, {how}"
    pairs = [
        ("directory", f"{report.root}   ({state})"),
        ("log", f"{report.begin:,} to {report.end:,}: {report.records:,} records, {show_bytes(size)}"),
        ("stored", span),
    ]
    if report.queues_compared:
        units = sum(queue.messages for queue in report.queues)
        pairs.append(("queues", f"{len(report.queues):,} with {units:,} messages"))
    if report.index is not None:
        entries = sum(file.entries for file in report.index)
        pairs.append(("index", f"{len(report.index):,} files with {entries:,} entries"))
    speed = f", {show_bytes(int(size / report.seconds))}/s" if report.seconds else ""
    phases = ", ".join(f"{name} {show_seconds(seconds)}" for name, seconds in report.phases.items())
    return [*pairs, ("time", f"{show_seconds(report.seconds)} ({phases}){speed}")]


def _say_places(output: Output, report: "AuditReport") -> None:
    from tandemmq.spark.auditing.audit_report import place_words

    for kind, number, places in report.found(faults=True):
        shown = places[:_PLACES_SHOWN]
        if not shown:
            continue
        output.say()
        output.say(f"{kind.title}:")
        for place in shown:
            output.say(
                printable(
                    f"  {place.count:,} at {place_words(place)}" if place.count > 1 else f"  {place_words(place)}"
                )
            )
        left = number - sum(place.count for place in shown)
        if left > 0:
            output.say(f"  and {left:,} more")


def _say_queues(output: Output, report: "AuditReport") -> None:
    faulty = sorted((one for one in report.queues if one.faults), key=lambda one: -one.faults)
    if not faulty:
        return
    rows: list[Row] = [
        (one.topic, one.queue_id, one.first, one.end, one.messages, one.faults) for one in faulty[:_QUEUES_SHOWN]
    ]
    output.say()
    output.table(("topic", "queue", "first", "next", "messages", "faults"), rows)
    if len(faulty) > len(rows):
        output.say(f"and {len(faulty) - len(rows):,} more queues with faults")
