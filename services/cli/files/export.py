"""`tandem data export`: messages of a log as Parquet files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.files.spark_options import DEFAULT_MEMORY, PROCESSES, Master, Memory, SparkConf, spark_session
from tandemmq.cli.talk.moments import parse_moment, show_bytes, show_seconds
from tandemmq.cli.talk.options import Begin, End, Json
from tandemmq.cli.talk.output import Output, as_document

if TYPE_CHECKING:
    from tandemmq.spark.export import ExportReport, ExportRequest

_WITHOUT_SPARK = 4 << 30
"""Bytes of log up to which one process is as quick as Spark with its start."""


def export(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store directory: the one with commitlog/ in it.")],
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="Directory for the files, or an address that Spark can write to.")
    ],
    topics: Annotated[
        list[str] | None, typer.Option("--topic", "-t", metavar="NAME", help="Only this topic. Repeatable.")
    ] = None,
    begin: Begin = None,
    end: End = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAMES",
            help="Only these columns, with commas between. [default: all]",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="If OUT is not empty: error, append (add files), overwrite (replace the topics and days written).",
        ),
    ] = "error",
    running: Annotated[
        str | None,
        typer.Option(
            "--running", metavar="HOST:PORT", help="The store runs, and answers here: its last message is the end."
        ),
    ] = None,
    master: Master = None,
    conf: SparkConf = None,
    memory: Memory = DEFAULT_MEMORY,
    as_json: Json = False,
) -> None:
    """Write a store's messages to Parquet files.

    They go to OUT/topic=NAME/day=2026-01-31/, one file each, or more where it would become large. The day is that of
    the store's time stamp in UTC. A log of up to 4 GiB is written by one process, without Spark; a larger one on Spark,
    if that is installed. --master says otherwise. The store may run meanwhile; nothing of it is changed or locked.
    Damaged parts of the log are left out and counted: `tandem data audit` says more of them. What is older than its
    topic keeps messages is left out too, without being counted; from a commitlog directory alone all is written. Bodies
    are written as they are stored: compressed ones stay compressed, and sys_flag says so.

    With --json: one document, {"messages", "damaged", "log_bytes", "files", "bytes", "seconds"}.
    """
    from tandemmq.spark.export import ExportRequest, check

    output = Output(as_json=as_json)
    request = ExportRequest(
        store,
        out,
        topics=tuple(topics or ()),
        begin=None if begin is None else parse_moment(begin),
        end=None if end is None else parse_moment(end) + 1,
        mode=mode,
        columns=tuple(name.strip() for name in columns.split(",")) if columns else (),
        running=running,
    )
    check(request)
    if _needs_spark(output, request, master, conf):
        from tandemmq.spark.export import export as run_job

        with spark_session(output, "tandem data export", master, conf, memory, rows_cross=True) as session:
            report = run_job(session, request)
    else:
        from tandemmq.spark.direct_export import export_directly

        with output.progress("exporting", wanted=True) as update:
            report = export_directly(request, update)
    if as_json:
        output.document(as_document(report))
    else:
        _say(output, report, out)


def _needs_spark(output: Output, request: "ExportRequest", master: str | None, conf: list[str] | None) -> bool:
    """Whether Spark does it: where that is asked for, where the target is its own, and where the log is large."""
    from importlib.util import find_spec

    from tandemmq.spark.export import local_target
    from tandemmq.spark.reading.log_files import list_log_files

    if master is not None:
        return PROCESSES.fullmatch(master) is None
    if conf or local_target(request.target) is None:
        return True
    log_bytes = sum(file.size for file in list_log_files(request.store))
    if log_bytes <= _WITHOUT_SPARK:
        return False
    if find_spec("pyspark") is None:
        output.remark(f"{show_bytes(log_bytes)} of log, and no PySpark is installed: one process reads it all.")
        return False
    return True


def _say(output: Output, report: "ExportReport", out: str) -> None:
    speed = f", {show_bytes(int(report.log_bytes / report.seconds))} of log/s" if report.seconds else ""
    output.pairs(
        [
            ("messages", f"{report.messages:,}"),
            (
                "files",
                out if report.files is None else f"{report.files:,} with {show_bytes(report.bytes or 0)} in {out}",
            ),
            ("time", f"{show_seconds(report.seconds)}{speed}"),
        ]
    )
    if report.damaged:
        output.say(
            f"damage: {report.damaged:,} records or stretches of the log were left out; see `tandem data audit`."
        )
