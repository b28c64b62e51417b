"""`tandem group`: subscription groups, how far they are, and moving them."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns import names
from tandemmq.cli.nouns.calls import (
    DEFAULT_ADMIN_ADDRESS,
    AdminAddress,
    Broker,
    DryRun,
    Limit,
    Match,
    Yes,
    admin_at,
    comma,
    confirm,
    document,
    noun,
    read_pages,
)
from tandemmq.cli.nouns.group_settings import (
    Consume,
    ConsumeFrom,
    Fifo,
    Keep,
    RetryPolicy,
    RetryQueues,
    RetryTimes,
    Timeout,
    WaitFor,
    as_attributes,
)
from tandemmq.cli.nouns.group_settings import in_words as settings_in_words
from tandemmq.cli.nouns.group_view import COLUMNS, age, by_topic, cells, held, in_words, remarks, say_members
from tandemmq.cli.nouns.lone_store import operations_at, or_store
from tandemmq.cli.nouns.message_standing import say_failing
from tandemmq.cli.nouns.retry_waits import as_other_json
from tandemmq.cli.talk.moments import FORMS, parse_moment, show_seconds
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Group as AdminGroup
    from tandemmq.admin.v1.admin_pb2 import GroupDetails, QueueProgress, ResetOffsetsRequest, ResetOffsetsResponse
    from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig

app = noun("group", "Groups: how far they are; reset, create, change, delete.")

Group = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.", autocompletion=names.groups)]


@app.command("list")
def list_groups(
    match: Match = "",
    min_lag: Annotated[
        int, typer.Option("--min-lag", min=0, metavar="N", help="Only those with a lag of at least N messages.")
    ] = 0,
    limit: Limit = 0,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """List groups: lag, messages in flight, topics.

    `in flight`: messages that members hold, and those that were put off: they have failed, and come later. `ready`:
    that members can get now. `attempts`: most deliveries of one message that is not dealt with. `oldest`: the oldest of
    these. A group that is `mixed` acknowledges and commits offsets.

    With --json: one document, {"groups": [{"broker", "config": {...}, "lag", "topics", "dead_letters", "view":
    {"topics": [{"topic", "in_flight", "ready", "most_deliveries", "oldest_ms", ...}], "consumers", "acknowledges",
    "commits", "differing_topics", ...}}], "total"}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:

        def ask(after: str, most: int) -> "admin_pb2.ListGroupsResponse":
            return admin.ListGroups(
                admin_pb2.ListGroupsRequest(match=match, min_lag=min_lag, broker=broker, after=after, limit=most)
            )

        found, total = read_pages(ask, "groups", limit)
    if as_json:
        output.document({"groups": [document(one) for one in found], "total": total})
        return
    rows = [
        (one.config.name, one.broker, one.lag, *cells(one), one.dead_letters, comma(one.topics), remarks(one))
        for one in found
    ]  # fmt: skip
    output.table(
        ("group", "broker", "lag", *COLUMNS, "dead letters", "topics", ""),
        rows,
        drop=("broker", "topics", *reversed(COLUMNS)),
        right=COLUMNS,
    )
    if not found:
        output.say("There is no such group." if match or min_lag else "There are no groups yet.")
    elif total > len(found):
        output.remark(f"{total - len(found):,} more; see --limit")


def _details(group: str, broker: str, address: str) -> "GroupDetails":
    from tandemmq.admin.v1 import admin_pb2

    with admin_at(address) as admin:
        return admin.GetGroup(admin_pb2.GetGroupRequest(group=group, broker=broker))


