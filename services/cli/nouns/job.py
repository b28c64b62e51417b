"""`tandem job`: audits and rebuilds that run beside the admin service."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns import names
from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at, document, enum_name, noun
from tandemmq.cli.talk.failures import FAILED
from tandemmq.cli.talk.moments import show_moment, show_seconds
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Job
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

app = noun("job", "Audits and rebuilds of a node's files.")

JobId = Annotated[
    str, typer.Argument(metavar="JOB", help="The job, as `tandem job list` has it.", autocompletion=names.jobs)
]
_KINDS = ("audit", "rebuild")


@app.command()
def start(
    kind: Annotated[str, typer.Argument(metavar="audit|rebuild", help="What to do.")],
    node: Annotated[
        str,
        typer.Argument(metavar="NODE", help="Whose files, as `tandem node list` has it.", autocompletion=names.nodes),
    ],
    topics: Annotated[
        list[str] | None, typer.Option("--topic", "-t", metavar="NAME", help="Only this topic (audit). Repeatable.")
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="Spark's master; without it, processes of admin's machine.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Watch it until it has ended.")] = True,
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Audit a node's queues and index, or rebuild them, while it runs.

    Exit code 1 if the job fails, or an audit finds faults.

    With --json: one JSON line each time that the job has moved on, as `tandem job show`.
    """
    from tandemmq.admin.v1 import admin_pb2

    if kind not in _KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(_KINDS)}", param_hint="KIND")
    request = admin_pb2.StartJobRequest(
        kind=admin_pb2.JobKind.Value(kind.upper()), node=node, topics=topics or [], spark_master=master
    )
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        job = admin.StartJob(request)
        if wait:
            job = _watch(admin, job.id, output)
        elif as_json:
            output.line(document(job))
        else:
            output.say(f"{job.id} runs; see `tandem job watch {job.id}`")
    _exit(job)


@app.command("list")
def list_jobs(address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """List jobs, the newest first.

    With --json: one document, {"jobs": [...]}, each as `tandem job show` without report and log.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.ListJobs(admin_pb2.ListJobsRequest())
    if as_json:
        output.document(document(found))
        return
    rows = [
        (one.id, enum_name(one, "kind"), one.node, enum_name(one, "state"), f"{one.progress:.0%}",
         show_moment(one.started_ms).partition(".")[0], _took(one), one.started_by or "-", one.problem)
        for one in found.jobs
    ]  # fmt: skip
    output.table(
        ("job", "kind", "node", "state", "done", "began", "took", "by", "problem"), rows, drop=("by", "began", "took")
    )
    if not rows:
        output.say("No job has run yet.")


def _took(job: "Job") -> str:
    return show_seconds((job.ended_ms - job.started_ms) / 1000) if job.ended_ms else "-"


@app.command()
def show(job: JobId, address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """Show one job: how far it is, and what it reported.

    With --json: one document, {"id", "kind", "node", "state", "phase", "progress", "problem", "report_json", ...}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.GetJob(admin_pb2.GetJobRequest(id=job))
    _say(output, found)


@app.command()
def watch(job: JobId, address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """Watch a job until it has ended. Exit code 1 if it fails.

    With --json: one JSON line each time that the job has moved on.
    """
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        ended = _watch(admin, job, output)
    _exit(ended)


@app.command()
def cancel(job: JobId, address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """End a job. What it has changed so far is whole: a rebuild changes nothing before it is done.

    With --json: one document, as `tandem job show`.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.CancelJob(admin_pb2.GetJobRequest(id=job))
    _say(output, found)


def _watch(admin: "AdminStub", job_id: str, output: Output) -> "Job":
    from tandemmq.admin.v1 import admin_pb2

    job = admin_pb2.Job(id=job_id)
    states = admin.WatchJob(admin_pb2.GetJobRequest(id=job_id))
    if output.as_json:
        for job in states:
            output.line(document(job))
        return job
    if not sys.stderr.isatty():
        phase = ""
        for job in states:
            if job.phase != phase:
                phase = job.phase
                output.remark(f"{job.id} {phase}")
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            bar = bars.add_task(job_id, total=1.0)
            for job in states:
                bars.update(bar, completed=job.progress, description=f"{job.id} {job.phase}")
    _say(output, job)
    return job


def _say(output: Output, job: "Job") -> None:
    if output.as_json:
        output.document(document(job))
        return
    pairs = [
        ("kind", f"{enum_name(job, 'kind')} of node {job.node}"),
        ("state", f"{enum_name(job, 'state')}, {job.progress:.0%} done" + (f", {job.phase}" if job.phase else "")),
        ("began", show_moment(job.started_ms) + (f" by {job.started_by}" if job.started_by else "")),
        ("took", _took(job)),
        ("command", job.command),
    ]
    if job.problem:
        pairs.append(("problem", job.problem))
    pairs += [(f"report: {name}", text) for name, text in _report(job.report_json)]
    output.pairs(pairs, title=job.id)
    for line in job.log:
        if line != job.problem:
            output.remark(f"  {line}")


def _report(text: str) -> list[tuple[str, str]]:
    """The plain facts of a report; --json has all of it."""
    try:
        report = json.loads(text) if text else {}
    except ValueError:
        return [("text", text)]
    facts = report if isinstance(report, dict) else {}
    return [(name, str(value)) for name, value in facts.items() if isinstance(value, (str, int, float))]


def _exit(job: "Job") -> None:
    from tandemmq.admin.v1 import admin_pb2

    if job.state in (admin_pb2.FAILED, admin_pb2.CANCELLED):
        raise typer.Exit(FAILED)
