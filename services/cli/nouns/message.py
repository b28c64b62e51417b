"""`tandem message`: finding, following, sending and re-sending messages through the admin service."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.messaging.find import query, view
from tandemmq.cli.messaging.messages import shown_body
from tandemmq.cli.nouns.calls import (
    DEFAULT_ADMIN_ADDRESS,
    AdminAddress,
    Broker,
    DryRun,
    Yes,
    admin_at,
    confirm,
    document,
    noun,
)
from tandemmq.cli.nouns.message_standing import say_standings
from tandemmq.cli.nouns.message_trace import trace
from tandemmq.cli.talk.failures import NotThere
from tandemmq.cli.talk.moments import parse_moment, show_bytes, show_moment
from tandemmq.cli.talk.options import Begin, End, Json, Topic, WithBody
from tandemmq.cli.talk.output import Output, printable

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import FindMessagesRequest, FoundMessage, ResendMessagesResponse
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

app = noun("message", "Messages: find, view, follow, trace, send again.")
for _verb in (query, view, trace):
    app.command()(_verb)


@app.command()
def find(
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="Name of the topic; not needed with --id.")] = "",
    message_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="By message id.")] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="KEY", help="By a key.")] = None,
    unique_key: Annotated[str | None, typer.Option("--unique-key", "-u", metavar="KEY", help="By unique key.")] = None,
    place: Annotated[
        str | None, typer.Option("--at", metavar="QUEUE:OFFSET", help="By its place in a queue, as in 2:117.")
    ] = None,
    begin: Begin = None,
    end: End = None,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="By time: begin with the newest.")] = False,
    containing: Annotated[
        str, typer.Option("--containing", metavar="TEXT", help="Only with this in the body or a property, in any case.")
    ] = "",
    where: Annotated[
        str,
        typer.Option(
            "--where",
            metavar="CONDITIONS",
            help="Only where these hold of a JSON body and properties, as in `body.order.id > 17 and property.REGION = "
            "eu`. Operators: = != < <= > >= and ~ (contains).",
        ),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="At most N.")] = 32,
    body: WithBody = False,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Find messages by id, key, unique key, place or time.

    The time is that when they were stored (--begin, --end, --newest-first).

    Under each: the groups that have not dealt with it, and how often it came to them. A key finds delayed messages too.

    With --json: one document, {"messages": [{"broker", "message": {"topic", "queue_id", "queue_offset", "message_id",
    ...}, "body_bytes", "consumed_by", "standings": [{"group", "state", "deliveries", "due_in_ms", ...}], "is_waiting",
    "due_ms"}], "more", "read_to_ms", "looked_at"}. Exit code 1 if there is none.
    """
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.FindMessagesRequest(topic=topic, broker=broker, limit=limit, with_bodies=body)
    _say_by(request, message_id, key, unique_key, place, begin, end, newest_first=newest_first)
    if containing or where:
        request.filter.text, request.filter.where = containing, where
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.FindMessages(request)
        if topic and not found.messages and not found.more:
            _check_topic(admin, topic, broker)
    if as_json:
        output.document(document(found))
    else:
        for one in found.messages:
            say_found(output, one, with_body=body)
        if found.read_to_ms:
            option, moment = "--end" if newest_first else "--begin", show_moment(found.read_to_ms)
            output.remark(f"Read {found.looked_at:,} messages. There may be more: {option} '{moment}'")
        elif found.more:
            output.remark("There are more; see --limit.")
    if not found.messages:
        raise NotThere("none of the messages that were read is one" if found.more else "there is no such message")


def _check_topic(admin: "AdminStub", topic: str, broker: str) -> None:
    """Say so if there is no such topic. Who may read it need not be one who may look at it."""
    import grpc

    from tandemmq.admin.v1 import admin_pb2

    try:
        admin.GetTopic(admin_pb2.GetTopicRequest(topic=topic, broker=broker))
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.PERMISSION_DENIED:
            raise


def _say_by(
    request: "FindMessagesRequest",
    message_id: str | None,
    key: str | None,
    unique_key: str | None,
    place: str | None,
    begin: str | None,
    end: str | None,
    *,
    newest_first: bool = False,
) -> None:
    """Put into the request how to look. Raises BadParameter."""
    ways = [name for name, given in (("--id", message_id), ("--key", key), ("--unique-key", unique_key),
                                     ("--at", place)) if given is not None]  # fmt: skip
    if len(ways) > 1:
        raise typer.BadParameter("give one of them", param_hint=" and ".join(ways))
    if message_id is None and not request.topic:
        raise typer.BadParameter("name the topic, or a message with --id", param_hint="TOPIC")
    begin_ms = 0 if begin is None else parse_moment(begin)
    end_ms = 0 if end is None else parse_moment(end)
    if message_id is not None:
        request.message_id = message_id
    elif place is not None:
        queue, colon, offset = place.partition(":")
        if not colon or not queue.isdecimal() or not offset.isdecimal():
            raise typer.BadParameter(f"{place!r} is not QUEUE:OFFSET", param_hint="--at")
        request.place.queue_id, request.place.offset = int(queue), int(offset)
    elif key is None and unique_key is None:
        if begin is None and end is None and not newest_first:
            ways = ["--id", "--key", "--unique-key", "--at", "--begin", "--newest-first"]
            raise typer.BadParameter(f"say how: one of {', '.join(ways)}", param_hint="TOPIC")
        request.time.begin_ms, request.time.end_ms, request.time.newest_first = begin_ms, end_ms, newest_first
    else:
        if key is not None:
            request.key = key
        else:
            request.unique_key = unique_key or ""
        request.begin_ms, request.end_ms = begin_ms, end_ms