@app.command()
def show(
    group: Group, broker: Broker = "", address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False
) -> None:
    """Show one group: settings, progress, members.

    Progress is by topic; the messages that it fails on are listed.

    `tandem message find TOPIC --at QUEUE:OFFSET --body` shows such a message.

    With --json: one document, {"groups": [...], "progress": [...], "failing": [{"broker", "standing": {"place",
    "state", "deliveries", "due_in_ms", "client_id"}}]}, the second as `tandem group progress`; in "view" of a group
    "members" stand beside what `tandem group list` has.
    """
    output = Output(as_json=as_json)
    found = _details(group, broker, address)
    if as_json:
        output.document(document(found))
        return
    for one in found.groups:
        output.pairs(_in_words(one), title=f"{one.config.name} on {one.broker}")
    _say_topics(output, found)
    if found.failing:
        output.say()
        say_failing(output, list(found.failing))
    if any(one.view.members for one in found.groups):
        output.say()
        say_members(output, found)


def _say_topics(output: Output, found: "GroupDetails") -> None:
    topics: dict[tuple[str, str], tuple[int, int]] = {}
    for queue in found.progress:
        lag, queues = topics.get((queue.topic, queue.broker), (0, 0))
        topics[queue.topic, queue.broker] = (lag + queue.lag, queues + 1)
    seen = by_topic(list(found.groups))
    rows = []
    for key, (lag, queues) in sorted(topics.items()):
        one = seen.get(key)
        work = ("-",) * 4 if one is None else (held([one]), one.ready, one.most_deliveries, age(one.oldest_ms))
        rows.append((*key, queues, lag, *work))
    output.table(
        ("topic", "broker", "queues", "lag", "in flight", "ready", "attempts", "oldest"),
        rows,
        drop=("attempts", "broker", "queues"),
    )
    if not topics:
        output.say("It has consumed nothing yet.")


@app.command()
def members(
    group: Group, broker: Broker = "", address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False
) -> None:
    """Show the clients that are in a group.

    Protocol, language, version, what they subscribe to.

    A client is in it until it leaves, or nothing was heard of it for two minutes.

    With --json: one document, {"members": [{"broker", "client_id", "producer", "protocol", "language", "version",
    "address", "subscriptions": {...}, "silent_ms"}], "differing_topics": [...]}: to these they do not subscribe alike.
    """
    output = Output(as_json=as_json)
    found = _details(group, broker, address)
    differing = sorted({topic for one in found.groups for topic in one.view.differing_topics})
    if as_json:
        rows = [{"broker": one.broker, **document(member)} for one in found.groups for member in one.view.members]
        output.document({"members": rows, "differing_topics": differing})
        return
    say_members(output, found)
    if differing:
        output.say(f"They do not subscribe alike to {comma(differing, 20)}: each should want the same messages.")


def _in_words(group: "AdminGroup") -> list[tuple[str, str]]:
    return [
        ("lag", counted(group.lag, "message")),
        ("dead letters", f"{group.dead_letters:,}"),
        *settings_in_words(group.config),
        *(in_words(group.view) if group.HasField("view") else ()),
    ]


@app.command()
def progress(
    group: Group, broker: Broker = "", address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False
) -> None:
    """Show how far a group is in every queue.

    `lag` is what waits in the queue; `lag time` is the age of the oldest message that waits.

    With --json: one document, {"progress": [{"broker", "topic", "queue_id", "min_offset", "max_offset", "offset",
    "lag", "lag_ms", "trouble"}]}.
    """
    output = Output(as_json=as_json)
    found = _details(group, broker, address)
    if as_json:
        output.document({"progress": [document(one) for one in found.progress]})
        return
    columns = ("topic", "broker", "queue", "offset", "max", "lag", "lag time", "")
    rows = [_progress_row(one) for one in found.progress]
    output.table(columns, rows, drop=("broker", "max"), right=("lag", "lag time"))
    if not found.progress:
        output.say("It has consumed nothing yet.")


def _progress_row(one: "QueueProgress") -> tuple[str | int, ...]:
    behind = f"{one.lag:,}" if one.HasField("lag") else "being rebuilt"
    by_time = show_seconds(one.lag_ms / 1000) if one.HasField("lag_ms") and one.lag_ms else "-"
    return (one.topic, one.broker, one.queue_id, one.offset, one.max_offset, behind, by_time, one.trouble)


