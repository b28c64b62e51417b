"""`tandem consume` and `tandem worker`: taking messages for a group, each of them once."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.messaging.messages import as_json, say_message
from tandemmq.cli.talk.connection import STORE, resolved, told
from tandemmq.cli.talk.failures import INTERRUPTED, CommandFailed, WrongUsage
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Json, Topic, WithBody
from tandemmq.cli.talk.output import Output
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.client import Consumer

IDLE_SECONDS = 3.0
"""Without --follow: how long to wait for the next message."""

Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group; it is made when it is first used.")]

Tags = Annotated[
    str,
    typer.Option("--tag", "-t", "--filter", "-f", metavar="'A || B'", help="Only messages with one of these tags."),
]

Condition = Annotated[
    str, typer.Option("--sql", metavar="CONDITION", help="Only messages whose properties fit: 'price > 10'.")
]


def consume(
    group: Group,
    topic: Topic,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, metavar="N", help="Stop after N messages; 0: any number.")
    ] = 0,
    tags: Tags = "*",
    sql: Condition = "",
    follow: Annotated[bool, typer.Option("--follow", help="Wait for new messages, until Ctrl-C.")] = False,
    with_body: WithBody = True,
    address: Address = DEFAULT_ADDRESS,
    as_json_lines: Json = False,
) -> None:
    """Take messages as a group: print and acknowledge each.

    What is printed is acknowledged, and no member of the group gets it again; `tandem pull` only looks. Without
    --follow it ends when no message has come for 3 seconds. What does not fit the filter is passed for good.

    With --json: one JSON line a message, as of `tandem pull`, with "delivery_number".
    """
    output = Output(as_json=as_json_lines)
    address = resolved(STORE, address)
    if sql and tags != "*":
        raise typer.BadParameter("give --tag or --sql, not both", param_hint="--sql")
    from tandemmq.client import Consumer, Identity

    shown = 0
    with told(STORE, address):
        arguments = Identity.from_environment().at(address).arguments()
        consumer = Consumer(address, group=group, topic=topic, filter=tags, sql=sql, prefetch=0, **arguments)
        try:
            with consumer:
                while (not count or shown < count) and _show_one(consumer, output, follow, with_body):
                    shown += 1
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
    output.remark(counted(shown, "message"))


def _show_one(consumer: "Consumer", output: Output, follow: bool, with_body: bool) -> bool:
    """Print and acknowledge the next message; False when there is none."""
    message = consumer.receive(None if follow else IDLE_SECONDS)
    if message is None:
        return False
    if output.as_json:
        output.line(as_json(message.record, with_body=with_body) | {"delivery_number": message.delivery_number})
    else:
        say_message(output, message.record, with_body=with_body)
    message.ack()
    return True


def worker(
    handler: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="What handles a message, plain or async; from here.")
    ],
    group: Group,
    topic: Topic,
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-c", min=1, metavar="N", help="Messages handled at a time.")
    ] = 16,
    tags: Tags = "*",
    sql: Condition = "",
    address: Address = DEFAULT_ADDRESS,
    as_json_lines: Json = False,
) -> None:
    """Call a Python function with each message of a group.

    A message whose function returns is acknowledged. One whose function raises comes again: after 1 second, 2, 4, and
    so on, and goes to the dead letters when it has failed too often (the group's retryMaxTimes). Ctrl-C or SIGTERM
    ends the worker when what it handles is finished. Start several of them to share the work.

    With --json: one document at the end, {"done", "retried", "dead"}.
    """
    output = Output(as_json=as_json_lines)
    address = resolved(STORE, address)
    function = load_function(handler)
    import logging

    from tandemmq.client import Identity
    from tandemmq.client import worker as work

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    output.remark(f"{handler} handles {topic} for {group}, {concurrency} at a time; Ctrl-C ends it")
    with told(STORE, address):
        counts = work(
            function,
            address,
            group=group,
            topic=topic,
            filter=tags,
            sql=sql,
            concurrency=concurrency,
            **Identity.from_environment().at(address).arguments(),
        )
    if output.as_json:
        output.line({"done": counts.done, "retried": counts.retried, "dead": counts.dead})
    else:
        output.say(f"{counts.done:,} done, {counts.retried:,} to come again, {counts.dead:,} dead letters")


def load_function(name: str) -> Callable[[Any], object]:
    """`module:function`, of the working directory or what is installed. Raises CommandFailed, WrongUsage."""
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        raise WrongUsage(f"{name!r} names no function; write MODULE:FUNCTION, as in orders:handle for orders.py")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CommandFailed(
            f"there is no module {error.name} in {Path.cwd()}, and none is installed; change to its directory"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise CommandFailed(f"module {module_name} has no function {function_name}")
    return function  # type: ignore[no-any-return]  # whatever it is, it can be called
