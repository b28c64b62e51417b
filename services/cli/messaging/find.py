"""`tandem message query` and `tandem message view`: finding messages by key, and reading one by its id."""

from typing import Annotated

import typer

from tandemmq.cli.messaging.messages import ROW_COLUMNS, as_json, row, say_details, say_message
from tandemmq.cli.talk.connection import connect
from tandemmq.cli.talk.failures import CallFailed, NotThere
from tandemmq.cli.talk.moments import parse_moment
from tandemmq.cli.talk.options import DEFAULT_ADDRESS, Address, Begin, End, Json, Topic, WithBody
from tandemmq.cli.talk.output import Output


def query(
    topic: Topic,
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="KEY", help="One of the keys the message was sent with.")
    ] = None,
    unique_key: Annotated[
        str | None,
        typer.Option(
            "--unique-key", metavar="KEY", help="The unique key (UNIQ_KEY) of the message, as its receipt says."
        ),
    ] = None,
    begin: Begin = None,
    end: End = None,
    limit: Annotated[
        int, typer.Option("--max", "-n", min=1, metavar="N", help="At most N messages, the newest first.")
    ] = 32,
    with_body: WithBody = False,
    address: Address = DEFAULT_ADDRESS,
    as_json_lines: Json = False,
) -> None:
    """Find messages by a key, newest first.

    Exit code 1 if there is none. Messages become findable a moment after they are stored.

    With --json: one JSON line a message, as of `tandem pull`.
    """
    if (key is None) == (unique_key is None):
        raise typer.BadParameter("give one of --key and --unique-key", param_hint="--key")
    begin_ms = parse_moment(begin) if begin is not None else 0
    end_ms = parse_moment(end) if end is not None else 0
    with connect(address) as client:
        records = client.query(
            topic, key=key, unique_key=unique_key, begin_ms=begin_ms, end_ms=end_ms, max_messages=limit
        )
    output = Output(as_json=as_json_lines)
    if not records:
        wanted = f"key {key}" if key is not None else f"unique key {unique_key}"
        raise NotThere(f"no message of topic {topic} has the {wanted}" + (" in that time" if begin or end else ""))
    if as_json_lines:
        for record in records:
            output.line(as_json(record, with_body=with_body))
    elif with_body:
        for record in records:
            say_message(output, record, with_body=True)
    else:
        output.table(ROW_COLUMNS, [row(record) for record in records], drop=("bytes", "tag", "queue", "offset"))


def view(
    message_id: Annotated[
        str, typer.Argument(metavar="MESSAGE_ID", help="The id that the receipt says, 32 hex digits.")
    ],
    with_body: WithBody = True,
    address: Address = DEFAULT_ADDRESS,
    as_json_document: Json = False,
) -> None:
    """Show one message with every field, by the id of its receipt.

    With --json: one document, with the fields of `tandem pull`.
    """
    try:
        with connect(address) as client:
            record = client.view(message_id)
    except CallFailed as error:
        if error.failure.status == "NOT_FOUND" and _is_like_a_unique_key(message_id):
            raise NotThere(
                f"{message_id} names no place in a log; it looks like a unique key: "
                f"tandem message query TOPIC --unique-key {message_id}"
            ) from error
        raise
    output = Output(as_json=as_json_document)
    if as_json_document:
        output.document(as_json(record, with_body=with_body))
    else:
        say_details(output, record, with_body=with_body)


def _is_like_a_unique_key(message_id: str) -> bool:
    """A receipt's id is an address, a port and a log offset; a unique key has a process's number where the port is."""
    return int(message_id[-24:-16], 16) > 0xFFFF