@app.command()
def reset(
    group: Group,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Where its offsets are moved.", autocompletion=names.topics)
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help=f"earliest; latest (what waits is skipped); a queue offset as =100; messages back or on as -100 or "
            f"+100; or a time: {FORMS}.",
        ),
    ],
    queues: Annotated[
        list[int] | None, typer.Option("--queue", "-q", metavar="N", help="Only this queue. Repeatable.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Move a group's offsets in a topic. What is skipped is not consumed, what is moved back is consumed again.

    Consumers may run meanwhile: what they hold is called back, and classic clients are told where to go on. A program
    that pulls and commits offsets by itself should be stopped first: it may commit its own offset again.

    With --json: one document, {"moves": [{"broker", "queue_id", "before", "after", "min_offset", "max_offset"}]}.
    """
    request = _reset_request(group, topic, to, queues or [], broker)
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        request.dry_run = True
        plan = admin.ResetOffsets(request)
        if dry_run:
            _say_moves(output, plan, _PLANNED)
            return
        if not (yes or as_json):
            _say_moves(output, plan, _PLANNED)
        confirm(f"Moving group {group} in topic {topic}", yes=yes, as_json=as_json)
        request.dry_run = False
        done = admin.ResetOffsets(request)
    _say_moves(output, done, "Moved:")


def _reset_request(group: str, topic: str, to: str, queues: list[int], broker: str) -> "ResetOffsetsRequest":
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.ResetOffsetsRequest(group=group, topic=topic, broker=broker, queue_ids=queues)
    if to == "earliest":
        request.earliest = True
    elif to == "latest":
        request.latest = True
    elif to[:1] == "=" and to[1:].isdecimal():
        request.offset = int(to[1:])
    elif to[:1] in ("+", "-") and to[1:].isdecimal():
        request.shift = int(to)
    else:
        request.timestamp_ms = parse_moment(to)
    return request


_PLANNED = "This would be moved; nothing is changed yet:"


def _say_moves(output: Output, answer: "ResetOffsetsResponse", title: str) -> None:
    if output.as_json:
        output.document(document(answer))
        return
    rows = [
        (one.broker, one.queue_id, f"{one.before:,}" if one.HasField("before") else "-", one.after,
         f"{one.after - one.before:+,}" if one.HasField("before") else "", one.min_offset, one.max_offset)
        for one in answer.moves
    ]  # fmt: skip
    columns = ("broker", "queue", "before", "after", "moved", "min", "max")
    output.table(columns, rows, title, right=("before", "moved"))
    if not rows:
        output.say("There is nothing to move.")


@app.command()
def create(
    group: Group,
    fifo: Fifo = None,
    consume: Consume = None,
    retry_times: RetryTimes = None,
    retry_queues: RetryQueues = None,
    retry_policy: RetryPolicy = None,
    timeout: Timeout = None,
    consume_from: ConsumeFrom = None,
    ack_durability: WaitFor = None,
    keep_unconsumed: Keep = None,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Create a group; on every broker, unless one is named. It can be used at once.

    Where no admin service runs, and none is named, the store at TANDEM_ADDRESS (127.0.0.1:8081) makes it.

    With --json: one document, {"groups": [...]}, as `tandem group list`.
    """
    attributes = as_attributes(consume_from, ack_durability, keep_unconsumed)
    config = _config(group, fifo, consume, retry_times, retry_queues, retry_policy, timeout, attributes)
    with or_store(address, broker) as store:
        _put(config, fifo, broker, address, as_json, create=True)
    if store.address:
        _create_at(store.address, config, as_json)


@app.command()
def update(
    group: Group,
    fifo: Fifo = None,
    consume: Consume = None,
    retry_times: RetryTimes = None,
    retry_queues: RetryQueues = None,
    retry_policy: RetryPolicy = None,
    timeout: Timeout = None,
    consume_from: ConsumeFrom = None,
    ack_durability: WaitFor = None,
    keep_unconsumed: Keep = None,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Change a group: what is not given stays as it is.

    With --json: one document, {"groups": [...]}, as `tandem group list`.
    """
    attributes = as_attributes(consume_from, ack_durability, keep_unconsumed)
    given = (fifo, consume, retry_times, retry_queues, retry_policy, timeout)
    if not attributes and all(one is None for one in given):
        raise typer.BadParameter("nothing to change: see the options in --help", param_hint="GROUP")
    config = _config(group, fifo, consume, retry_times, retry_queues, retry_policy, timeout, attributes)
    _put(config, fifo, broker, address, as_json, create=False)


def _config(
    group: str,
    fifo: bool | None,
    consume: bool | None,
    retry_times: int | None,
    retry_queues: int | None,
    retry_policy: str | None,
    timeout: int | None,
    attributes: dict[str, str],
) -> "SubscriptionGroupConfig":
    from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig

    return SubscriptionGroupConfig(
        name=group,
        consume_enable=consume,
        consume_message_orderly=bool(fifo),
        retry_max_times=retry_times,
        retry_queues=retry_queues,
        consume_timeout_minutes=timeout,
        attributes=attributes,
        other_json=None if retry_policy is None else as_other_json(retry_policy),
    )


def _create_at(store: str, config: "SubscriptionGroupConfig", as_json: bool) -> None:
    from tandemmq.admin.v1.admin_pb2 import Group as Made
    from tandemmq.admin.v1.admin_pb2 import PutGroupResponse
    from tandemmq.delivery.v1.operations_pb2 import CreateGroupRequest
    from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig

    whole = SubscriptionGroupConfig(
        consume_enable=True,
        consume_broadcast_enable=True,
        retry_queues=1,
        retry_max_times=16,
        consume_timeout_minutes=15,
    )
    whole.MergeFrom(config)
    for name in [name for name, value in whole.attributes.items() if not value]:
        del whole.attributes[name]  # there is nothing to take away
    with operations_at(store) as operations:
        operations.CreateGroup(CreateGroupRequest(config=whole))
    output, made = Output(as_json=as_json), Made(config=whole)
    if as_json:
        output.document(document(PutGroupResponse(groups=[made])))
    else:
        output.pairs(_in_words(made), title=f"{config.name} in the store at {store}")


def _put(
    config: "SubscriptionGroupConfig", fifo: bool | None, broker: str, address: str, as_json: bool, *, create: bool
) -> None:
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    request = admin_pb2.PutGroupRequest(config=config, create_only=create, update_only=not create, broker=broker)
    if fifo is not None:
        request.fields.append("consume_message_orderly")  # `--no-fifo` is a value too
    with admin_at(address) as admin:
        answer = admin.PutGroup(request)
    if as_json:
        output.document(document(answer))
        return
    for one in answer.groups:
        output.pairs(_in_words(one), title=f"{one.config.name} on {one.broker}")


@app.command()
def delete(
    group: Group,
    keep_offsets: Annotated[bool, typer.Option("--keep-offsets", help="Leave its offsets.")] = False,
    yes: Yes = False,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Delete a group and its offsets.

    With --json: one document, {"brokers": [...]}: who had it.
    """
    from tandemmq.admin.v1 import admin_pb2

    what = f"Deleting group {group}" + ("" if keep_offsets else " and its offsets")
    confirm(what, yes=yes, as_json=as_json)
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        answer = admin.DeleteGroup(admin_pb2.DeleteGroupRequest(group=group, keep_offsets=keep_offsets, broker=broker))
    if as_json:
        output.document(document(answer))
    else:
        output.say(f"{group} is deleted on {', '.join(answer.brokers)}")
