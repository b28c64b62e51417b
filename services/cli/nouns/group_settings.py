"""Settings of a group as options of `tandem group create` and `update`, and in words."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns import retry_waits
from tandemmq.common.attributes import group_attributes as attributes
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig


class ConsumeFromWhere(StrEnum):
    """Where it begins."""

    FIRST = "first"
    LAST = "last"
    DEFAULT = "default"


class AckDurability(StrEnum):
    """What its acknowledgements wait for."""

    PAGE_CACHE = "page-cache"
    DISK = "disk"
    REPLICAS = "replicas"
    DEFAULT = "default"


_BEGINS = {
    ConsumeFromWhere.FIRST: attributes.FROM_FIRST,
    ConsumeFromWhere.LAST: attributes.FROM_LAST,
    ConsumeFromWhere.DEFAULT: "",
}
_WAITS = {
    AckDurability.PAGE_CACHE: attributes.PAGE_CACHE,
    AckDurability.DISK: attributes.DISK,
    AckDurability.REPLICAS: attributes.REPLICAS,
    AckDurability.DEFAULT: "",
}

Consume = Annotated[
    bool | None, typer.Option("--consume/--no-consume", help="Whether it may consume at all.", show_default=False)
]
RetryTimes = Annotated[
    int | None,
    typer.Option("--retries", "--retry-times", metavar="N", help="Dead letter after N retries; -1: never."),
]
Fifo = Annotated[
    bool | None,
    typer.Option("--fifo/--no-fifo", help="Whether messages of one message group come in order.", show_default=False),
]
RetryPolicy = Annotated[
    str | None,
    typer.Option("--retry-policy", metavar="WAITS", help=f"Waits before each next delivery: {retry_waits.FORMS}."),
]
RetryQueues = Annotated[int | None, typer.Option("--retry-queues", min=0, metavar="N", help="Queues of its retries.")]
Timeout = Annotated[
    int | None,
    typer.Option(
        "--timeout", min=1, metavar="MINUTES", help="So long a message is invisible where a receive does not say it."
    ),
]
ConsumeFrom = Annotated[
    ConsumeFromWhere | None,
    typer.Option(
        "--consume-from", help="Where it begins in a topic that is new to it. default: at young messages' first."
    ),
]
WaitFor = Annotated[
    AckDurability | None,
    typer.Option("--ack-durability", help="What an acknowledgement waits for. default: what a send waits for."),
]
Keep = Annotated[
    bool | None,
    typer.Option(
        "--keep-unconsumed/--no-keep-unconsumed",
        help="Whether log files stay while it has not dealt with what is in them.",
        show_default=False,
    ),
]


def as_attributes(
    consume_from: ConsumeFromWhere | None, ack_durability: AckDurability | None, keep_unconsumed: bool | None
) -> dict[str, str]:
    """The attributes that options name; an empty value takes one away."""
    named: dict[str, str] = {}
    if consume_from is not None:
        named[attributes.CONSUME_FROM] = _BEGINS[consume_from]
    if ack_durability is not None:
        named[attributes.ACK_DURABILITY] = _WAITS[ack_durability]
    if keep_unconsumed is not None:
        named[attributes.KEEP_UNCONSUMED] = "true" if keep_unconsumed else ""
    return named


def in_words(config: "SubscriptionGroupConfig") -> list[tuple[str, str]]:
    """The settings of a group."""
    given = config.attributes
    begins = {value: name.value for name, value in _BEGINS.items()}
    waits = {value: name.value.replace("-", " ") for name, value in _WAITS.items()}
    rows = [
        ("consumes", "yes" if config.consume_enable else "no"),
        ("broadcast", "allowed" if config.consume_broadcast_enable else "not allowed"),
        ("orderly", "yes" if config.consume_message_orderly else "no"),
        ("retries", f"{counted(config.retry_max_times, 'time')} over {counted(config.retry_queues, 'queue')}"),
        ("retry policy", retry_waits.in_words(config) or "1s to 2h in 18 steps"),
        ("timeout", counted(config.consume_timeout_minutes, "minute")),
    ]
    if begin := given.get(attributes.CONSUME_FROM):
        rows.append(("begins at", begins.get(begin, begin)))
    if wait := given.get(attributes.ACK_DURABILITY):
        rows.append(("ack durability", waits.get(wait, wait)))
    if given.get(attributes.KEEP_UNCONSUMED) == "true":
        rows.append(("keeps unconsumed", "yes"))
    return rows
