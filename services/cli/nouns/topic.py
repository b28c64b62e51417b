"""`tandem topic`: what topics there are, one of them, and changing them."""

from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.messaging.offsets import offsets
from tandemmq.cli.nouns import names
from tandemmq.cli.nouns.calls import (
    DEFAULT_ADMIN_ADDRESS,
    AdminAddress,
    Broker,
    Limit,
    Match,
    Yes,
    admin_at,
    confirm,
    document,
    enum_name,
    noun,
    read_pages,
)
from tandemmq.cli.nouns.lone_store import operations_at, or_store
from tandemmq.cli.talk.moments import show_moment
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output
from tandemmq.common.attributes.topic_retention import RESERVE_TIME, reserve_hours

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import PutTopicResponse
    from tandemmq.admin.v1.admin_pb2 import Topic as AdminTopic
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
    from tandemmq.metadata.v1.metadata_pb2 import TopicConfig

app = noun("topic", "Topics: list, look at, create, change, delete.")
app.command()(offsets)

_KINDS = ("normal", "retry", "dead_letter", "system")
_PERMISSIONS = {"r": 4, "w": 2}

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.", autocompletion=names.topics)]
ReadQueues = Annotated[
    int | None, typer.Option("--read-queues", "-r", min=1, metavar="N", help="Queues that consumers read.")
]
WriteQueues = Annotated[
    int | None, typer.Option("--write-queues", "-w", min=1, metavar="N", help="Queues that producers fill.")
]
Permission = Annotated[
    str | None,
    typer.Option("--perm", "-p", metavar="rw|r|w|-", help="Whether it can be read and written; - for neither."),
]
Queues = Annotated[
    int | None, typer.Option("--queues", min=1, metavar="N", help="As many queues that are read as are filled.")
]
_TYPES = ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "MIXED")
MessageType = Annotated[
    str | None, typer.Option("--type", "-t", metavar="TYPE", help=f"Of its messages: {', '.join(_TYPES)}.")
]
Retention = Annotated[
    int | None,
    typer.Option(
        "--retention", min=0, metavar="HOURS",
        help="Older messages are given to nobody; the log keeps its files as before. 0: none of its own.",
    ),
]  # fmt: skip


@app.command("list")
def list_topics(
    match: Match = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", "-k", metavar="KIND", help=f"Only of this kind: {', '.join(_KINDS)}. Repeatable."),
    ] = None,
    limit: Limit = 0,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """List topics with their queues and how many messages these hold.

    With --json: one document, {"topics": [{"broker", "config": {"name", "read_queues", ...}, "kind", "messages",
    "queues"}], "total"}.
    """
    from tandemmq.admin.v1 import admin_pb2

    wanted = [admin_pb2.TopicKind.Value(_kind(one)) for one in kinds or ()]
    output = Output(as_json=as_json)
    with admin_at(address) as admin:

        def ask(after: str, most: int) -> "admin_pb2.ListTopicsResponse":
            return admin.ListTopics(
                admin_pb2.ListTopicsRequest(match=match, kinds=wanted, broker=broker, after=after, limit=most)
            )

        found, total = read_pages(ask, "topics", limit)
    if as_json:
        output.document({"topics": [document(one) for one in found], "total": total})
        return
    columns = ("topic", "broker", "kind", "perm", "read", "write", "queues", "messages")
    output.table(columns, [_row(one) for one in found], drop=("perm", "broker", "read", "write"))
    if not found:
        output.say("There is no such topic." if match else "There are no topics yet.")
    elif total > len(found):
        output.remark(f"{total - len(found):,} more; see --limit")


def _kind(text: str) -> str:
    if text.lower().replace("-", "_") not in _KINDS:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(_KINDS)}", param_hint="--kind")
    return text.upper().replace("-", "_")


def _row(topic: "AdminTopic") -> tuple[str | int, ...]:
    config = topic.config
    kind = enum_name(topic, "kind") + (", deleted" if topic.orphaned else "")
    permission = show_permission(config.perm)
    queues = max(config.read_queues, config.write_queues, topic.queues)  # those without a message have no files yet
    return (
        config.name, topic.broker, kind, permission, config.read_queues, config.write_queues, queues,
        topic.messages,
    )  # fmt: skip


def show_permission(perm: int) -> str:
    """RocketMQ's number as letters: 6 is `rw`."""
    return "".join(letter for letter, bit in _PERMISSIONS.items() if perm & bit) or "-"


@app.command()
def show(
    topic: Topic, broker: Broker = "", address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False
) -> None:
    """Show one topic: settings, queues, offsets, its groups.

    With --json: one document, {"topics": [...], "queues": [{"broker", "queue_id", "min_offset", "max_offset",
    "last_store_ms"}], "groups": [{"group", "lag"}]}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.GetTopic(admin_pb2.GetTopicRequest(topic=topic, broker=broker))
    if as_json:
        output.document(document(found))
        return
    for one in found.topics:
        others = sorted((name, value) for name, value in one.config.attributes.items() if name != RESERVE_TIME)
        attributes = "".join(f", {name}={value}" for name, value in others)
        output.say(f"{one.config.name} on {one.broker}: {enum_name(one, 'kind')}, {_told(one.config)}{attributes}")
    rows = [
        (one.broker, one.queue_id, one.min_offset, one.max_offset, one.max_offset - one.min_offset,
         "being rebuilt" if one.rebuilding else show_moment(one.last_store_ms).partition(".")[0])
        for one in found.queues
    ]  # fmt: skip
    output.table(("broker", "queue", "min", "max", "messages", "last"), rows)
    if found.groups:
        output.say()
        output.table(("group", "lag"), [(one.group, one.lag) for one in found.groups])
    else:
        output.say("No group has consumed it.")


@app.command()
def create(
    topic: Topic,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    queues: Queues = None,
    message_type: MessageType = None,
    retention: Retention = None,
    perm: Permission = None,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Create a topic; on every broker, unless one is named. It can be used at once.

    Where no admin service runs, and none is named, the store at TANDEM_ADDRESS (127.0.0.1:8081) makes it.

    With --json: one document, {"topics": [...]}, as `tandem topic list`.
    """
    attributes = _attributes(message_type, retention)
    config = _config(topic, read_queues or queues, write_queues or queues, perm, attributes)
    output = Output(as_json=as_json)
    with or_store(address, broker) as store, admin_at(address) as admin:
        _put(admin, config, broker, output, create=True)
    if store.address:
        _create_at(store.address, config, output)


