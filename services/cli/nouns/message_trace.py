"""`tandem message trace`: the way of a message, from its producer to its consumers."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at, document, enum_name
from tandemmq.cli.nouns.message_standing import say_standings
from tandemmq.cli.talk.moments import show_moment
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output, printable

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import FoundMessage, TraceStep


def trace(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A key, the unique key (a classic client's message id), or the id.")
    ],
    topic: Annotated[
        str, typer.Option("--topic", "-t", metavar="TOPIC", help="Where it is, if no client has told of it.")
    ] = "",
    trace_topic: Annotated[
        str, typer.Option("--trace-topic", metavar="TOPIC", help="Another topic of traces than RMQ_SYS_TRACE_TOPIC.")
    ] = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show the way of a message: who sent it, who consumed it.

    And when, how long it took, and how it ended.

    Clients tell that if their traces are switched on. What the brokers know themselves is shown in any case: where the
    message is stored, and which groups are past it.

    With --json: one document, {"steps": [{"kind", "time_ms", "group", "client", "cost_ms", "status", ...}], "messages":
    [as in `tandem message find`], "unreadable", "more"}. Exit code 1 if nothing is known.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.TraceMessage(admin_pb2.TraceMessageRequest(key=key, topic=topic, trace_topic=trace_topic))
    if as_json:
        output.document(document(found))
        return
    for one in found.messages:
        _say_stored(output, one)
    if found.steps:
        columns = ("when", "what", "by group", "client", "took", "outcome", "message")
        output.table(columns, [_row(step) for step in found.steps])
    else:
        output.remark("No client has told of it: see docs/remoting.md, Traces.")
    if found.unreadable:
        output.remark(f"{found.unreadable} entries of traces cannot be read.")
    if found.more:
        output.remark("More was told than was read.")


def _say_stored(output: Output, found: "FoundMessage") -> None:
    one = found.message
    where = f"{one.topic} queue {one.queue_id} offset {one.queue_offset} of {found.broker}"
    past = f"groups past it: {', '.join(found.consumed_by)}" if found.consumed_by else "no group is past it"
    tries = f"  given back {one.reconsume_times} times" if one.reconsume_times else ""
    output.say(printable(f"stored {show_moment(one.store_timestamp)}  {where}  {one.unique_key}  {past}{tries}"))
    say_standings(output, found)


def _row(step: "TraceStep") -> tuple[str, ...]:
    what = enum_name(step, "kind")
    if step.retry_times:
        what += f", try {step.retry_times + 1}"
    if step.from_check:
        what += ", asked for"
    return (
        show_moment(step.time_ms) if step.time_ms else "",
        what,
        printable(step.group),
        printable(step.client),
        f"{step.cost_ms} ms",
        step.status or "not told yet",
        printable(step.message_id),
    )