def say_found(output: Output, found: "FoundMessage", *, with_body: bool) -> None:
    """A line that says where, when and which, and the body under it."""
    one = found.message
    head = [f"{one.topic} queue {one.queue_id} offset {one.queue_offset}", show_moment(one.store_timestamp)]
    head += [f"tag {one.tag}"] if one.tag else []
    head += [f"keys {' '.join(one.keys)}"] if one.keys else []
    head += [show_bytes(found.body_bytes), one.message_id]
    head += [f"consumed by {', '.join(found.consumed_by)}"] if found.consumed_by else []
    output.say(printable("  ".join(head)))
    say_standings(output, found)
    if with_body:
        output.say(shown_body(one.body, whole=False))
        output.say()


@app.command()
def tail(
    topic: Topic,
    last: Annotated[
        int, typer.Option("--last", "-n", min=0, max=1000, metavar="N", help="Begin with the last N of each queue.")
    ] = 0,
    tags: Annotated[str, typer.Option("--tag", "-t", metavar="TAGS", help="Only these, as in `A || B`.")] = "",
    queues: Annotated[
        list[int] | None, typer.Option("--queue", "-q", metavar="N", help="Only this queue. Repeatable.")
    ] = None,
    body: WithBody = True,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show a topic's messages as they arrive, until Ctrl-C.

    Those of all its queues, unless --queue says otherwise.

    With --json: one JSON line a message, as in `tandem message find`.
    """
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.TailRequest(
        topic=topic, last=last, tags=tags, queue_ids=queues or [], with_bodies=body, broker=broker
    )
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        for one in admin.Tail(request):
            if as_json:
                output.line(document(one))
            else:
                say_found(output, one, with_body=body)


@app.command()
def send(
    topic: Topic,
    body: Annotated[str, typer.Argument(metavar="BODY", help="The message.")],
    tag: Annotated[str, typer.Option("--tag", "-t", metavar="TAG", help="The tag that consumers filter by.")] = "",
    keys: Annotated[
        list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="A key to find it by. Repeatable.")
    ] = None,
    queue: Annotated[int | None, typer.Option("--queue", "-q", min=0, metavar="N", help="The queue.")] = None,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Send one message to try a topic, through admin.

    `tandem send` is for many, and goes to the store itself.

    With --json: one document, {"broker", "receipt": {"status", "message_id", "queue_id", "queue_offset", ...}}.
    """
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.SendMessageRequest(
        topic=topic, body=body.encode("utf-8", "surrogateescape"), tag=tag, keys=keys or [], queue_id=queue,
        broker=broker,
    )  # fmt: skip
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        sent = admin.SendMessage(request)
    told = document(sent)
    if as_json:
        output.document(told)
    else:
        receipt = sent.receipt
        output.say(
            f"{told['receipt']['status']}  {topic} on {sent.broker}  queue {receipt.queue_id} offset "
            f"{receipt.queue_offset}  id {receipt.message_id}"
        )


@app.command()
def resend(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Whose dead letters.")],
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only this dead letter. Repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="At most N.")] = 100,
    again: Annotated[bool, typer.Option("--again", help="Also those of which a copy was sent before.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Send a group's dead letters to the topics where they came from. The dead letters stay where they are.

    Those of which a copy was sent before are passed over. With --dry-run nothing is sent: it is a list of them.

    With --json: one document, {"messages": [{"message_id", "store_ms", "keys", "tag", "tries", "topic", "receipt",
    "resent_ms", "problem"}], "more"}.
    """
    from tandemmq.admin.v1 import admin_pb2

    if not dry_run:
        confirm(f"Sending dead letters of group {group} again", yes=yes, as_json=as_json)
    request = admin_pb2.ResendMessagesRequest(
        group=group, message_ids=ids or [], limit=limit, dry_run=dry_run, again=again, broker=broker
    )
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        answer = admin.ResendMessages(request)
    if as_json:
        output.document({"messages": [document(one) for one in answer.messages], "more": answer.more})
        return
    rows = [
        (one.message_id, show_moment(one.store_ms), " ".join(one.keys), one.tries, one.topic, _outcome(one))
        for one in answer.messages
    ]
    output.table(("dead letter", "since", "keys", "tries", "to", "outcome"), rows)
    if not rows:
        output.say("There are none.")
    if answer.more:
        output.remark("There are more; see --limit.")


def _outcome(one: "ResendMessagesResponse.Resent") -> str:
    """What became of a dead letter."""
    from tandemmq.store.v1.store_pb2 import SendStatus

    if one.HasField("receipt"):
        return SendStatus.Name(one.receipt.status)
    if one.resent_ms and one.problem:
        return f"sent again before, {show_moment(one.resent_ms)}: see --again"
    return one.problem or "would be sent"