@app.command()
def update(
    topic: Topic,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    queues: Queues = None,
    message_type: MessageType = None,
    retention: Retention = None,
    perm: Permission = None,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Change a topic: what is not given stays as it is.

    With --json: one document, {"topics": [...]}, as `tandem topic list`.
    """
    if all(one is None for one in (read_queues, write_queues, queues, perm, message_type, retention)):
        options = "--queues, --read-queues, --write-queues, --type, --retention, --perm"
        raise typer.BadParameter(f"nothing to change: see {options}", param_hint="TOPIC")
    attributes = _attributes(message_type, retention)
    config = _config(topic, read_queues or queues, write_queues or queues, perm, attributes)
    with admin_at(address) as admin:
        _put(admin, config, broker, Output(as_json=as_json), create=False)


def _config(
    topic: str, read_queues: int | None, write_queues: int | None, perm: str | None, attributes: dict[str, str]
) -> "TopicConfig":
    from tandemmq.metadata.v1.metadata_pb2 import TopicConfig

    return TopicConfig(
        name=topic,
        read_queues=read_queues,
        write_queues=write_queues,
        perm=None if perm is None else _permission(perm),
        attributes=attributes,
    )


def _attributes(message_type: str | None, retention: int | None) -> dict[str, str]:
    if message_type is not None and message_type.upper() not in _TYPES:
        raise typer.BadParameter(f"{message_type!r} is none of {', '.join(_TYPES)}", param_hint="--type")
    kind = {} if message_type is None else {"message.type": message_type.upper()}
    return kind if retention is None else {**kind, RESERVE_TIME: str(retention or "")}  # an empty one goes


def _told(config: "TopicConfig") -> str:
    hours = reserve_hours(config.name, config.attributes)
    kept = f", messages kept for {hours} h" if hours else ""
    queues = f"{config.read_queues} queues read, {config.write_queues} written"
    return f"{show_permission(config.perm)}, {queues}{kept}"


def _permission(text: str) -> int:
    letters = text.lower().replace("-", "")
    if len(set(letters)) != len(letters) or set(letters) - _PERMISSIONS.keys():
        raise typer.BadParameter(f"{text!r} is none of rw, r, w, -", param_hint="--perm")
    return sum(_PERMISSIONS[letter] for letter in letters)


def _create_at(store: str, config: "TopicConfig", output: Output) -> None:
    from tandemmq.admin.v1.admin_pb2 import PutTopicResponse
    from tandemmq.admin.v1.admin_pb2 import Topic as Made
    from tandemmq.delivery.v1.operations_pb2 import CreateTopicRequest
    from tandemmq.metadata.v1.metadata_pb2 import TopicConfig

    whole = TopicConfig(read_queues=16, write_queues=16, perm=sum(_PERMISSIONS.values()))
    whole.MergeFrom(config)
    if not whole.attributes.get(RESERVE_TIME, "-1"):
        del whole.attributes[RESERVE_TIME]
    with operations_at(store) as operations:
        operations.CreateTopic(CreateTopicRequest(config=whole))
    _say_put(PutTopicResponse(topics=[Made(config=whole)]), output, store)


def _put(admin: "AdminStub", config: "TopicConfig", broker: str, output: Output, *, create: bool) -> None:
    from tandemmq.admin.v1 import admin_pb2

    answer = admin.PutTopic(
        admin_pb2.PutTopicRequest(config=config, create_only=create, update_only=not create, broker=broker)
    )
    _say_put(answer, output)


def _say_put(answer: "PutTopicResponse", output: Output, store: str = "") -> None:
    """`store`: who made it, where no broker is named."""
    if output.as_json:
        output.document(document(answer))
        return
    for one in answer.topics:
        output.say(f"{one.config.name} on {one.broker or store}: {_told(one.config)}")
    for warning in answer.warnings:
        output.remark(f"Warning: {warning}")


@app.command()
def delete(
    topic: Topic,
    yes: Yes = False,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Delete a topic and the offsets that groups have in it. Its messages stay in the log until they expire.

    With --json: one document, {"brokers": [...]}: who had it.
    """
    from tandemmq.admin.v1 import admin_pb2

    confirm(f"Deleting topic {topic} and all offsets in it", yes=yes, as_json=as_json)
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        answer = admin.DeleteTopic(admin_pb2.DeleteTopicRequest(topic=topic, broker=broker))
    if as_json:
        output.document(document(answer))
    else:
        output.say(f"{topic} is deleted on {', '.join(answer.brokers)}")
